#include "passes/pipeline/split_optimizer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "passes/pipeline/calls.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_stages.h"
#include "passes/pipeline/stage_modules.h"
#include "passes/placement/placement.h"

namespace strata {
namespace {

constexpr int64_t kShared = -1;
constexpr std::string_view kAxis = "pp";

/// The stage of what belongs to a module: that of its parameter, which may be shared with an
/// earlier stage.
class ParameterStages {
 public:
  ParameterStages(const Graph& step, const StageModules& modules) : modules_(modules) {
    for (const NodeId node : step.placeholders()) {
      const std::string_view stage = step.attribute(node, kStageAttribute);
      if (step.attribute(node, "input") == "parameter" && !stage.empty())
        of_module_.emplace(step.module().str(step.node(node).module),
                           std::stoll(std::string(stage)));
    }
  }
  int64_t Of(std::string_view module) const {
    const auto found = of_module_.find(module);
    return found == of_module_.end() ? modules_.StageOf(module) : found->second;
  }

 private:
  const StageModules& modules_;
  std::map<std::string_view, int64_t> of_module_;
};

/// Writes the part of a graph that an owner of some stages runs.
class PartWriter {
 public:
  PartWriter(const Graph& graph, const ParameterStages& stages, std::vector<int64_t> owners)
      : graph_(graph), owners_(ByNode<int64_t>(graph, kShared)) {
    for (const NodeId node : graph.nodes()) {
      const int64_t stage = stages.Of(graph.module().str(graph.node(node).module));
      if (stage >= 0) owners_[node] = owners[static_cast<size_t>(stage)];
    }
    for (const NodeId node : graph.nodes()) {
      if (!IsCall(graph, node) || owners_[node] != kShared) continue;
      graph.ForEachOperand(node, [&](ValueId operand) {
        if (owners_[graph.value(operand).def] == kShared) return;
        if (std::ranges::find(exchanged_, operand) == exchanged_.end())
          exchanged_.push_back(operand);
        if (!first_reader_.valid()) first_reader_ = node;
      });
    }
  }

