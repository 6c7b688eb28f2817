#include "passes/placement/place.h"

#include <utility>
#include <vector>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/placement/decided_outputs.h"
#include "passes/placement/dispatch.h"
#include "passes/placement/gradient_casts.h"
#include "passes/placement/inputs.h"
#include "passes/placement/placed_values.h"
#include "passes/placement/placement.h"
#include "passes/placement/random_values.h"
#include "passes/placement/redistribution.h"
#include "passes/placement/split_lists.h"
#include "passes/placement/strategy_choice.h"
#include "passes/placement/strided_views.h"
#include "passes/placement/value_copies.h"

namespace strata {
namespace {

/// Places one graph.
class GraphPlacer {
 public:
  GraphPlacer(Graph& graph, const PlacementPlan& plan, Reshard reshard)
      : graph_(graph),
        module_(graph.module()),
        plan_(plan),
        dispatches_(graph),
        rewriter_(graph),
        values_(graph, plan),
        choice_(values_, plan, dispatches_),
        copies_(values_, plan, dispatches_, rewriter_, reshard) {}

  Status Run() {
    HoistGradientCasts(rewriter_);
    for (const NodeId node : graph_.nodes().Snapshot()) {
      switch (graph_.node(node).kind) {
        case NodeKind::kPlaceholder:
          STRATA_RETURN_IF_ERROR(PlaceInput(node));
          break;
        case NodeKind::kOutput:
          STRATA_RETURN_IF_ERROR(PlaceOutputs(node));
          break;
        case NodeKind::kGetAttr:
          SetPlacements(graph_.result(node), values_.replicated());
          break;
        default:
          STRATA_RETURN_IF_ERROR(PlaceCall(node));
          break;
      }
    }
    return Ok();
  }

 private:
  Status PlaceInput(NodeId node) {
    const ValueId value = graph_.result(node);
    const Type type = module_.types()[graph_.value(value).type];
    if (type.kind != TypeKind::kTensor) return Ok();
    const std::string name(graph_.attribute(node, "fqn"));
    const PlacedInput kind = KindOf(graph_, node);
    Placements placements = plan_.Replicated();
    if (kind == PlacedInput::kBatch) {
      if (values_.IsStep()) placements = plan_.Batch(module_, type);
      values_.AddBatch(placements);
    } else if (kind == PlacedInput::kParameter) {
      const ParameterPlacement parameter = plan_.Parameter(module_, name, type);
      placements = parameter.stored;
      values_.AddParameter(value, parameter.read);
    } else if (kind != PlacedInput::kOther && !type.sizes.empty()) {
      const std::string_view parameter = ParameterOf(name);
      if (parameter != name) placements = plan_.Parameter(module_, parameter, type).stored;
      if (kind == PlacedInput::kGradient) values_.AddGradient(value);
    }
    SetPlacements(value, placements);
    return Ok();
  }

  Status PlaceCall(NodeId node) {
    STRATA_TRY(const ShardingRule rule, values_.rules().Of(node));
    const std::vector<ValueId> operands = graph_.operands(node);
    STRATA_TRY(StrategyChoice::Choice choice, choice_.Choose(node, rule, operands));
    std::vector<uint32_t> slots = SlotsOf(node);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!values_.IsTensor(operands[i])) continue;
      const ValueId wanted = copies_.ForReader(operands[i], choice.operands[i], node);
      if (wanted != operands[i]) rewriter_.ReplaceUse({node, slots[i]}, wanted);
    }
    for (size_t i = 0; i < rule.results.size(); ++i) {
      SetPlacements(graph_.result(node, i), choice.results[i]);
      copies_.FollowStorage(graph_.result(node, i), operands, graph_.operands(node));
    }
    for (const int operand : rule.written)
      values_.ForgetCopies(operands[static_cast<size_t>(operand)]);
    if (IsCast(graph_, node)) values_.AddCast(graph_.result(node), operands[0]);
    const bool is_view = rule.moves_elements || BaseName(graph_.op(node)) == "constant_pad_nd";
    if (is_view && operands.size() == 1 && values_.IsPinned(operands[0], node))
      values_.AddParameterView(graph_.result(node));
    FollowPlan(node);
    copies_.DecideShared(node);
    return Ok();
  }

