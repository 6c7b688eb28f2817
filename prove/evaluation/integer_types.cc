#include "prove/evaluation/integer_types.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/ops.h"
#include "prove/ops/elementwise.h"

namespace strata::prove {

uint64_t StoredAs(DType dtype, uint64_t word) {
  switch (dtype) {
    case DType::kBool:
      return word != 0 ? 1 : 0;
    case DType::kU8:
      return static_cast<uint8_t>(word);
    case DType::kU16:
      return static_cast<uint16_t>(word);
    case DType::kU32:
      return static_cast<uint32_t>(word);
    case DType::kI8:
      return Word(static_cast<int8_t>(word));
    case DType::kI16:
      return Word(static_cast<int16_t>(word));
    case DType::kI32:
      return Word(static_cast<int32_t>(word));
    default:
      return word;
  }
}

void StoreIntegers(const Graph& graph, NodeId node, std::span<Value> results) {
  const size_t count = std::min<size_t>(results.size(), graph.node(node).num_results);
  for (size_t i = 0; i < count; ++i) {
    const TypeId type = graph.value(graph.result(node, i)).type;
    auto* tensor = std::get_if<Tensor>(&results[i]);
    if (tensor == nullptr || tensor->domain() != Domain::kInteger || !type.valid()) continue;
    const DType dtype = graph.module().types()[type].dtype;
    std::vector<uint64_t> words = tensor->Read();
    bool is_stored = true;
    for (uint64_t& word : words) {
      const uint64_t stored = StoredAs(dtype, word);
      is_stored = is_stored && stored == word;
      word = stored;
    }
    if (is_stored) continue;
    if (TraitsOf(graph.op(node)).mutates) {
      tensor->Write(words);
    } else {
      *tensor = OfWords(Domain::kInteger, tensor->sizes(), std::move(words));
    }
  }
}

}  // namespace strata::prove
