#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/fused_op.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "ir/taken_elements.h"
#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fast_products.h"
#include "passes/compile/pointwise.h"
#include "passes/core/written_memory.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_node.h"
#include "passes/memory/offloadable.h"
#include "runtime/plan/assertions.h"
#include "runtime/plan/fast_products.h"
#include "runtime/plan/flex_step.h"
#include "runtime/plan/higher_order.h"
#include "runtime/plan/in_flight.h"
#include "runtime/plan/input_sizes.h"
#include "runtime/plan/kills.h"
#include "runtime/plan/layouts.h"
#include "runtime/plan/lower_operands.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/where.h"

namespace strata {
namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const PlanOptions& options, const SymbolSizes& sizes)
      : program_(graph), module_(graph.module()), scope_(graph) {
    plan_.graph = graph.name_text();
    plan_.options = options;
    plan_.sizes = sizes;
    plan_.graph_fingerprint = FingerprintOf(graph);
    if (!graph.output().valid()) return;
    const std::string_view extent = graph.attribute(graph.output(), "cuda_graph");
    if (extent == "full") plan_.capture = Capture::kWhole;
    if (extent == "pieces") plan_.capture = Capture::kPieces;
  }

  Result<Plan> Run() {
    const Graph& graph = *scope_.graph;
    for (const NodeId node : graph.nodes()) {
      if (graph.node(node).kind == NodeKind::kPlaceholder) ++num_placeholders_;
      auto lowered = LowerNode(node);
      if (!lowered) {
        return std::move(lowered).error().In(
            fmt::format("graph {} cannot be executed: {}", plan_.graph, graph.name(node)));
      }
    }
    if (!plan_.options.keep_values) AddKills(plan_);
    return std::move(plan_);
  }

 private:
  /// A graph that is being lowered: the program, or inside it the body of a fused node or region.
  struct Scope {
    explicit Scope(const Graph& g) : graph(&g), slot_of(static_cast<size_t>(g.value_bound())) {}
    const Graph* graph;
    IdVector<ValueId, SlotId> slot_of;
    UnbackedSizes unbacked_sizes;  // a body names sizes as it likes
    NodeId fused;                  // of the program, when this is its body
    int32_t stream = 0;            // of that node
  };

  const Graph& graph() const { return *scope_.graph; }

  Status LowerNode(NodeId node) {
    if (graph().node(node).num_results == 1 && NumberOfValue(graph().result(node))) return Ok();
    switch (graph().node(node).kind) {
      case NodeKind::kPlaceholder:
        return AddInput(node);
      case NodeKind::kGetAttr:
        return AddConstant(node);
      case NodeKind::kCall:
        return AddStep(node);
      case NodeKind::kOutput:
        return AddOutputs(node);
      default:
        return UnsupportedInPlan(
            "calls of methods and modules are not operators; name a graph that AOTAutograd made, "
            "such as aot_joint_graph");
    }
  }

  Status AddInput(NodeId node) {
    STRATA_TRY(Plan::Input input, LowerInput(graph(), node, plan_.sizes));
    input.slot = NewSlot(graph().result(node));
    input.placeholder = num_placeholders_ - 1;
    input.is_donated =
        plan_.options.donate_gradients && graph().attribute(node, "input") == "gradient";
    plan_.inputs.push_back(std::move(input));
    return Ok();
  }

  std::optional<int64_t> NumberOfValue(ValueId value) const {
    if (scope_.fused.valid()) return std::nullopt;  // a body names sizes as it likes
    return IntegerOf(graph(), value, plan_.sizes);
  }

  Status AddConstant(NodeId node) {
    if (graph().node(node).num_args > 0) return Ok();  // a body, for the node that runs it
    plan_.constants.push_back(
        {.slot = NewSlot(graph().result(node)), .path = std::string(graph().op(node))});
    return Ok();
  }

  /// Collectives run beside what computes, unless a pass gave them another stream.
  int32_t StreamOf(const Node& node, const OpTraits& traits) const {
    const int32_t stream = scope_.fused.valid() ? scope_.stream : node.stream;
    return stream == 0 && traits.collective ? kCommunicationStream : stream;
  }

  /// Results of a call whose tuple other nodes take apart: slots of these nodes.
  void AddTakenResults(NodeId call, PlanStep& step) {
    const ValueId tuple = graph().result(call);
    step.returns_tuple = true;
    step.results.assign(TypesOfTakenElements(graph(), call).size(), SlotId());
    for (const Use& use : graph().uses(tuple)) {
      const auto index = static_cast<size_t>(graph().args(use.user)[1].as_int());
      const ValueId element = graph().result(use.user);
      if (step.results[index].valid()) {
        scope_.slot_of[element] = step.results[index];
      } else {
        step.results[index] = NewSlot(element);
      }
    }
    step.is_view = TraitsOf(graph().op(call)).view;
  }

  Status AddStep(NodeId node) {
    if (OnlyAsserts(graph(), node) || ElementTakenBy(graph(), node)) return Ok();
    PlanStep step = StepOf(node);
    if (step.op == kFusedOp) {
      STRATA_TRY(const GraphId body, BodyOf(graph().args(node)));
      STRATA_RETURN_IF_ERROR(UseKernel(node, body, step));
      if (!step.kernel.valid()) return InlineBody(node, module_.graph(body));
    }
    STRATA_RETURN_IF_ERROR(AddArgs(node, step));
    if (TypesOfTakenElements(graph(), node).empty()) {
      AddResults(node, step);
      AddPartition(
          PartitionOf(graph(), node, plan_.sizes, [this](ValueId v) { return SlotOf(v); }));
      AddFlexKernel(node, step);
      if (IsFastProduct(graph(), node)) UseFastProduct(plan_, step);
    } else {
      AddTakenResults(node, step);
    }
    plan_.steps.Add(std::move(step));
    return Ok();
  }

  /// Without arguments and results.
  PlanStep StepOf(NodeId node) const {
    const Node& n = graph().node(node);
    const OpTraits traits = TraitsOf(graph(), node);
    return {.node = scope_.fused.valid() ? scope_.fused : node,
            .op = std::string(graph().op(node)),
            .args = {},
            .kwargs = {},
            .returns_tuple = n.returns_tuple,
            .mutates = traits.mutates,
            .is_pure = !IsImpure(graph(), node),
            .stream = StreamOf(n, traits),
            .is_outside = program_.attribute(scope_.fused.valid() ? scope_.fused : node,
                                             "cuda_graph") == "outside",
            .results = {},
            .node_results = {},
            .kills = {},
            .where = WhereOf(graph(), node)};
  }

  /// Leaves the step without a kernel where the body is executed operator by operator.
  Status UseKernel(NodeId node, GraphId body, PlanStep& step) {
    if (plan_.options.unfuse || RegionBodyOf(graph(), node)) return Ok();
    STRATA_TRY(const KernelId kernel, KernelOf(body, /*exact=*/graph().node(node).num_kwargs == 0));
    if (!kernel.valid() || !TakeOpenNumbers(node, module_.graph(body), plan_.kernels[kernel], step))
      return Ok();
    step.kernel = kernel;
    step.mutates = !plan_.kernels[kernel].written_inputs.empty();
    return Ok();
  }

  /// Attributes of a body are named from the program.
  static void PrefixConstants(std::string_view body, Plan& plan) {
    for (Plan::Constant& constant : plan.constants)
      constant.path = fmt::format("{}.{}", body, constant.path);
    for (Plan& inner : plan.bodies)
      PrefixConstants(body, inner);
  }

  /// The body that an argument names, as an argument of the plan.
  Result<PlanArg> BodyArgOf(const Arg& arg) {
    const auto named = BodyNamedBy(graph(), arg);
    if (!named) return UnsupportedInPlan("a higher-order operator must name its bodies");
    const Graph& body = module_.graph(*named);
    const auto [known, is_new] = body_of_.try_emplace(*named);
    if (is_new) {
      STRATA_TRY(Plan plan, Lower(body, {.offload_folder = {}}, plan_.sizes));
      for (Plan::Input& input : plan.inputs)
        input.strides.reset();  // as the operator's operands come
      if (arg.is_value()) PrefixConstants(graph().op(graph().value(arg.value()).def), plan);
      known->second = plan_.bodies.Add(std::move(plan));
    }
    PlanArg lowered;
    lowered.kind = ArgKind::kGraph;
    lowered.integer = known->second.index;
    lowered.text = body.name_text();
    return lowered;
  }

  /// The arguments of a higher-order operator.
  Status AddBodies(NodeId node, const HigherOrderOp& op, PlanStep& step) {
    const std::span<const Arg> args = graph().args(node);
    if (args.size() < op.first_operand)
      return UnsupportedInPlan("a higher-order operator must name its bodies");
    for (size_t i = 0; i < args.size(); ++i) {
      const bool is_body = i >= op.first_body && i < op.first_body + op.num_bodies;
      STRATA_TRY(PlanArg lowered, is_body ? BodyArgOf(args[i]) : PlanArgOf(args[i]));
      step.args.push_back(std::move(lowered));
    }
    step.runs_bodies = true;
    return Ok();
  }

  Status AddArgs(NodeId node, PlanStep& step) {
    if (const HigherOrderOp* op = FindHigherOrderOp(step.op)) return AddBodies(node, *op, step);
    if (step.op.starts_with("higher_order.") && !IsFlexOp(step.op))
      return UnsupportedInPlan(WhyNotRun(step.op));
    std::span<const Arg> args = graph().args(node);
    if (step.kernel.valid()) args = args.subspan(1);  // the first is the body
    if (IsFlexOp(step.op)) {
      const auto lower = [this](const Arg& arg) { return PlanArgOf(arg); };
      STRATA_RETURN_IF_ERROR(LowerFlexNode(graph(), node, lower, step));
      args = {};
    }
    for (const Arg& arg : args) {
      STRATA_TRY(PlanArg lowered, PlanArgOf(arg));
      step.args.push_back(std::move(lowered));
    }
    for (size_t i = 0; i < graph().node(node).num_kwargs && !step.kernel.valid(); ++i) {
      const NamedArg kwarg = graph().kwarg(node, i);
      STRATA_TRY(PlanArg lowered, PlanArgOf(kwarg.value));
      step.kwargs.emplace_back(module_.str(kwarg.name), std::move(lowered));
    }
    // The last reader of what is awaited orders nodes; the wait does not read its result.
    if (step.op == kTransferWaitOp && step.args.size() > 2) step.args.resize(2);
    return Ok();
  }

  void AddResults(NodeId node, PlanStep& step) {
    bool has_results = false, are_aliases = true;
    for (size_t i = 0; i < graph().node(node).num_results; ++i) {
      const ValueId value = graph().result(node, i);
      const bool is_read = graph().value(value).num_uses > 0 || plan_.options.keep_values;
      // A result that an operator writes needs a slot, read or not: the slot says what is written.
      const bool is_typed = graph().value(value).type.valid();
      const bool is_written = (plan_.options.static_memory || step.mutates) && is_typed;
      step.results.push_back(is_read || is_written ? NewSlot(value) : SlotId());
      if (!step.results.back().valid()) step.unread_bytes += OwnBytes(value);
      has_results = has_results || is_typed;
      are_aliases = are_aliases && graph().value(value).alias_of.valid();
    }
    step.is_view =
        has_results && are_aliases && !step.mutates && !TraitsOf(graph().op(node)).effectful;
  }

  void AddPartition(std::optional<SizePartition> partition) {
    if (!partition) return;
    const bool is_known = std::ranges::any_of(plan_.partitions, [&](const SizePartition& other) {
      return other.slots == partition->slots;
    });
    if (!is_known) plan_.partitions.push_back(*std::move(partition));
  }

  void AddFlexKernel(NodeId node, PlanStep& step) {
    if (plan_.options.unfuse || !(plan_.options.static_memory || plan_.options.on_gpu)) return;
    auto kernel = FlexKernelOf(graph(), node, plan_, step);
    if (!kernel) return;
    step.flex_kernel = plan_.flex_kernels.Add(*std::move(kernel));
  }

  /// The graph that the first argument of a fused node names.
  Result<GraphId> BodyOf(std::span<const Arg> args) const {
    const auto body = args.empty() ? std::nullopt : BodyNamedBy(graph(), args[0]);
    if (!body) return UnsupportedInPlan("a fused node must name its body");
    return *body;
  }

  /// Invalid: the body has no kernel at the sizes of this plan, though it has one at most sizes.
  Result<KernelId> KernelOf(GraphId body, bool exact) {
    const auto [known, is_new] = kernel_of_.try_emplace(std::pair(body, exact));
    if (!is_new) return known->second;
    auto kernel = MakeKernel(module_.graph(body), exact, plan_.sizes);
    if (!kernel && plan_.sizes.empty() && scope_.unbacked_sizes.empty())
      return std::move(kernel).error();
    if (!kernel || (!kernel->unbacked_symbols.empty() && !plan_.options.is_static()))
      return KernelId();
    return known->second = plan_.kernels.Add(std::move(kernel).value());
  }

  /// False: the kernel takes a data-dependent size that is unknown here.
  bool TakeOpenNumbers(NodeId node, const Graph& body, const Kernel& kernel, PlanStep& step) const {
    if (kernel.unbacked_symbols.empty()) return true;
    auto numbers =
        DynamicNumbersOf(kernel, UnbackedSizesInside(graph(), node, body, scope_.unbacked_sizes));
    if (!numbers) return false;
    step.dynamic_numbers = *std::move(numbers);
    return true;
  }

  Status InlineBody(NodeId node, const Graph& body) {
    Scope inner(body);
    inner.unbacked_sizes = UnbackedSizesInside(graph(), node, body, scope_.unbacked_sizes);
    const bool is_outermost = !scope_.fused.valid();  // a region may hold fused nodes
    inner.fused = is_outermost ? node : scope_.fused;
    inner.stream = is_outermost ? graph().node(node).stream : scope_.stream;
    const std::vector<NodeId> placeholders = body.placeholders();
    const std::span<const Arg> args = graph().args(node).subspan(1);
    if (args.size() != placeholders.size())
      return UnsupportedInPlan("a fused node must fit its body");
    for (size_t i = 0; i < args.size(); ++i) {
      inner.slot_of[body.result(placeholders[i])] = SlotOf(args[i].value());
    }
    const StepId first = plan_.steps.end_id();
    std::swap(scope_, inner);
    for (const NodeId inside : body.nodes()) {
      if (body.node(inside).kind == NodeKind::kCall) STRATA_RETURN_IF_ERROR(AddStep(inside));
    }
    std::swap(scope_, inner);
    std::map<SlotId, int32_t> result_of;
    int32_t index = 0;
    for (const Arg& output : body.elements(body.args(body.output())[0])) {
      const ValueId result = graph().result(node, index);
      const SlotId slot = inner.slot_of[output.value()];
      scope_.slot_of[result] = slot;
      if (is_outermost) plan_.slots[slot].value = result;
      result_of.emplace(slot, index++);
    }
    if (is_outermost) NameNodeResults(first, result_of);
    return Ok();
  }

  /// Says of the steps of a fused node, from `first` on, which of its results they give.
  void NameNodeResults(StepId first, const std::map<SlotId, int32_t>& result_of) {
    for (StepId id = first; id < plan_.steps.end_id(); ++id.index) {
      PlanStep& step = plan_.steps[id];
      for (const SlotId slot : step.results) {
        const auto found = result_of.find(slot);
        step.node_results.push_back(found == result_of.end() ? -1 : found->second);
      }
    }
  }

  /// Whether an output of a program is a number: results are tensors, which state their sizes.
  bool IsNumberOfProgram(const Arg& output) const {
    if (graph().is_body() || !output.is_value()) return false;
    const TypeId type = graph().value(output.value()).type;
    return type.valid() && module_.types()[type].kind == TypeKind::kSymInt;
  }

  Status AddOutputs(NodeId node) {
    for (const Arg& arg : graph().args(node)) {
      const std::span<const Arg> outputs =
          arg.is_span() ? graph().elements(arg) : std::span(&arg, 1);
      for (const Arg& output : outputs) {
        if (!output.is_value() && output.kind() != ArgKind::kNone)
          return UnsupportedInPlan("an output must be a tensor or None");
        STRATA_TRY(const PlanArg lowered, PlanArgOf(output));
        plan_.outputs.push_back(IsNumberOfProgram(output) ? SlotId{} : lowered.slot);
      }
    }
    return Ok();
  }

  Result<PlanArg> PlanArgOf(const Arg& arg) {
    return LowerArg(graph(), arg, plan_.sizes, [this](ValueId value) {
      PlanArg lowered;
      if (const auto body = BodyNamedBy(graph(), Arg(value))) {
        lowered.kind = ArgKind::kString;
        lowered.text = FlexBodyText(module_.graph(*body));
      } else if (const auto number = NumberOfValue(value)) {
        lowered.kind = ArgKind::kInt;
        lowered.integer = *number;
      } else {
        lowered.kind = ArgKind::kValue;
        lowered.slot = SlotOf(value);
      }
      return lowered;
    });
  }

  /// Bytes of a value that shares no memory; 0 if unknown.
  int64_t OwnBytes(ValueId value) const {
    const Value& v = graph().value(value);
    if (!v.type.valid() || SharedBy(value).valid()) return 0;
    const std::optional<PlanLayout> layout = LayoutOf(module_, v.type, plan_.sizes);
    return layout ? layout->storage_bytes() : 0;
  }

  /// What a wait returns is what it waits for.
  ValueId WaitedFor(ValueId value) const {
    const NodeId def = graph().value(value).def;
    if (!def.valid() || !IsWait(graph().op(def))) return {};
    const std::span<const Arg> args = graph().args(def);
    return !args.empty() && args[0].is_value() ? args[0].value() : ValueId();
  }

  /// The value whose memory a new one shares, or may share: views of a foreign graph are not known
  /// as such (`PlanStep::is_view`), but must outlive what they view.
  ValueId SharedBy(ValueId value) const {
    if (const ValueId owner = graph().value(value).alias_of; owner.valid()) return owner;
    if (const ValueId waited = WaitedFor(value); waited.valid()) return waited;
    return program_.is_foreign() ? SharedOperand(graph(), graph().value(value).def) : ValueId();
  }

  SlotId NewSlot(ValueId value) {
    const Value& v = graph().value(value);
    const SlotId slot = plan_.slots.end_id();
    const ValueId shared = SharedBy(value);
    const SlotId owner = shared.valid() ? SlotOf(shared) : SlotId();
    plan_.slots.Add({.value = scope_.fused.valid() ? ValueId{} : value,
                     .name = graph().unique_value_name(value),
                     .type = v.type.valid() ? module_.types().ToString(v.type) : "",
                     .layout = LayoutOf(module_, v.type, plan_.sizes),
                     .storage = owner.valid() ? plan_.slots[owner].storage : slot});
    PlanSlot& made = plan_.slots[slot];
    if (v.type.valid() && module_.types()[v.type].kind == TypeKind::kSymInt) {
      scope_.unbacked_sizes.emplace(module_.dims().name(module_.types()[v.type].dim), slot);
    } else if (!made.layout) {
      made.dynamic_layout = DynamicLayoutOf(module_, v.type, plan_.sizes, scope_.unbacked_sizes);
    }
    return scope_.slot_of[value] = slot;
  }
  SlotId SlotOf(ValueId value) const { return scope_.slot_of[value]; }

  const Graph& program_;
  const Module& module_;
  Scope scope_;
  std::map<std::pair<GraphId, bool>, KernelId> kernel_of_;  // by body and exactness
  std::map<GraphId, BodyId> body_of_;                       // of higher-order operators
  size_t num_placeholders_ = 0;
  Plan plan_;
};

}  // namespace

Result<Plan> Lower(const Graph& graph, const PlanOptions& options, const SymbolSizes& sizes) {
  return Lowering(graph, options, sizes).Run();
}

}  // namespace strata
