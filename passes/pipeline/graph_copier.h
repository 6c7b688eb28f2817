#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ir/graph.h"
#include "ir/rewriter.h"
#include "passes/core/node_copy.h"
#include "passes/pipeline/slots.h"

namespace strata {

/// Writes a part of a graph as a graph of the same module. Copies have names, metadata and
/// attributes of their originals, and come from them in the provenance.
class GraphCopier {
 public:
  /// REQUIRES: `to` is empty; both outlive this.
  GraphCopier(const Graph& from, Graph& to) : from_(from), own_(to), rewriter_(*own_) {}
  /// Into a graph that has nodes of another copier; `prefix` distinguishes the names of this one's.
  GraphCopier(const Graph& from, Rewriter& to, std::string prefix)
      : from_(from), rewriter_(to), prefix_(std::move(prefix)) {}
  GraphCopier(const GraphCopier&) = delete;
  GraphCopier& operator=(const GraphCopier&) = delete;

  /// A placeholder that stands for `value`. A copied placeholder keeps its attributes.
  NodeId AddInput(ValueId value, const StageSlot& slot);
  /// Copies a call. REQUIRES: `Has` each of its operands.
  NodeId Copy(NodeId node) {
    return CopyNode(from_, node, rewriter_, values_, {.prefix = prefix_});
  }
  /// Ends the graph: `outputs` are values of the original, none for an output None.
  void SetOutputs(std::span<const std::optional<ValueId>> outputs,
                  const std::vector<StageSlot>& slots);

  bool Has(ValueId value) const { return values_.contains(value); }
  /// The copy of a value. REQUIRES: Has(value).
  ValueId operator()(ValueId value) const { return values_.at(value); }
  /// Lets `copy` stand for `value`.
  void Map(ValueId value, ValueId copy) { values_[value] = copy; }

  Rewriter& rewriter() { return rewriter_; }

 private:
  const Graph& from_;
  std::optional<Rewriter> own_;
  Rewriter& rewriter_;
  std::string prefix_;
  CopiedValues values_;
};

/// Ranks hold tensors and integers between two graphs.
/// Errors: a value of another type, such as a comparison of sizes.
Status CheckHeld(const Graph& graph, ValueId value);

/// What a graph returns: none for None, in order. REQUIRES: the graph has an output node.
std::vector<std::optional<ValueId>> OutputsOf(const Graph& graph);

}  // namespace strata
