#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "prove/evaluation/stated_constants.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Calls of operators without a definition.
struct OpaqueCalls {
  std::map<uint64_t, std::string> names;  ///< by a hash of operator, literals and operands
  std::set<std::string> writers;          ///< those that may write to any of their operands

  void Add(const OpaqueCalls& others) {
    names.insert(others.names.begin(), others.names.end());
    writers.insert(others.writers.begin(), others.writers.end());
  }
};

/// Results of nodes that are not evaluated.
using GivenResults = std::map<NodeId, Values>;

/// Whether an operator draws random numbers. Those with a definition draw none that are evaluated.
bool DrawsNumbers(std::string_view op);

/// Evaluates a graph exactly, node by node.
class Evaluator {
 public:
  /// Called after each node that is not the output; may overwrite the elements of its results.
  using Observer = std::function<void(NodeId node, std::span<Value> results)>;

  /// Sizes that are symbols have their hints. `rounds`: results of narrow types are rounded
  /// (prove/evaluation/rounding.h). REQUIRES: the graph outlives this.
  Evaluator(const Graph& graph, uint64_t seed, bool rounds = false)
      : graph_(graph), seed_(seed), rounds_(rounds) {}

  /// Operators draw random numbers from one generator, in program order: what a call returns is a
  /// function of all draws before it. Without this they fail: two graphs that are evaluated one
  /// after the other would draw the same numbers.
  void SeedGenerator() { generator_ = 0; }
  /// Draws the numbers that follow those of another graph, which ran to its end.
  void DrawAfter(const Evaluator& other) { generator_ = other.generator_; }

  /// What attributes hold. Others hold random numbers. REQUIRES: outlives this.
  void SetConstants(const ConstantNumbers& constants) { constants_ = &constants; }
  /// Results of nodes of the graph, for nodes that are not evaluated. REQUIRES: outlives this.
  void SetResults(const GivenResults& results) { given_ = &results; }

  /// Runs the graph. `inputs`: one for each placeholder; operators may write to them. Returns what
  /// the output node returns, flattened. Errors: a call that fails in PyTorch too, by the name of
  /// its node.
  Result<std::vector<Value>> Run(std::span<const Value> inputs, const Observer& observe = {});

  // The same in steps, for graphs whose nodes are evaluated together: `Begin`, then for each node
  // but the output, in program order, `Evaluate` and `Set`, then `Outputs`.

  void Begin(std::span<const Value> inputs);
  /// The results of a node. Errors: as `Run`.
  Result<Values> Evaluate(NodeId node);
  /// What nodes that are evaluated later read as the results of `node`.
  void Set(NodeId node, Values results);
  /// REQUIRES: a node that is not evaluated yet reads it.
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  std::vector<Value> Outputs() const;
  /// The integers of a list: literals, sizes, or results of nodes. Errors: another argument.
  Result<Sizes> IntegersOf(const Arg& list) const;

  /// Operators without a definition that were called. Of those only this is known: equal calls give
  /// equal results.
  const std::set<std::string>& opaque() const { return opaque_; }
  /// Their calls, as hashes of what they read, with their names.
  const OpaqueCalls& opaque_calls() const { return opaque_calls_; }
  int64_t evaluations() const { return evaluations_; }
  /// Numbers that a bound took the place of: what bounds them reads another number than they are.
  int64_t at_bound() const { return at_bound_; }
  /// The node at which the last run failed; none: it did not.
  NodeId failed() const { return failed_; }

 private:
  Result<Values> EvaluateNode(NodeId node);
  Result<Values> EvaluateCall(NodeId node);
  Result<Values> EvaluateOpaque(NodeId node, Call& call);
  /// A key of what a call of an operator without a definition returns, after it wrote its operands.
  Result<uint64_t> KeyOfOpaque(NodeId node, Call& call);
  Result<Values> EvaluateDropout(const Call& call);
  /// A key of the next random numbers. Errors: there is no generator.
  Result<uint64_t> Draw(std::string_view what);
  /// The next numbers depend on how many were drawn.
  void CountDrawn(const Value& drawn);
  Result<Value> Attribute(NodeId node);
  Result<Argument> ArgumentOf(const Arg& arg) const;
  Result<Call> CallOf(NodeId node);
  /// Masks in a list of indices become the places where they are true.
  void ReplaceMasks(const Arg& list, Argument& argument) const;

  const Graph& graph_;
  uint64_t seed_;
  bool rounds_;
  const ConstantNumbers* constants_ = nullptr;
  const GivenResults* given_ = nullptr;
  std::span<const Value> inputs_;
  size_t next_input_ = 0;
  std::vector<Value> values_;         // by ValueId
  std::map<int32_t, Values> tuples_;  // by ValueId: that nodes take apart (ir/taken_elements.h)
  std::map<DimId, int64_t> sizes_;    // that nodes read of data: numbers of rows
  std::vector<int32_t> order_;        // by NodeId
  std::vector<int32_t> last_use_;     // by ValueId: position of the last node that reads it
  std::set<std::string> opaque_;
  OpaqueCalls opaque_calls_;
  std::optional<uint64_t> generator_;  // a hash of what was drawn
  int64_t evaluations_ = 0;
  int64_t at_bound_ = 0;
  NodeId failed_;
};

/// Random inputs for a graph, the same for the same seed, names and types: numbers are not 0;
/// integers that index a dimension lie in it, and some labels are ignored, other numbers of them in
/// each part of the batch, and, where ranks have inputs of their own, on each `rank`. Errors: an
/// input of unknown type or size.
Result<std::vector<Value>> MakeInputs(const Graph& graph, uint64_t seed,
                                      std::optional<int64_t> rank = {});

/// The value with memory of its own.
Value CopyOf(const Value& value);

}  // namespace strata::prove
