#include "passes/placement/costs/function_cost.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata {
namespace {

constexpr std::string_view kFunctions[] = {"exp",     "log",  "sigmoid", "silu",
                                           "softmax", "sqrt", "tanh"};
static_assert(std::ranges::is_sorted(kFunctions));

/// Operators, and the function of which they take about the time.
constexpr std::pair<std::string_view, std::string_view> kFunctionOf[] = {
    {"_log_softmax", "softmax"},
    {"_log_softmax_backward_data", "softmax"},
    {"_safe_softmax", "softmax"},
    {"_softmax", "softmax"},
    {"cos", "exp"},
    {"erf", "tanh"},
    {"exp", "exp"},
    {"expm1", "exp"},
    {"gelu", "tanh"},
    {"gelu_backward", "tanh"},
    {"log", "log"},
    {"log1p", "log"},
    {"logsumexp", "softmax"},
    {"sigmoid", "sigmoid"},
    {"silu", "silu"},
    {"silu_backward", "silu"},
    {"sin", "exp"},
    {"softplus", "log"},
    {"sqrt", "sqrt"},
    {"tanh", "tanh"},
};
static_assert(std::ranges::is_sorted(kFunctionOf));

}  // namespace

std::span<const std::string_view> PricedFunctions() {
  return kFunctions;
}

bool IsPricedFunction(std::string_view name) {
  return std::ranges::binary_search(kFunctions, name);
}

double FunctionUs(const DeviceSpec& device, std::string_view base, double elements) {
  const auto* function = std::ranges::lower_bound(
      kFunctionOf, base, {}, &std::pair<std::string_view, std::string_view>::first);
  if (function == std::end(kFunctionOf) || function->first != base) return 0;
  const auto rate = device.functions_per_us.find(function->second);
  return rate == device.functions_per_us.end() ? 0 : elements / rate->second;
}

double FlopsRate(const DeviceSpec& device, std::string_view base, DType dtype) {
  if (base.find("attention") != std::string_view::npos) {
    const auto& rates = base.ends_with("_backward") ? device.attention_backward_flops_per_us
                                                    : device.attention_flops_per_us;
    if (const auto rate = rates.find(dtype); rate != rates.end()) return rate->second;
  }
  const auto rate = device.flops_per_us.find(dtype);
  return rate == device.flops_per_us.end() ? 0 : rate->second;
}

}  // namespace strata
