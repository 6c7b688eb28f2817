#include "runtime/exec/static/substitutes.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace strata {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTensorOverloads[] = {
    {"aten.add.Scalar", "aten.add.Tensor"},   {"aten.sub.Scalar", "aten.sub.Tensor"},
    {"aten.mul.Scalar", "aten.mul.Tensor"},   {"aten.div.Scalar", "aten.div.Tensor"},
    {"aten.add_.Scalar", "aten.add_.Tensor"}, {"aten.sub_.Scalar", "aten.sub_.Tensor"},
    {"aten.mul_.Scalar", "aten.mul_.Tensor"}, {"aten.div_.Scalar", "aten.div_.Tensor"},
};

// Operators whose result is memory of one number, and which argument that is.
constexpr int kZero = -1, kAnything = -2, kOne = -3;
constexpr std::pair<std::string_view, int> kFills[] = {
    {"aten.ones.default", kOne},
    {"aten.ones_like.default", kOne},
    {"aten.new_ones.default", kOne},
    {"aten.empty.memory_format", kAnything},
    {"aten.empty_like.default", kAnything},
    {"aten.new_empty.default", kAnything},
    {"aten.zeros.default", kZero},
    {"aten.zeros_like.default", kZero},
    {"aten.new_zeros.default", kZero},
    {"aten.scalar_tensor.default", 0},
    {"aten.full.default", 1},
    {"aten.full_like.default", 1},
    {"aten.new_full.default", 2},
};

// Operators that copy their first operand, perhaps to another dtype or shape.
constexpr std::string_view kCopies[] = {"aten.clone.default", "aten._to_copy.default",
                                        "aten.reshape.default", "aten.contiguous.default"};

// Operators that have read a row of their first operand when they write that row of the result.
constexpr std::string_view kRowwise[] = {
    "aten._log_softmax.default", "aten._log_softmax_backward_data.default", "aten._softmax.default",
    "aten._softmax_backward_data.default"};

}  // namespace

PlanStep WithTensorOverload(const PlanStep& step) {
  PlanStep changed = step;
  for (const auto& [from, to] : kTensorOverloads) {
    if (step.op == from) changed.op = to;
  }
  return changed;
}

std::optional<Fill> FillOf(const PlanStep& step) {
  const auto known = std::ranges::find(kFills, step.op, &std::pair<std::string_view, int>::first);
  if (known == std::end(kFills)) return std::nullopt;
  const int argument = known->second;
  if (argument == kAnything) return Fill{};
  if (argument < 0) return Fill{int64_t{argument == kOne ? 1 : 0}};
  if (static_cast<size_t>(argument) >= step.args.size()) return std::nullopt;
  const PlanArg& number = step.args[static_cast<size_t>(argument)];
  switch (number.kind) {
    case ArgKind::kInt:
      return Fill{number.integer};
    case ArgKind::kBool:
      return Fill{number.integer != 0};
    case ArgKind::kFloat:
      return Fill{number.real};
    default:
      return std::nullopt;
  }
}

bool IsCopy(const PlanStep& step) {
  return std::ranges::find(kCopies, step.op) != std::end(kCopies) && !step.args.empty() &&
         step.args[0].kind == ArgKind::kValue;
}

bool ReadsRowsFirst(const PlanStep& step) {
  return std::ranges::find(kRowwise, step.op) != std::end(kRowwise);
}

}  // namespace strata
