#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/rewriter.h"
#include "prove/layers/layers.h"

namespace strata::prove {

/// Two graphs of which a part is left out.
struct CutPair {
  std::unique_ptr<Module> before_module, after_module;
  const Graph* before = nullptr;
  const Graph* after = nullptr;
};

/// Leaves nodes out of two graphs. What stays reads new inputs, equal ones in both graphs, in the
/// place of values that are left out and that a proof compares (LayeredPair::GivenFor). Others are
/// computed, so what they are computed from stays.
class PairCut {
 public:
  /// What is left out. `output`: whether output i of both graphs is.
  struct Choice {
    std::function<bool(Side, NodeId)> node;
    std::function<bool(size_t)> output;
  };
  struct Place {
    Side side;
    NodeId node;
  };

  /// Whether both graphs have inputs and outputs that can be left out one by one.
  static bool CanCut(const Graph& before, const Graph& after);

  /// REQUIRES: CanCut; the pair outlives this.
  PairCut(const LayeredPair& pair, Choice choice) : pair_(pair), choice_(std::move(choice)) {}

  /// Finds what stays. A node: it has to stay, too, because what stays reads memory of its result
  /// that something writes to; choose again.
  std::optional<Place> Mark();
  int64_t CallsLeftOut(Side side) const;
  /// REQUIRES: Mark returned none.
  CutPair Build() const;

 private:
  /// A new input of both graphs, and what it takes the place of: all equal values that are read,
  /// and their partners.
  struct Given {
    GivenValue value;
    std::array<std::set<ValueId>, 2> places = {};  // by Side
  };

  bool Stays(Side side, NodeId node) const { return stays_[side][static_cast<size_t>(node.index)]; }
  void Keep(Side side, NodeId node);
  bool KeepOperands(Side side, NodeId node);
  bool Need(Side side, ValueId value, bool is_computed);
  void AddPlace(Side side, ValueId value, const GivenValue& given);
  void Compute(const Given& given);
  bool ComputeKnown();
  std::set<ValueId> BasesOf(Side side, const Given& given) const;
  ValueId BaseOf(Side side, ValueId value) const;
  void ComputeRows(Side side, ValueId value);
  void KeepInput(Side side, NodeId node);
  std::unique_ptr<Module> Build(Side side, uint64_t first_id) const;
  void AddGiven(Side side, uint64_t first_id, Rewriter& rewriter) const;
  void DropOutputs(Rewriter& rewriter) const;

  const LayeredPair& pair_;
  Choice choice_;
  std::array<std::vector<bool>, 2> stays_;     // by node
  std::array<std::vector<NodeId>, 2> inputs_;  // of the whole graphs
  std::map<int32_t, Given> given_;             // by value of the graph before
  /// What ranks exchange by counts that are computed, and the indices that it is made by. It has as
  /// many rows as the counts say, which new inputs would not have, so it is computed, too.
  std::array<std::set<NodeId>, 2> rows_;
  std::vector<Place> work_;
  NodeId refused_;  // of the last Need that failed
};

}  // namespace strata::prove