  Status Write(int64_t owner, Graph& target) {
    STRATA_RETURN_IF_ERROR(CheckExchanged());
    names_.clear();
    for (const NodeId node : graph_.nodes())
      names_.emplace(graph_.name(node));
    GraphCopier copier(graph_, target);
    const IdVector<NodeId, bool> wanted = NodesOf(owner);
    for (const NodeId node : graph_.placeholders())
      if (wanted[node])
        copier.AddInput(graph_.result(node),
                        {.kind = StageSlot::Kind::kInput, .name = StageInputName(graph_, node)});
    for (const NodeId node : graph_.nodes()) {
      if (node == first_reader_) Exchange(owner, copier);
      if (IsCall(graph_, node) && wanted[node]) copier.Copy(node);
    }
    std::vector<std::optional<ValueId>> outputs;
    std::vector<StageSlot> slots;
    const std::vector<std::optional<ValueId>> all = OutputsOf(graph_);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i] || !copier.Has(*all[i])) continue;
      slots.push_back({.kind = StageSlot::Kind::kExtra, .name = std::to_string(i)});
      outputs.push_back(all[i]);
    }
    copier.SetOutputs(outputs, slots);
    return Ok();
  }

 private:
  /// Stacked, they are one collective.
  Status CheckExchanged() const {
    const IdVector<NodeId, int32_t> order = PositionsOf(graph_);
    for (const ValueId value : exchanged_) {
      const Type& type = graph_.module().types()[graph_.value(value).type];
      const bool is_scalar = type.kind == TypeKind::kTensor && type.sizes.empty() &&
                             graph_.value(value).type == graph_.value(exchanged_[0]).type;
      const NodeId def = graph_.value(value).def;
      if (is_scalar && order[def] < order[first_reader_]) continue;
      return Error(
          "stages exchange other values than scalars of one type: graph {}: {} of module {}: make "
          "it before node {}, from one tensor",
          graph_.name_text(), graph_.value_name(value),
          graph_.module().str(graph_.node(def).module), graph_.name(first_reader_));
    }
    return Ok();
  }

  /// What the owner runs: its nodes, and all that are shared.
  IdVector<NodeId, bool> NodesOf(int64_t owner) const {
    IdVector<NodeId, bool> wanted(owners_.size());
    for (const NodeId node : graph_.nodes()) {
      const int64_t of_node = owners_[node];
      wanted[node] = of_node == owner || of_node == kShared;
    }
    return wanted;
  }

  /// `unbind(wait(all_reduce(stack(own values and zeros))))` stands for the exchanged values.
  void Exchange(int64_t owner, GraphCopier& copier) const {
    Rewriter& rewriter = copier.rewriter();
    Module& module = rewriter.graph().module();
    const TypeId scalar = graph_.value(exchanged_[0]).type;
    const Type element = module.types()[scalar];
    const From from(graph_, {graph_.value(exchanged_[0]).def});
    const auto create = [&](std::string_view op, std::span<const Arg> args,
                            std::span<const NamedArg> kwargs, TypeId type) {
      const NodeId node = rewriter.Create({.op = op,
                                           .args = args,
                                           .kwargs = kwargs,
                                           .results = std::span(&type, 1),
                                           .name = FreeName(fmt::format("{}_pp", BaseName(op)))},
                                          from);
      rewriter.SetModule(node, "clip");
      return rewriter.graph().result(node);
    };
    ValueId zero;
    std::vector<Arg> parts;
    for (const ValueId value : exchanged_) {
      if (owners_[graph_.value(value).def] == owner) {
        parts.emplace_back(copier(value));
        continue;
      }
      if (!zero.valid()) {
        const Arg args[] = {rewriter.MakeSpan(ArgKind::kList, {}), Arg::Float(0.0)};
        const NamedArg kwargs[] = {{module.Intern("dtype"), Arg::DType(element.dtype)},
                                   {module.Intern("device"), Arg::Device(element.device)},
                                   {module.Intern("pin_memory"), Arg::Bool(false)}};
        zero = create("aten.full.default", args, kwargs, scalar);
      }
      parts.emplace_back(zero);
    }
    const int64_t sizes[] = {static_cast<int64_t>(exchanged_.size())};
    const TypeId list = module.types().Tensor(element.dtype, sizes, module.str(element.device));
    const Arg stack_args[] = {rewriter.MakeSpan(ArgKind::kList, parts)};
    const ValueId stacked = create("aten.stack.default", stack_args, {}, list);
    const Arg sum_args[] = {stacked, Arg::String(module.Intern("sum")),
                            Arg::String(module.Intern(kAxis))};
    const ValueId sum = create("_c10d_functional.all_reduce.default", sum_args, {}, list);
    const Arg wait_args[] = {sum};
    const ValueId waited = create("_c10d_functional.wait_tensor.default", wait_args, {}, list);
    rewriter.SetAlias(waited, sum);
    for (size_t i = 0; i < exchanged_.size(); ++i) {
      const Arg args[] = {waited, Arg::Int(0), Arg::Int(static_cast<int64_t>(i))};
      Type at_offset = element;
      if (i > 0) at_offset.dim = module.dims().Const(static_cast<int64_t>(i));
      const ValueId one = create("aten.select.int", args, {}, module.types().Intern(at_offset));
      rewriter.SetAlias(one, sum);
      copier.Map(exchanged_[i], one);
    }
  }

  /// `base`, or the first of `base_1`, `base_2`, … that no node of the whole graph has, nor one of
  /// the exchange.
  std::string FreeName(const std::string& base) const {
    std::string name = base;
    for (int number = 1; !names_.insert(name).second; ++number)
      name = fmt::format("{}_{}", base, number);
    return name;
  }

  const Graph& graph_;
  mutable std::set<std::string> names_;  // taken
  IdVector<NodeId, int64_t> owners_;
  std::vector<ValueId> exchanged_;  // what shared nodes read of owned ones
  NodeId first_reader_;             // of them
};

Status WriteParts(Module& module, const Graph& graph, const ParameterStages& parameters,
                  const std::vector<int64_t>& owners, int64_t count, std::string_view name_format) {
  PartWriter writer(graph, parameters, owners);
  for (int64_t owner = 0; owner < count; ++owner) {
    const std::string name = fmt::format(fmt::runtime(name_format), owner);
    STRATA_RETURN_IF_ERROR(writer.Write(owner, module.AddGraph(name)));
  }
  return Ok();
}

