#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "ir/graph.h"
#include "prove/evaluation/kept_results.h"
#include "prove/values/compare.h"

namespace strata::prove {

/// What the reference computed.
class ReferenceValues {
 public:
  ReferenceValues(const Graph& graph, size_t max_words) : graph_(graph), kept_(graph, max_words) {}

  void Clear() {
    kept_.Clear();
    nodes_.clear();
  }
  void Keep(NodeId node, std::span<const Value> results) {
    const Values values(results.begin(), results.end());
    for (const Value& value : values)
      if (const auto* tensor = std::get_if<Tensor>(&value))
        nodes_.try_emplace(ContentHash(*tensor), graph_.name(node));
    kept_.Keep(node, {&values, 1});
  }
  const KeptResults::Results* Find(StableId id) const { return kept_.Find(id); }
  /// A node that computed the same elements; "": none did.
  std::string NodeWith(const Tensor& tensor) const {
    const auto found = nodes_.find(ContentHash(tensor));
    return found == nodes_.end() ? "" : found->second;
  }

 private:
  const Graph& graph_;
  KeptResults kept_;
  std::unordered_map<uint64_t, std::string> nodes_;
};

}  // namespace strata::prove
