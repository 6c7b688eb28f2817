#include "runtime/codegen/formulas.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace strata {
namespace {

// By code: {0}, {1}, {2} are the operands, {n} the first number of the operator, {T} the type.
// ATen's kernels contract `a * b + c` in lerp, addcmul and add with alpha; those say fma. Nothing
// else is contracted. (Where its kernels are compiled without fused multiply-adds, see
// KernelLibrary::Options::contracts.)
constexpr std::pair<std::string_view, std::string_view> kFormulas[] = {
    {"abs", "strata_abs({0})"},
    {"add", "{0} + {1}"},
    {"add alpha", "strata_fma({n}, {1}, {0})"},
    {"addcdiv", "{0} + {1} / {2}"},
    {"addcdiv value", "{0} + ({n} * {1}) / {2}"},
    {"addcmul", "strata_fma({1}, {2}, {0})"},
    {"addcmul value", "strata_fma({n} * {1}, {2}, {0})"},
    {"cast", "({T}){0}"},
    {"copy", "{0}"},
    {"cube", "({0} * {0}) * {0}"},
    {"div", "{0} / {1}"},
    {"exp", "strata_exp({0})"},
    {"log", "strata_log({0})"},
    {"mul", "{0} * {1}"},
    {"neg", "-{0}"},
    {"reciprocal", "({T})1 / {0}"},
    {"relu", "({0} < ({T})0 ? ({T})0 : {0})"},
    {"rsqrt", "({T})1 / strata_sqrt({0})"},
    {"sigmoid", "({T})1 / (({T})1 + strata_exp(-{0}))"},
    {"sigmoid_backward", "{0} * (({T})1 - {1}) * {1}"},
    {"silu", "{0} / (({T})1 + strata_exp(-{0}))"},
    {"silu_backward", "strata_silu_backward({0}, {1})"},
    {"sqrt", "strata_sqrt({0})"},
    {"square", "{0} * {0}"},
    {"sub", "{0} - {1}"},
    {"sub alpha", "strata_fma(-{n}, {1}, {0})"},
    {"tanh", "strata_tanh({0})"},
};

std::string_view Find(std::string_view code) {
  const auto known =
      std::ranges::find(kFormulas, code, &std::pair<std::string_view, std::string_view>::first);
  STRATA_CHECK(known != std::end(kFormulas), "no formula for {}", code);
  return known->second;
}

/// The half of lerp that ATen takes for this weight.
std::string Lerp(double weight, DType dtype, std::span<const std::string> operands) {
  const std::string number = NumberText(weight, dtype);
  const double rounded = dtype == DType::kF64 ? weight : static_cast<float>(weight);
  if (std::abs(rounded) < 0.5) {
    return fmt::format("strata_fma({}, {} - {}, {})", number, operands[1], operands[0],
                       operands[0]);
  }
  return fmt::format("strata_fma(-({} - {}), ({})1 - {}, {})", operands[1], operands[0],
                     ComputeType(dtype), number, operands[1]);
}

}  // namespace

std::string_view ComputeType(DType dtype) {
  return dtype == DType::kF64 ? "double" : "float";
}

std::string_view MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kBF16:
      return "strata_bf16";
    default:
      return "float";
  }
}

std::string NumberText(double number, DType dtype) {
  const std::string_view type = ComputeType(dtype);
  if (std::isnan(number)) return fmt::format("({})strata_nan()", type);
  if (std::isinf(number)) return fmt::format("({}){}strata_inf()", type, number < 0 ? "-" : "");
  std::string text = fmt::format("{:.17g}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return fmt::format("({}){}", type, text);
}

std::string FormulaText(const Kernel::Op& op, std::span<const std::string> operands) {
  if (op.code == "constant") return NumberText(op.numbers[0], op.dtype);
  if (op.code == "lerp") return Lerp(op.numbers[0], op.dtype, operands);
  std::string key = op.code;
  if (!op.numbers.empty()) key += op.code.starts_with("addc") ? " value" : " alpha";
  std::string text;
  const std::string_view formula = Find(key);
  for (size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] != '{') {
      text += formula[i];
      continue;
    }
    const char what = formula[i + 1];
    if (what == 'T') {
      text += ComputeType(op.dtype);
    } else if (what == 'n') {
      text += NumberText(op.numbers[0], op.dtype);
    } else {
      text += operands[static_cast<size_t>(what - '0')];
    }
    i += 2;
  }
  return op.dtype == DType::kBF16 ? fmt::format("strata_round({})", text) : text;
}

}  // namespace strata
