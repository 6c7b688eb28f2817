#include "prove/evaluation/rounding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "prove/ops/elementwise.h"

namespace strata::prove {
namespace {

/// Numbers of a narrow type are known by their low bits, as those of a floating-point type are:
/// other numbers have these by chance, about one in 65,536.
constexpr uint64_t kLowBits = 0xffff;
constexpr Residue kLargest = (Residue{1} << 60U) - 1;  // below half of the prime

bool IsEightBits(DType dtype) {
  return ByteSize(dtype) == 1;
}

uint64_t LowBitsOf(DType dtype) {
  return 0x8000 + static_cast<uint64_t>(dtype);
}

/// 16 bits have all numbers of 8.
bool HasNumber(DType dtype, Residue magnitude) {
  constexpr Residue kSmall = 16;
  const uint64_t low = magnitude & kLowBits;
  if (magnitude <= kSmall || low == LowBitsOf(dtype)) return true;
  return !IsEightBits(dtype) &&
         (low == LowBitsOf(DType::kF8E4M3FN) || low == LowBitsOf(DType::kF8E5M2));
}

}  // namespace

bool IsNarrow(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
      return true;
    default:
      return false;
  }
}

bool HasNarrowValues(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const TypeId type = graph.value(graph.result(node, i)).type;
      if (type.valid() && IsNarrow(graph.module().types()[type].dtype)) return true;
    }
  }
  return false;
}

Residue Round(Residue x, DType dtype) {
  if (!IsNumber(x)) return x;
  const bool is_negative = x > kPrime / 2;
  const Residue magnitude = is_negative ? kPrime - x : x;
  if (HasNumber(dtype, magnitude)) return x;
  const Residue hash = Uninterpreted(FunctionKey(ShortName(dtype)), magnitude);
  const Residue rounded = (hash & kLargest & ~kLowBits) | LowBitsOf(dtype);
  return is_negative ? kPrime - rounded : rounded;
}

void RoundResults(const Graph& graph, NodeId node, std::span<Value> results) {
  const size_t count = std::min<size_t>(results.size(), graph.node(node).num_results);
  for (size_t i = 0; i < count; ++i) {
    const TypeId type = graph.value(graph.result(node, i)).type;
    auto* tensor = std::get_if<Tensor>(&results[i]);
    if (tensor == nullptr || tensor->domain() != Domain::kFloat || !type.valid()) continue;
    const DType dtype = graph.module().types()[type].dtype;
    if (!IsNarrow(dtype)) continue;
    const std::vector<uint64_t> words = tensor->Read();
    std::vector<uint64_t> rounded = words;
    for (uint64_t& word : rounded)
      word = Round(word, dtype);
    if (rounded == words) continue;
    // Memory that others see, too: of an input, or written in place.
    const bool is_shared =
        graph.node(node).kind == NodeKind::kPlaceholder || TraitsOf(graph.op(node)).mutates;
    if (is_shared) {
      tensor->Write(rounded);
    } else {
      *tensor = OfWords(Domain::kFloat, tensor->sizes(), std::move(rounded));
    }
  }
}

}  // namespace strata::prove
