#include "runtime/train/pipeline/pipeline_stages.h"

#include <string_view>

#include <fmt/format.h>

#include "passes/pipeline/multiplex_overlaps.h"
#include "passes/pipeline/split_stages.h"

namespace strata {
namespace {

class StageBinder {
 public:
  StageBinder(const TracedTraining& traced, std::span<const int64_t> rank_of_stage, int64_t rank,
              BoundStages& out)
      : traced_(traced), rank_of_stage_(rank_of_stage), rank_(rank), out_(out) {}

  Status Bind(std::span<const Action> program) {
    const Graph& step = *traced_.module->FindGraph(kStepGraph);
    out_.input_index = InputPositions(step);
    for (const NodeId node : step.placeholders())
      if (step.attribute(node, "input") == "parameter")
        out_.gradient_index.emplace(StageInputName(step, node), out_.gradient_index.size());
    out_.num_extras = step.operands(step.output()).size() - 1 - out_.gradient_index.size();
    for (size_t stage = 0; stage < rank_of_stage_.size(); ++stage) {
      if (rank_of_stage_[stage] != rank_) continue;
      const std::string name = fmt::format("stage{}", stage);
      StageGraphs made;
      STRATA_TRY(made.forward, Resolve(name + ".forward"));
      STRATA_TRY(made.backward, Resolve(name + ".backward"));
      if (traced_.module->FindGraph(name + ".backward_input") != nullptr) {
        STRATA_TRY(made.input, Resolve(name + ".backward_input"));
        STRATA_TRY(made.weight, Resolve(name + ".backward_weight"));
      }
      if (traced_.module->FindGraph(kAccumulateGraph) != nullptr) {
        STRATA_TRY(made.accumulate, Resolve(name + ".accumulate"));
      }
      for (const auto& [suffix, graph] :
           {std::pair(".unshard", &made.unshard), {".reduce", &made.reduce}})
        if (traced_.module->FindGraph(name + suffix) != nullptr) {
          STRATA_TRY(*graph, Resolve(name + suffix));
        }
      if (traced_.module->FindGraph(kValidateGraph) != nullptr) {
        STRATA_TRY(made.validate, Resolve(name + std::string(kStageValidateSuffix)));
      }
      out_.stages.emplace(static_cast<int64_t>(stage), std::move(made));
    }
    for (const Action& action : program) {
      if (action.type != ActionType::kOverlap) continue;
      std::string name = OverlapGraphName(action.parts.at(0).stage, action.parts.at(1).stage);
      if (traced_.module->FindGraph(name) != nullptr) out_.overlaps.insert(std::move(name));
    }
    return FindShared();
  }

 private:
  Status FindShared() {
    const Graph& step = *traced_.module->FindGraph(kStepGraph);
    std::map<std::string, std::set<int64_t>> readers;
    for (size_t stage = 0; stage < rank_of_stage_.size(); ++stage) {
      const Graph* graph = traced_.module->FindGraph(fmt::format("stage{}", stage));
      STRATA_TRY(const StageSlots slots, StageSlotsOf(*graph));
      for (const StageSlot& slot : slots.inputs)
        if (slot.kind == StageSlot::Kind::kInput) readers[slot.name].insert(rank_of_stage_[stage]);
    }
    for (const NodeId node : step.placeholders()) {
      if (step.attribute(node, "input") != "parameter") continue;
      const std::string stage(step.attribute(node, kStageAttribute));
      SharedParameter shared{.name = StageInputName(step, node),
                             .owner = rank_of_stage_[static_cast<size_t>(std::stoull(stage))]};
      shared.input = out_.input_index.at(shared.name);
      shared.readers = readers[shared.name];
      shared.readers.erase(shared.owner);
      if (!shared.readers.empty()) out_.shared.push_back(std::move(shared));
    }
    return Ok();
  }

  Result<StageGraph> Resolve(const std::string& name) const {
    const Graph* graph = traced_.module->FindGraph(name);
    if (graph == nullptr)
      return Error("no graph '{}': pipeline: run split-stages, split-backward, split-optimizer",
                   name);
    STRATA_TRY(const StageSlots slots, StageSlotsOf(*graph));
    const bool accumulates = name.ends_with(".accumulate");
    const std::map<std::string, size_t> sums =
        accumulates ? InputPositions(*traced_.module->FindGraph(kAccumulateGraph))
                    : std::map<std::string, size_t>();
    const auto number_of = [&](const StageSlot& slot) -> size_t {
      switch (slot.kind) {
        case StageSlot::Kind::kInput:
          return accumulates ? sums.at(slot.name) : out_.input_index.at(slot.name);
        case StageSlot::Kind::kParameterGradient:
          return out_.gradient_index.at(slot.name);
        case StageSlot::Kind::kLoss:
          return 0;
        default:
          return static_cast<size_t>(std::stoull(slot.name));
      }
    };
    StageGraph resolved{.name = name, .inputs = {}, .outputs = {}};
    for (const StageSlot& slot : slots.inputs)
      resolved.inputs.emplace_back(slot.kind, number_of(slot));
    for (const StageSlot& slot : slots.outputs)
      resolved.outputs.emplace_back(slot.kind, number_of(slot));
    return resolved;
  }

  const TracedTraining& traced_;
  std::span<const int64_t> rank_of_stage_;
  int64_t rank_;
  BoundStages& out_;
};

}  // namespace

std::map<std::string, size_t> InputPositions(const Graph& graph) {
  std::map<std::string, size_t> positions;
  for (const NodeId node : graph.placeholders())
    positions.emplace(StageInputName(graph, node), positions.size());
  return positions;
}

Result<BoundStages> BindStages(const TracedTraining& traced, std::span<const int64_t> rank_of_stage,
                               int64_t rank, std::span<const Action> program) {
  BoundStages bound;
  STRATA_RETURN_IF_ERROR(StageBinder(traced, rank_of_stage, rank, bound).Bind(program));
  return bound;
}

}  // namespace strata
