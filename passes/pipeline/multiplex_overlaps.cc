#include "passes/pipeline/multiplex_overlaps.h"

#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/pipeline/calls.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"
#include "passes/placement/placement.h"

namespace strata {
namespace {

using OverlapPair = std::pair<int64_t, int64_t>;

Result<OverlapPair> ParsePair(std::string_view text) {
  OverlapPair pair;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, pair.first);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '-') {
    const auto second = std::from_chars(first.ptr + 1, end, pair.second);
    if (second.ec == std::errc() && second.ptr == end) return pair;
  }
  return Error(
      "not a pair of stages: '{}': multiplex-overlaps: write forward and backward, as in 0-3;3-0",
      text);
}

Result<std::vector<OverlapPair>> ParsePairs(std::string_view text) {
  std::vector<OverlapPair> pairs;
  while (true) {
    const size_t end = text.find(';');
    STRATA_TRY(pairs.emplace_back(), ParsePair(text.substr(0, end)));
    if (end == text.npos) return pairs;
    text.remove_prefix(end + 1);
  }
}

Result<const Graph*> PartOf(const Module& module, const std::string& name) {
  const Graph* graph = module.FindGraph(name);
  if (graph != nullptr) return graph;
  return Error("no graph '{}': multiplex-overlaps: take stages that split-backward split", name);
}

/// Copies the inputs, and after those of all parts the calls.
class PartCopier {
 public:
  PartCopier(const Graph& graph, Rewriter& rewriter, std::string prefix)
      : graph_(graph), copier_(graph, rewriter, std::move(prefix)) {}

  Status CopyInputs() {
    STRATA_TRY(slots_, StageSlotsOf(graph_));
    const std::vector<NodeId> inputs = graph_.placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
      STRATA_RETURN_IF_ERROR(CheckHeld(graph_, graph_.result(inputs[i])));
      copier_.AddInput(graph_.result(inputs[i]), slots_.inputs[i]);
    }
    return Ok();
  }
  void CopyCalls() {
    for (const NodeId node : graph_.nodes())
      if (IsCall(graph_, node)) copier_.Copy(node);
  }
  void AddOutputs(std::vector<Arg>& results, std::vector<StageSlot>& slots) const {
    for (const std::optional<ValueId>& output : OutputsOf(graph_))
      results.push_back(output ? Arg(copier_(*output)) : Arg::None());
    slots.insert(slots.end(), slots_.outputs.begin(), slots_.outputs.end());
  }

 private:
  const Graph& graph_;
  GraphCopier copier_;
  StageSlots slots_;
};

Status Multiplex(const Graph& forward, const Graph& backward, Graph& target) {
  Rewriter rewriter(target);
  PartCopier of_backward(backward, rewriter, "bw_"), of_forward(forward, rewriter, "");
  STRATA_RETURN_IF_ERROR(of_backward.CopyInputs());
  STRATA_RETURN_IF_ERROR(of_forward.CopyInputs());
  of_backward.CopyCalls();
  of_forward.CopyCalls();
  std::vector<Arg> results;
  std::vector<StageSlot> slots;
  of_backward.AddOutputs(results, slots);
  of_forward.AddOutputs(results, slots);
  const Arg list = rewriter.MakeSpan(ArgKind::kList, results);
  const NodeId output = rewriter.Create({.kind = NodeKind::kOutput,
                                         .args = std::span(&list, 1),
                                         .name = forward.name(forward.output())},
                                        From(forward, {forward.output()}, Origin::kCloned));
  SetOutputSlots(rewriter, slots);
  const std::string mesh(forward.attribute(forward.output(), kMeshAttribute));
  if (!mesh.empty()) rewriter.SetAttribute(output, kMeshAttribute, mesh);
  return Ok();
}

}  // namespace

std::string OverlapGraphName(int64_t forward_stage, int64_t backward_stage) {
  return fmt::format("overlap.F{}.B{}", forward_stage, backward_stage);
}

void MultiplexOverlaps::Options::Bind(OptionList& list) {
  list.Add("pairs", pairs, "stages of forward and backward, as in 0-3;3-0");
}

Result<Changed> MultiplexOverlaps::Run(Module& module) {
  STRATA_TRY(const std::vector<OverlapPair> pairs, ParsePairs(options_.pairs));
  bool changed = false;
  for (const auto& [forward_stage, backward_stage] : pairs) {
    const std::string name = OverlapGraphName(forward_stage, backward_stage);
    if (module.FindGraph(name) != nullptr) continue;
    STRATA_TRY(const Graph* forward, PartOf(module, fmt::format("stage{}.forward", forward_stage)));
    STRATA_TRY(const Graph* backward,
               PartOf(module, fmt::format("stage{}.backward", backward_stage)));
    STRATA_RETURN_IF_ERROR(Multiplex(*forward, *backward, module.AddGraph(name)));
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata
