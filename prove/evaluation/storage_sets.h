#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace strata::prove {

/// Operators whose results are in flight until a wait.
inline constexpr std::string_view kLaunchPrefix = "_c10d_functional.";

/// Sets of values that may share a storage.
class StorageSets {
 public:
  explicit StorageSets(const Graph& graph);
  /// The set of a value, by the index of one of its values.
  int32_t Find(ValueId value);

 private:
  void JoinResults(const Graph& graph, NodeId node);
  void Join(ValueId a, ValueId b) { parents_[static_cast<size_t>(Find(a))] = Find(b); }

  std::vector<int32_t> parents_;
};

/// What a node writes to: `add_` and `out=` to one operand, other operators that write maybe to
/// all.
std::vector<ValueId> WrittenBy(const Graph& graph, NodeId node);

}  // namespace strata::prove
