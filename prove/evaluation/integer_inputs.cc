#include "prove/evaluation/integer_inputs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/random.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "prove/evaluation/integer_types.h"
#include "prove/ops/elementwise.h"

namespace strata::prove {
namespace {

constexpr std::array<std::string_view, 46> kComputes = {
    "_to_copy",     "abs",         "add",         "all",
    "amax",         "amin",        "any",         "bitwise_and",
    "bitwise_not",  "bitwise_or",  "bitwise_xor", "clamp",
    "clamp_max",    "clamp_min",   "clone",       "convert_element_type",
    "cumsum",       "div",         "eq",          "flip",
    "floor_divide", "fmod",        "full_like",   "ge",
    "gt",           "le",          "logical_and", "logical_not",
    "logical_or",   "logical_xor", "lt",          "masked_fill",
    "maximum",      "mean",        "minimum",     "mul",
    "ne",           "neg",         "ones_like",   "relu",
    "remainder",    "rsub",        "sign",        "sub",
    "sum",          "where"};

bool IsInteger(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid()) return true;  // for all that is known
  const Type& known = graph.module().types()[type];
  return known.kind != TypeKind::kTensor ||
         (DomainOf(known.dtype) == Domain::kInteger && known.dtype != DType::kBool);
}

void AddLiterals(const Graph& graph, NodeId node, NumberUse& use) {
  for (const Arg& arg : graph.args(node))
    if (arg.kind() == ArgKind::kInt) use.literals.push_back(arg.as_int());
}

/// A number whose power of 2 is random, below 2^12 and 2 to the bits of the type. A product of five
/// is exact.
uint64_t RandomMagnitude(DType dtype, uint64_t bits) {
  constexpr int64_t kMostBits = 12;
  const auto most = static_cast<uint64_t>(std::min(kMostBits, 8 * ByteSize(dtype)));
  const uint64_t power = uint64_t{1} << (bits >> 32U) % most;
  return power + bits % power;
}

}  // namespace

std::optional<NumberUse> NumberUseOf(const Graph& graph, ValueId value) {
  NumberUse use;
  std::set<ValueId> seen = {value};
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    for (const Use reader : graph.uses(next)) {
      const NodeId node = reader.user;
      if (graph.node(node).kind == NodeKind::kOutput) continue;
      const std::string_view op = graph.op(node);
      const bool computes = std::ranges::binary_search(kComputes, BaseName(op));
      if (graph.node(node).kind != NodeKind::kCall || (!computes && !TraitsOf(op).view))
        return std::nullopt;
      if (computes) AddLiterals(graph, node, use);
      for (size_t i = 0; i < graph.node(node).num_results; ++i) {
        const ValueId result = graph.result(node, i);
        if (IsInteger(graph, result) && seen.insert(result).second) open.push_back(result);
      }
    }
  }
  return use;
}

void FillNumbers(const Tensor& tensor, DType dtype, const NumberUse& use, uint64_t key) {
  constexpr uint64_t kSmall = 4;
  std::vector<uint64_t>& words = tensor.storage()->words;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t bits = RandomBits(key, i), rest = bits & ~(uint64_t{3} << 62U);
    uint64_t word = rest % kSmall;
    if (bits >> 62U == 1) word = RandomMagnitude(dtype, rest);
    if (bits >> 62U == 2) word = Word(-Signed(RandomMagnitude(dtype, rest)));
    if (bits >> 62U == 3 && !use.literals.empty())
      word = Word(use.literals[(rest >> 8U) % use.literals.size()]) + rest % 3 - 1;
    words[i] = StoredAs(dtype, word);
  }
}

}  // namespace strata::prove
