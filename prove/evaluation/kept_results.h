#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "prove/evaluation/shared_calls.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Results of the nodes of a graph on each of its ranks, to compare those of another graph with.
/// Values are kept as long as they take little memory; of the others a hash says whether they are
/// equal.
class KeptResults {
 public:
  /// `max_words`: of values. REQUIRES: the graph outlives this.
  KeptResults(const Graph& graph, size_t max_words)
      : graph_(graph), shared_(graph), max_words_(max_words) {}

  struct Results {
    NodeId node;
    std::vector<Values> values;  // by rank; none: too many were kept before
    /// Then: by rank and result. None: any value is equal to it.
    std::vector<std::vector<std::optional<uint64_t>>> hashes;
  };

  void Clear();
  /// Keeps the results on each rank of a node that was evaluated.
  void Keep(NodeId node, std::span<const Values> results);
  /// Null: the graph has no such node.
  const Results* Find(StableId id) const;

 private:
  const Graph& graph_;
  const SharedCalls shared_;
  size_t max_words_;
  size_t words_ = 0;
  std::set<const Storage*> counted_;  // of values that are kept: so each stays where it is
  std::map<StableId, Results> by_id_;
};

/// What is said of a value that differs from one of which a hash was kept.
inline constexpr std::string_view kOtherElements = "other elements than expected";

/// How many results of a node are kept.
size_t NumResults(const KeptResults::Results& kept);

/// Whether result `i` that was kept equals result `j` on each rank.
bool IsEqual(const KeptResults::Results& kept, size_t i, std::span<const Values> results, size_t j);

}  // namespace strata::prove
