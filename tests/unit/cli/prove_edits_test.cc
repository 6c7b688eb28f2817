// What a proof says of random edits of a graph that PyTorch made.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"
#include "ir/rewriter.h"
#include "prove/evaluation/evaluator.h"
#include "prove/proof.h"
#include "prove/sizes/reduce.h"
#include "prove/values/compare.h"
#include "refs/ref.h"
#include "tests/support/graphs.h"

namespace strata::cli {
namespace {

using testing::OrDie;

struct Edit {
  NodeId node;
  uint32_t argument = 0;
  ValueId from, to;
};

/// Reads another value of the same type; none: the node has no operand with such a value.
class Edits {
 public:
  explicit Edits(const Graph& graph) : graph_(graph), is_used_(graph.node_bound()) {
    MarkUsed(graph.output());
    for (const NodeId node : graph.nodes()) {
      for (size_t i = 0; i < graph.node(node).num_results; ++i)
        if (graph.value(graph.result(node, i)).type.valid())
          values_.push_back(graph.result(node, i));
      nodes_.push_back(node);
    }
  }

  std::optional<Edit> Draw(uint64_t seed) const {
    const NodeId node = nodes_[Mix(seed) % nodes_.size()];
    const auto args = graph_.args(node);
    if (!is_used_[static_cast<size_t>(node.index)] || args.empty() ||
        graph_.node(node).kind != NodeKind::kCall)
      return std::nullopt;
    const auto argument = static_cast<uint32_t>(Mix(seed + 1) % args.size());
    if (!args[argument].is_value()) return std::nullopt;
    const ValueId from = args[argument].value();
    std::vector<ValueId> others;
    for (const ValueId value : values_) {
      if (graph_.value(value).def == node) break;
      if (value != from && graph_.value(value).type == graph_.value(from).type)
        others.push_back(value);
    }
    if (others.empty()) return std::nullopt;
    return Edit{node, argument, from, others[Mix(seed + 2) % others.size()]};
  }

 private:
  /// Outputs are computed from it.
  void MarkUsed(NodeId node) {
    std::vector<NodeId> work = {node};
    while (!work.empty()) {
      const NodeId next = work.back();
      work.pop_back();
      if (is_used_[static_cast<size_t>(next.index)]) continue;
      is_used_[static_cast<size_t>(next.index)] = true;
      graph_.ForEachOperand(next, [&](ValueId value) { work.push_back(graph_.value(value).def); });
    }
  }

  const Graph& graph_;
  std::vector<bool> is_used_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> values_;  // in program order
};

TEST_CASE("PV-79: of 1,000 random operands of a joint graph, each that changes a result is found") {
  const Snapshot snapshot =
      OrDie(LoadRef("tests/data/logs/llama3_compile_torch2.11.log.zst#graph=aot_joint_graph"));
  const auto reduced = OrDie(prove::Reduce(snapshot.graph(), snapshot.graph(), {}));
  const Graph& graph = *reduced.before;
  // With other inputs than those of the proof.
  const auto result_of = [&](const Graph& of, NodeId wanted) {
    std::vector<prove::Value> inputs = OrDie(prove::MakeInputs(graph, 2)), result;
    prove::Evaluator evaluator(of, 2);
    REQUIRE(evaluator.Run(inputs, [&](NodeId node, std::span<prove::Value> results) {
      if (node != wanted) return;
      for (prove::Value& value : results)
        result.push_back(prove::CopyOf(value));
    }));
    return result;
  };

  const Edits edits(graph);
  int tried = 0, caught = 0;
  std::vector<std::string> escaped;
  for (uint64_t seed = 1; tried < 1000; seed += 3) {
    const auto edit = edits.Draw(seed);
    if (!edit) continue;
    ++tried;
    const std::unique_ptr<Module> copy = graph.module().Clone();
    Graph& mutant = copy->graph(graph.id());
    Rewriter(mutant).SetSlot(edit->node, mutant.node(edit->node).args_begin + edit->argument,
                             Arg(edit->to));
    const prove::Proof proof = prove::Prove(graph, mutant, {.max_findings = 1});
    caught += proof.verdict == prove::Verdict::kProven ? 0 : 1;
    if (proof.verdict != prove::Verdict::kProven) continue;
    if (std::ranges::equal(
            result_of(graph, edit->node), result_of(mutant, edit->node),
            [](const prove::Value& a, const prove::Value& b) { return prove::SameValue(a, b); }))
      continue;
    escaped.push_back(fmt::format("{} of {}: {} for {}", edit->argument, graph.name(edit->node),
                                  graph.value_name(edit->to), graph.value_name(edit->from)));
  }
  CHECK_EQ(fmt::format("{}", fmt::join(escaped, "\n")), "");
  CHECK_GE(caught, 900);
}

}  // namespace
}  // namespace strata::cli