/// Lets a stage add gradients as its backward makes them, where it reduces their sum.
Status AddUnreduced(Module& module, int64_t stage) {
  const Graph* reduce = module.FindGraph(fmt::format("stage{}.reduce", stage));
  if (reduce == nullptr) return Ok();
  STRATA_TRY(const StageSlots slots, StageSlotsOf(*reduce));
  std::map<std::string, TypeId> types;  // by the names of the inputs
  const std::vector<NodeId> inputs = reduce->placeholders();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TypeId type = reduce->value(reduce->result(inputs[i])).type;
    for (const std::string_view suffix : {".grad", ".batch_grad"})
      types.emplace(slots.inputs[i].name + std::string(suffix), type);
  }
  Graph& graph = *module.FindGraph(fmt::format("stage{}.accumulate", stage));
  Rewriter rewriter(graph);
  std::set<ValueId> changed;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kPlaceholder) {
      const auto found = types.find(StageInputName(graph, node));
      if (found == types.end()) continue;
      rewriter.SetType(graph.result(node), found->second);
      changed.insert(graph.result(node));
    } else if (IsCall(graph, node) && changed.contains(graph.operands(node)[0])) {
      rewriter.SetType(graph.result(node), graph.value(graph.operands(node)[0]).type);
      changed.insert(graph.result(node));
    }
  }
  return Ok();
}

/// The ranks that run these graphs are those of all stages.
void AddAxis(Module& module, int64_t ranks) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Graph& graph = *module.FindGraph(fmt::format("optimizer.rank{}", rank));
    const std::string inner(graph.attribute(graph.output(), kMeshAttribute));
    Rewriter(graph).SetAttribute(
        graph.output(), kMeshAttribute,
        fmt::format("{}={}{}{}", kAxis, ranks, inner.empty() ? "" : ",", inner));
  }
}

}  // namespace

void SplitOptimizer::Options::Bind(OptionList& list) {
  list.Add("ranks", ranks, "ranks of the axis pp");
  list.Add("style", style, {{"loop", StageStyle::kLoop}, {"v", StageStyle::kV}},
           "which stages a rank has, if several");
}

Result<Changed> SplitOptimizer::Run(Module& module) {
  const Graph* step = module.FindGraph("step");
  const std::string text(step == nullptr ? ""
                                         : step->attribute(step->output(), kStageModulesAttribute));
  if (text.empty()) return Error("no stages: split-optimizer: write split-stages before it");
  STRATA_TRY(const StageModules modules, StageModules::Parse(text));
  const int64_t stages = modules.size();
  const int64_t per_rank = options_.ranks < 1 ? 0 : stages / options_.ranks;
  if (per_rank * options_.ranks != stages || (options_.style == StageStyle::kV && per_rank != 2)) {
    return Error("{} stages on {} ranks: split-optimizer: take {}", stages, options_.ranks,
                 options_.style == StageStyle::kV ? "2 stages for each rank"
                                                  : "a multiple of the number of ranks");
  }
  if (module.FindGraph("optimizer.rank0") != nullptr) return Changed::kNo;
  const ParameterStages parameters(*step, modules);
  std::vector<int64_t> own_stage;
  for (int64_t stage = 0; stage < stages; ++stage)
    own_stage.push_back(stage);
  if (const Graph* accumulate = module.FindGraph("accumulate")) {
    STRATA_RETURN_IF_ERROR(
        WriteParts(module, *accumulate, parameters, own_stage, stages, "stage{}.accumulate"));
    for (int64_t stage = 0; stage < stages; ++stage)
      STRATA_RETURN_IF_ERROR(AddUnreduced(module, stage));
  }
  if (const Graph* optimizer = module.FindGraph("optimizer")) {
    STRATA_RETURN_IF_ERROR(WriteParts(module, *optimizer, parameters,
                                      RanksOfStages(stages, options_.ranks, options_.style),
                                      options_.ranks, "optimizer.rank{}"));
    AddAxis(module, options_.ranks);
  }
  return Changed::kYes;
}

}  // namespace strata