  /// Gives what leaves a module the placement that the plan decides.
  void FollowPlan(NodeId node) {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId value = graph_.result(node, i);
      if (!values_.IsTensor(value)) continue;
      const Placements wanted =
          WithDecided(values_.PlacementsOf(value), DecidedOutput(graph_, plan_, value));
      if (wanted == values_.PlacementsOf(value)) continue;
      rewriter_.SetCursorAfter(node);
      const ValueId copy = copies_.Make(value, wanted);
      for (const Use use : UsesOf(value))
        if (use.user != graph_.value(copy).def) rewriter_.ReplaceUse(use, copy);
    }
  }

  std::vector<Use> UsesOf(ValueId value) const {
    std::vector<Use> uses;
    for (const Use use : graph_.uses(value))
      uses.push_back(use);
    return uses;
  }

  /// Gradients are held as their parameters; everything else is whole on each rank.
  Status PlaceOutputs(NodeId output) {
    const std::vector<ValueId> values = graph_.operands(output);
    const std::vector<uint32_t> slots = SlotsOf(output);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values_.IsTensor(values[i])) continue;
      const Placements& wanted = values_.PlacementsOfOutput(values[i], i);
      if (values_.PlacementsOf(values[i]) == wanted) continue;
      rewriter_.ReplaceUse({output, slots[i]}, copies_.ForOutput(values[i], wanted));
    }
    rewriter_.SetAttribute(output, kMeshAttribute, plan_.mesh().Text());
    return Ok();
  }

  void SetPlacements(ValueId value, const Placements& placements) {
    rewriter_.SetType(value, WithPlacements(module_, graph_.value(value).type, placements));
  }

  /// Slots of the operands, in the order of Graph::operands.
  std::vector<uint32_t> SlotsOf(NodeId node) const {
    std::vector<uint32_t> slots;
    const auto visit = [&](uint32_t slot, const auto& self) -> void {
      const Arg& arg = graph_.slot(slot);
      if (arg.is_value()) slots.push_back(slot);
      if (!arg.is_span()) return;
      for (uint32_t i = 0; i < arg.span_size(); ++i)
        self(arg.span_begin() + i, self);
    };
    const Node& n = graph_.node(node);
    for (uint32_t i = 0; i < n.num_args; ++i)
      visit(n.args_begin + i, visit);
    for (uint32_t i = 0; i < n.num_kwargs; ++i)
      visit(n.args_begin + n.num_args + 2 * i + 1, visit);
    return slots;
  }

  Graph& graph_;
  Module& module_;
  const PlacementPlan& plan_;
  const Dispatches dispatches_;
  Rewriter rewriter_;
  PlacedValues values_;
  StrategyChoice choice_;
  ValueCopies copies_;
};

}  // namespace

void Place::Options::Bind(OptionList& list) {
  list.Add("mesh", mesh, "axes of ranks and their sizes, outermost first: \"fsdp=2,tp=4\"");
  list.Add(
      "plan", plan,
      "placements of parameters and module outputs: llama3, qwen3, deepseek_v3, or a TOML file; "
      "auto: the cheapest that a search finds");
  list.Add("topology", topology,
           "of the plan auto, what ranks compute with and exchange through: a100, b200, cpu, h100, "
           "h200, or a TOML file");
  list.Add(
      "memory_policy", memory_policy,
      "of the plan auto, what forward saves for backward: default, eager, full, min_cut, none");
  list.Add("sequence_parallel", sequence_parallel, "which entries of the plan hold");
  list.Add("loss_parallel", loss_parallel, "which entries of the plan hold");
  list.Add("reshard_after_forward", reshard_after_forward,
           "gather parameters of blocks (layers.N) again in backward, instead of keeping them; "
           "of a model without blocks, all parameters");
  list.Add("reshard_outside_blocks", reshard_outside_blocks,
           "with reshard_after_forward, gather all other parameters again, too");
}

Reshard Place::reshard() const {
  if (!options_.reshard_after_forward) return Reshard::kNothing;
  return options_.reshard_outside_blocks ? Reshard::kAll : Reshard::kBlocks;
}

Result<PlacementPlan> Place::PlanFor(Module& /*module*/, const Mesh& mesh) const {
  return PlacementPlan::Load(
      options_.plan, mesh,
      {.sequence_parallel = options_.sequence_parallel, .loss_parallel = options_.loss_parallel});
}

Result<Changed> Place::Run(Module& module) {
  STRATA_TRY(const Mesh mesh, Mesh::Parse(options_.mesh));
  if (mesh.axes().empty()) return Changed::kNo;
  STRATA_TRY(const PlacementPlan plan, PlanFor(module, mesh));
  for (const GraphId id : module.programs()) {
    STRATA_RETURN_IF_ERROR(PlaceGraph(module.graph(id), plan, reshard()));
  }
  return Changed::kYes;
}

void MakeShareable(Graph& graph) {
  Rewriter rewriter(graph);
  MakeRandomOfSizes(rewriter);
  MakeViewsOfStrides(rewriter);
}

Status PlaceGraph(Graph& graph, const PlacementPlan& plan, Reshard reshard) {
  {
    Rewriter rewriter(graph);
    SplitLists(rewriter);
  }
  MakeShareable(graph);
  return GraphPlacer(graph, plan, reshard).Run();
}

}  // namespace strata
