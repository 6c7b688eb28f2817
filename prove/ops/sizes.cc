#include "prove/ops/sizes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "prove/values/field.h"
#include "prove/values/tensor.h"

namespace strata::prove {
namespace {

int64_t FloorQuotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::optional<int64_t> OfOne(std::string_view name, int64_t a) {
  if (name == "neg") return -a;
  if (name == "pos" || name == "index") return a;
  return std::nullopt;
}

std::optional<int64_t> OfTwo(std::string_view name, int64_t a, int64_t b) {
  int64_t result = 0;
  if (name == "add")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (name == "sub")
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (name == "mul")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (name == "floordiv" && b != 0) return FloorQuotient(a, b);
  if (name == "mod" && b != 0) return a - b * FloorQuotient(a, b);
  if (name == "eq") return a == b ? 1 : 0;
  if (name == "ne") return a != b ? 1 : 0;
  if (name == "le") return a <= b ? 1 : 0;
  if (name == "ge") return a >= b ? 1 : 0;
  if (name == "lt") return a < b ? 1 : 0;
  if (name == "gt") return a > b ? 1 : 0;
  if (name == "sym_max") return std::max(a, b);
  if (name == "sym_min") return std::min(a, b);
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> EvaluateIntegers(const Call& call) {
  std::string_view name = call.op();
  if (!name.starts_with("_operator.") && !name.starts_with("torch.sym_")) return std::nullopt;
  name.remove_prefix(name.find('.') + 1);
  std::array<int64_t, 2> numbers = {};
  if (call.num_args() == 0 || call.num_args() > numbers.size()) return std::nullopt;
  for (size_t i = 0; i < call.num_args(); ++i) {
    const Argument* argument = call.Find(i, {});
    const auto* number = argument != nullptr ? std::get_if<int64_t>(&argument->value) : nullptr;
    if (number == nullptr) return std::nullopt;
    numbers[i] = *number;
  }
  return call.num_args() == 1 ? OfOne(name, numbers[0]) : OfTwo(name, numbers[0], numbers[1]);
}

bool TruncatesUnknown(const Call& call, std::span<const Value> results) {
  if (call.op() != "aten._to_copy.default" && call.op() != "prims.convert_element_type.default")
    return false;
  const Argument* dtype = call.Find(call.op().starts_with("prims.") ? 1 : SIZE_MAX, "dtype");
  const auto* made = dtype != nullptr ? std::get_if<DType>(&dtype->value) : nullptr;
  if (made == nullptr || *made == DType::kBool) return false;
  const Argument* argument = call.Find(0, {});
  const auto* from = argument != nullptr ? std::get_if<Tensor>(&argument->value) : nullptr;
  const auto* to = results.empty() ? nullptr : std::get_if<Tensor>(&results[0]);
  if (from == nullptr || to == nullptr || from->domain() != Domain::kFloat ||
      to->domain() != Domain::kInteger) {
    return false;
  }
  return std::ranges::any_of(from->Read(),
                             [](uint64_t word) { return IsNumber(word) && !WholeOf(word); });
}

}  // namespace strata::prove
