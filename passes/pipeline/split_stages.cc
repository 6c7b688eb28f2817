#include "passes/pipeline/split_stages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "ir/by_node.h"
#include "passes/pipeline/balance.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/stage_assignment.h"
#include "passes/pipeline/stage_modules.h"

namespace strata {
namespace {

constexpr std::string_view kStep = "step", kValidate = "validate";

bool IsInput(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kPlaceholder;
}

/// An output of the step: what it is, and the stage that returns it.
struct StepOutput {
  std::optional<ValueId> value;
  StageSlot slot;
  int64_t stage = 0;
};

/// Outputs of a step: the loss, a gradient for each parameter, others.
Result<std::vector<StepOutput>> StepOutputs(const Graph& step, const StageAssignment& stages,
                                            int64_t num_stages) {
  std::vector<NodeId> parameters;
  for (const NodeId node : step.placeholders())
    if (step.attribute(node, "input") == "parameter") parameters.push_back(node);
  const std::vector<std::optional<ValueId>> values = OutputsOf(step);
  if (values.size() < 1 + parameters.size()) {
    return Error("graph {} returns {} values: it has {} parameters: {}", step.name_text(),
                 values.size(), parameters.size(),
                 "a step returns a loss and a gradient for each parameter");
  }
  std::vector<StepOutput> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    StepOutput output{.value = values[i], .slot = {}, .stage = num_stages - 1};
    if (i == 0) {
      output.slot = {.kind = StageSlot::Kind::kLoss, .name = ""};
    } else if (i <= parameters.size()) {
      const NodeId parameter = parameters[i - 1];
      output.slot = {.kind = StageSlot::Kind::kParameterGradient,
                     .name = StageInputName(step, parameter)};
      output.stage = stages.of(parameter);
    } else {
      output.slot = {.kind = StageSlot::Kind::kExtra,
                     .name = std::to_string(i - 1 - parameters.size())};
      const int64_t made =
          values[i] ? stages.of(step.value(*values[i]).def) : StageAssignment::kEvery;
      if (made != StageAssignment::kEvery) output.stage = made;
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

/// Values that cross from a stage to the next or the previous one, in program order.
class Crossings {
 public:
  explicit Crossings(int64_t num_stages)
      : up_(static_cast<size_t>(num_stages) + 1), down_(static_cast<size_t>(num_stages) + 1) {}

  void Add(ValueId value, int64_t from, int64_t to) {
    for (int64_t stage = from; stage < to; ++stage)
      up_[static_cast<size_t>(stage) + 1].insert(value);
    for (int64_t stage = to; stage < from; ++stage)
      down_[static_cast<size_t>(stage) + 1].insert(value);
  }

  const std::set<ValueId>& to_next(int64_t stage) const { return up_[Index(stage) + 1]; }
  const std::set<ValueId>& from_previous(int64_t stage) const { return up_[Index(stage)]; }
  const std::set<ValueId>& to_previous(int64_t stage) const { return down_[Index(stage)]; }
  const std::set<ValueId>& from_next(int64_t stage) const { return down_[Index(stage) + 1]; }

 private:
  static size_t Index(int64_t stage) { return static_cast<size_t>(stage); }
  // By boundary: number b is before stage b.
  std::vector<std::set<ValueId>> up_, down_;
};

class StageSplitter {
 public:
  StageSplitter(Graph& step, const StageAssignment& stages, std::vector<StepOutput> outputs,
                int64_t num_stages)
      : step_(step),
        stages_(stages),
        outputs_(std::move(outputs)),
        crossings_(num_stages),
        order_(PositionsOf(step)) {
    for (const NodeId node : step.nodes()) {
      if (stages.of(node) == StageAssignment::kEvery || step.node(node).kind == NodeKind::kOutput)
        continue;
      step.ForEachOperand(node, [&](ValueId operand) { Connect(operand, stages.of(node)); });
    }
    for (const StepOutput& output : outputs_)
      if (output.value) Connect(*output.value, output.stage);
  }

  void Write(int64_t stage, Graph& graph) {
    GraphCopier copier(step_, graph);
    AddInputs(stage, copier);
    const IdVector<NodeId, bool> wanted = NodesOf(stage);
    for (const NodeId node : step_.nodes())
      if (wanted[node] && !IsInput(step_, node)) copier.Copy(node);
    SetOutputs(stage, copier);
  }

 private:
  /// Every stage that reads the node's results has them.
  bool IsLocal(NodeId node) const {
    return stages_.of(node) == StageAssignment::kEvery || stages_.is_shared(node);
  }

  void Connect(ValueId value, int64_t reader) {
    const NodeId def = step_.value(value).def;
    if (!IsLocal(def)) crossings_.Add(value, stages_.of(def), reader);
  }

  /// The nodes of the stage, and those of every stage and shared parameters that they read.
  IdVector<NodeId, bool> NodesOf(int64_t stage) const {
    IdVector<NodeId, bool> wanted = ByNode<bool>(step_);
    const std::vector<NodeId> nodes = step_.nodes().Snapshot();
    for (const StepOutput& output : outputs_) {
      if (!output.value || output.stage != stage) continue;
      const NodeId def = step_.value(*output.value).def;
      if (stages_.of(def) == StageAssignment::kEvery) wanted[def] = true;
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (step_.node(*node).kind == NodeKind::kOutput) continue;
      if (stages_.of(*node) == stage) wanted[*node] = true;
      if (!wanted[*node]) continue;
      step_.ForEachOperand(*node, [&](ValueId operand) {
        const NodeId def = step_.value(operand).def;
        if (IsLocal(def)) wanted[def] = true;
      });
    }
    return wanted;
  }

  std::vector<ValueId> InOrder(const std::set<ValueId>& values) const {
    std::vector<ValueId> ordered(values.begin(), values.end());
    std::ranges::sort(ordered, {}, [&](ValueId value) {
      return std::pair(order_[step_.value(value).def], step_.result_index(value));
    });
    return ordered;
  }

  void AddInputs(int64_t stage, GraphCopier& copier) const {
    const IdVector<NodeId, bool> wanted = NodesOf(stage);
    for (const NodeId node : step_.placeholders()) {
      if (!wanted[node]) continue;
      copier.AddInput(step_.result(node),
                      {.kind = StageSlot::Kind::kInput, .name = StageInputName(step_, node)});
    }
    const auto receive = [&](const std::set<ValueId>& values, StageSlot::Kind kind) {
      size_t number = 0;
      for (const ValueId value : InOrder(values))
        copier.AddInput(value, {.kind = kind, .name = std::to_string(number++)});
    };
    receive(crossings_.from_previous(stage), StageSlot::Kind::kActivation);
    receive(crossings_.from_next(stage), StageSlot::Kind::kGradient);
  }

  void SetOutputs(int64_t stage, GraphCopier& copier) const {
    std::vector<std::optional<ValueId>> values;
    std::vector<StageSlot> slots;
    const auto add = [&](std::optional<ValueId> value, StageSlot slot) {
      values.push_back(value);
      slots.push_back(std::move(slot));
    };
    const auto add_outputs = [&](bool gradients) {
      for (const StepOutput& output : outputs_) {
        const bool is_gradient = output.slot.kind == StageSlot::Kind::kParameterGradient;
        if (output.stage == stage && is_gradient == gradients) add(output.value, output.slot);
      }
    };
    const auto send = [&](const std::set<ValueId>& crossing, StageSlot::Kind kind) {
      size_t number = 0;
      for (const ValueId value : InOrder(crossing))
        add(value, {.kind = kind, .name = std::to_string(number++)});
    };
    add_outputs(/*gradients=*/false);
    send(crossings_.to_next(stage), StageSlot::Kind::kActivation);
    add_outputs(/*gradients=*/true);
    send(crossings_.to_previous(stage), StageSlot::Kind::kGradient);
    copier.SetOutputs(values, slots);
  }

  Graph& step_;
  const StageAssignment& stages_;
  std::vector<StepOutput> outputs_;
  Crossings crossings_;
  IdVector<NodeId, int32_t> order_;
};

Status CheckParameters(const Graph& step, const StageAssignment& stages) {
  for (const NodeId node : step.placeholders()) {
    if (step.attribute(node, "input") != "parameter" || stages.of(node) != StageAssignment::kEvery)
      continue;
    return Error("no stage has the module of parameter '{}': graph {}: add it to modules",
                 StageInputName(step, node), step.name_text());
  }
  return Ok();
}

/// Activations go to later stages.
Status CheckOrder(const Graph& step, const StageAssignment& stages) {
  const auto is_forward = [&](NodeId node) {
    const Node& n = step.node(node);
    return n.kind == NodeKind::kCall && n.phase != Phase::kBackward;
  };
  for (const NodeId node : step.nodes()) {
    if (!is_forward(node)) continue;
    for (const ValueId operand : step.operands(node)) {
      const NodeId def = step.value(operand).def;
      if (!is_forward(def) || stages.of(node) == StageAssignment::kEvery) continue;
      if (stages.of(def) <= stages.of(node)) continue;
      return Error(
          "module '{}' of stage {} reads what module '{}' of stage {} computes: graph {}: node {}: "
          "name modules in the order of the forward pass",
          step.module().str(step.node(node).module), stages.of(node),
          step.module().str(step.node(def).module), stages.of(def), step.name_text(),
          step.name(node));
    }
  }
  return Ok();
}

/// Modules that the user named.
Status CheckModules(const Graph& step, const StageModules& modules) {
  std::set<std::string> unused;
  for (int64_t stage = 0; stage < modules.size(); ++stage)
    unused.insert(modules.of(stage).begin(), modules.of(stage).end());
  std::vector<std::string> paths;
  for (const NodeId node : step.nodes()) {
    const std::string_view path = step.module().str(step.node(node).module);
    if (path.empty() || (!paths.empty() && paths.back() == path)) continue;
    paths.emplace_back(path);
    for (size_t end = 0; end != path.npos;) {
      end = path.find('.', end + 1);
      unused.erase(std::string(path.substr(0, end)));
    }
  }
  if (unused.empty()) return Ok();
  return Error("no module '{}': graph {}: name modules of the model{}", *unused.begin(),
               step.name_text(), DidYouMean(*unused.begin(), paths));
}

Result<StageModules> ModulesOf(const Graph& step, const SplitStages::Options& options) {
  if (options.balance)
    return BalancedStages(step, options.stages, {options.topology, options.times});
  if (options.modules.empty()) {
    return StageModules::Split(CountLayers(step), options.stages, options.first_less,
                               options.last_less);
  }
  STRATA_TRY(StageModules modules, StageModules::Parse(options.modules));
  STRATA_RETURN_IF_ERROR(CheckModules(step, modules));
  return modules;
}

/// Outputs of a validation: those of the last stage.
std::vector<StepOutput> ValidationOutputs(const Graph& validate, int64_t num_stages) {
  std::vector<StepOutput> outputs;
  for (const std::optional<ValueId> value : OutputsOf(validate)) {
    outputs.push_back(
        {.value = value,
         .slot = {.kind = StageSlot::Kind::kExtra, .name = std::to_string(outputs.size())},
         .stage = num_stages - 1});
  }
  return outputs;
}

void MarkStages(Graph& graph, const StageAssignment& stages) {
  Rewriter rewriter(graph);
  for (const NodeId node : graph.nodes())
    if (stages.of(node) != StageAssignment::kEvery)
      rewriter.SetAttribute(node, kStageAttribute, std::to_string(stages.of(node)));
}

/// `format` makes the name of a stage's graph.
void WriteStages(Module& module, Graph& graph, const StageAssignment& stages,
                 std::vector<StepOutput> outputs, int64_t num_stages, std::string_view format) {
  MarkStages(graph, stages);
  StageSplitter splitter(graph, stages, std::move(outputs), num_stages);
  for (int64_t stage = 0; stage < num_stages; ++stage)
    splitter.Write(stage, module.AddGraph(fmt::format(fmt::runtime(format), stage)));
}

}  // namespace

void SplitStages::Options::Bind(OptionList& list) {
  list.Add("stages", stages, "stages that the layers are divided among");
  list.Add("first_less", first_less, "layers that the embedding counts as");
  list.Add("last_less", last_less, "layers that norm and head count as");
  list.Add("modules", modules, "modules of each stage instead, as in a,b;c");
  list.Add("balance", balance, "divide modules by time, not layers by number");
  list.Add("topology", topology, "whose times are modelled; empty: by the device of the graph");
  list.Add("times", times,
           "file of recorded times instead, of strata profile REF --by module --json");
}

Result<Changed> SplitStages::Run(Module& module) {
  Graph* step = module.FindGraph(kStep);
  if (step == nullptr) return Error("no graph 'step': split-stages: trace a training");
  if (module.FindGraph("stage0") != nullptr) return Changed::kNo;
  STRATA_TRY(const StageModules modules, ModulesOf(*step, options_));
  STRATA_TRY(const StageAssignment stages, StageAssignment::Make(*step, modules));
  STRATA_RETURN_IF_ERROR(CheckParameters(*step, stages));
  STRATA_RETURN_IF_ERROR(CheckOrder(*step, stages));
  STRATA_TRY(std::vector<StepOutput> outputs, StepOutputs(*step, stages, modules.size()));
  Rewriter(*step).SetAttribute(step->output(), kStageModulesAttribute, modules.Text());
  WriteStages(module, *step, stages, std::move(outputs), modules.size(), "stage{}");
  if (Graph* validate = module.FindGraph(kValidate)) {
    STRATA_TRY(const StageAssignment of_validate, StageAssignment::Make(*validate, modules));
    WriteStages(module, *validate, of_validate, ValidationOutputs(*validate, modules.size()),
                modules.size(), "stage{}.validate");
  }
  return Changed::kYes;
}

}  // namespace strata
