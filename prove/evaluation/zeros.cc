#include "prove/evaluation/zeros.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata::prove {
namespace {

constexpr std::array<std::string_view, 11> kAsking = {
    "_to_copy",    "all",         "any",         "convert_element_type",
    "eq",          "logical_and", "logical_not", "logical_or",
    "logical_xor", "ne",          "sign"};

DType TypeOf(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() ? graph.module().types()[type].dtype : DType::kUnknown;
}

}  // namespace

bool AsksForZeros(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](NodeId node) {
    if (graph.node(node).kind != NodeKind::kCall || graph.node(node).num_results != 1) return false;
    if (!std::ranges::binary_search(kAsking, BaseName(graph.op(node)))) return false;
    const std::vector<ValueId> operands = graph.operands(node);
    const bool makes_truth = TypeOf(graph, graph.result(node)) == DType::kBool;
    return !operands.empty() && (makes_truth || BaseName(graph.op(node)) == "sign") &&
           DomainOf(TypeOf(graph, operands[0])) == Domain::kFloat;
  });
}

void PutZeros(std::span<Value> inputs, uint64_t seed) {
  uint64_t key = Mix(seed);
  for (Value& input : inputs) {
    key = Mix(key);
    const auto* tensor = std::get_if<Tensor>(&input);
    if (tensor == nullptr || tensor->domain() != Domain::kFloat) continue;
    std::vector<uint64_t> words = tensor->Read();
    for (size_t i = 0; i < words.size(); ++i)
      if (RandomBits(key, i) % 4 == 0) words[i] = 0;
    tensor->Write(words);
  }
}

}  // namespace strata::prove
