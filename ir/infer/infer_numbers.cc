#include <optional>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/infer/infer_rules.h"

namespace strata {
namespace {

using Types = std::vector<Type>;

Types ReadNumber(const InferredCall& call) {
  const auto name = fmt::format("u{}", call.node().index);
  return {call.SymInt(call.dims().Sym(name))};
}
Types SizeOf(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto dim = x == nullptr ? std::nullopt : call.DimOf(1, "dim", x->sizes.size());
  return dim ? Types{call.SymInt(x->sizes[*dim])} : Types();
}

Types OfNumbers(const InferredCall& call, DimId (DimTable::*operation)(DimId, DimId)) {
  const Arg *left = call.FindArg(0, ""), *right = call.FindArg(1, "");
  const auto a = left ? call.Size(*left) : std::nullopt;
  const auto b = right ? call.Size(*right) : std::nullopt;
  return a && b ? Types{call.SymInt((call.dims().*operation)(*a, *b))} : Types();
}
Types AddNumbers(const InferredCall& call) {
  return OfNumbers(call, &DimTable::Add);
}
Types SubtractNumbers(const InferredCall& call) {
  const Arg *left = call.FindArg(0, ""), *right = call.FindArg(1, "");
  const auto a = left ? call.Size(*left) : std::nullopt;
  const auto b = right ? call.Size(*right) : std::nullopt;
  if (!a || !b) return {};
  return {call.SymInt(call.dims().Add(*a, call.dims().Mul(*b, call.dims().Const(-1))))};
}
Types MultiplyNumbers(const InferredCall& call) {
  return OfNumbers(call, &DimTable::Mul);
}
Types DivideNumbers(const InferredCall& call) {
  return OfNumbers(call, &DimTable::FloorDiv);
}

/// `torch.sym_sum((u0, u1))`
Types SumOfNumbers(const InferredCall& call) {
  const auto numbers = call.Sizes(0, "args");
  if (!numbers) return {};
  DimId sum = call.dims().Const(0);
  for (const DimId number : *numbers)
    sum = call.dims().Add(sum, number);
  return {call.SymInt(sum)};
}

}  // namespace

InferRule NumberRuleOf(std::string_view op) {
  static const std::unordered_map<std::string_view, InferRule> rules = {
      {"_operator.add", AddNumbers},
      {"_operator.floordiv", DivideNumbers},
      {"_operator.mul", MultiplyNumbers},
      {"_operator.sub", SubtractNumbers},
      {"aten._local_scalar_dense.default", ReadNumber},
      {"aten.sym_size.int", SizeOf},
      {"torch.sym_sum", SumOfNumbers},
  };
  const auto found = rules.find(op);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace strata
