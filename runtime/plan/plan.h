#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "ir/arg.h"
#include "ir/fingerprint.h"
#include "ir/graph.h"
#include "ir/size_form.h"
#include "passes/compile/kernel.h"
#include "passes/flex/flex_kernel.h"
#include "runtime/plan/input_sizes.h"

namespace strata {

/// What a plan may do beyond calling the graph's operators one after the other. None of it changes
/// a bit of a result.
struct PlanOptions {
  /// Keep every value until the end of the run, so that each can be read afterwards.
  bool keep_values = false;
  /// Make views once, when the plan is bound, and not in every run.
  bool fold_views = false;
  /// Results have fixed offsets in one arena, shared by values with disjoint lifetimes; operators
  /// write there (out-variants) instead of calling an allocator.
  bool static_memory = false;
  /// With static_memory: an elementwise result reuses the buffer of an operand whose lifetime ends.
  bool in_place = false;
  /// Run work that depends on no input once, when the plan is bound.
  bool hoist_constants = false;
  /// With static_memory: operators without an out-variant also allocate their results in the arena.
  bool arena_results = false;
  /// With arena_results: values of data-dependent size are allocated in the arena, too, where it is
  /// free for their lifetime.
  bool dynamic_arena = false;
  /// With static_memory: outputs have memory of their own in each run, so that the arena holds
  /// nothing between two runs, and plans that run one after the other can share it.
  bool separate_outputs = false;
  /// With static_memory: results may lie in the memory of an input that is a gradient, after the
  /// last step that reads it (the caller donates it, as in JAX).
  bool donate_gradients = false;
  /// Steps run on a GPU, one after the other, in memory of its allocator.
  bool on_gpu = false;
  /// Execute a fused node as the operators of its body instead of a compiled kernel.
  bool unfuse = false;
  /// Offloaded values are in files in this folder; "": in memory.
  std::string offload_folder = {};

  /// The fastest plan of one graph: all of the above but keep_values, separate_outputs,
  /// donate_gradients and unfuse.
  static PlanOptions Fastest() {
    return {.fold_views = true,
            .static_memory = true,
            .in_place = true,
            .hoist_constants = true,
            .arena_results = true,
            .dynamic_arena = true};
  }
  /// The same for the graphs of a training, whose gradients no caller reads after the optimizer.
  static PlanOptions FastestTraining() {
    PlanOptions options = Fastest();
    options.donate_gradients = true;
    return options;
  }
  /// Whether steps are bound to tensors once, for all runs.
  bool is_static() const { return fold_views || static_memory || hoist_constants; }
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

using SlotId = Id<struct PlanSlotTag>;
using StepId = Id<struct PlanStepTag>;
using BodyId = Id<struct PlanBodyTag>;

/// An argument of a step: a literal, or a slot that is read at run time.
struct PlanArg {
  ArgKind kind = ArgKind::kNone;
  SlotId slot;          ///< kValue
  int64_t integer = 0;  ///< kInt, kBool; of kGraph the BodyId
  double real = 0.0;    ///< kFloat
  DType dtype = DType::kUnknown;
  std::string text;               ///< kString, kDevice, kRaw; of kGraph the body's name
  std::vector<PlanArg> elements;  ///< kList, kTuple
};

/// A layout that depends on sizes that a run reads from data, by the slots that they are read into.
struct DynamicLayout {
  DType dtype = DType::kUnknown;
  std::vector<SizeForm> sizes, strides;
  SizeForm bytes;  ///< of the smallest storage that holds it
};

/// A place for a value while the plan runs.
struct PlanSlot {
  ValueId value;     ///< none: inside a fused node
  std::string name;  ///< of the value in its graph
  std::string type;  ///< `f32[4, 32][32, 1]cpu`; empty when not known
  std::optional<PlanLayout> layout = std::nullopt;  ///< none: not known
  /// The slot whose storage it shares; itself when it has its own.
  SlotId storage;
  std::optional<DynamicLayout> dynamic_layout =
      std::nullopt;  ///< where it has no layout; none: unknown
};

/// Sizes that steps of a run read from data, by the slot that they are read into.
using SlotSizes = IdVector<SlotId, std::optional<int64_t>>;

/// The stream of a device on which collectives run, beside stream 0, which computes.
inline constexpr int32_t kCommunicationStream = 6;

/// One call of an operator.
struct PlanStep {
  NodeId node;     ///< of a fused node that is executed as its body: the fused node
  std::string op;  ///< "aten.mm.default"
  std::vector<PlanArg> args;
  std::vector<std::pair<std::string, PlanArg>> kwargs;
  bool returns_tuple = false;
  bool is_view = false;           ///< its results only share an operand's storage
  bool mutates = false;           ///< it writes to an operand
  bool is_pure = false;           ///< same operands, same results, and nothing else happens
  KernelId kernel = {};           ///< of a fused node
  FlexKernelId flex_kernel = {};  ///< compiled code that computes the step
  bool runs_bodies = false;       ///< a higher-order operator: its arguments name bodies
  /// The dynamic numbers of a kernel with data-dependent sizes, by slot.
  std::vector<SizeForm> dynamic_numbers = {};
  int32_t stream = 0;           ///< of the device; 0: the one that computes
  bool is_outside = false;      ///< of the pieces that device graphs hold (Capture::kPieces)
  std::vector<SlotId> results;  ///< per result; invalid: unused
  /// Of a step inside a fused node that is executed as its body: which result of the node each of
  /// `results` is; -1: none. Empty: the step is the node.
  std::vector<int32_t> node_results = {};
  int64_t unread_bytes = 0;  ///< of results without a slot: there until the step is done
  /// Slots whose last reader is this step, ascending. Their tensors are released, unless a view of
  /// them lives on.
  std::vector<SlotId> kills;
  std::string where;  ///< "layers.0.attention.wo (runtime/models/llama3.cc:79)", for messages

  /// Which result of `node` results[i] is; none: a value inside of it.
  std::optional<size_t> ResultOfNode(size_t i) const;
  /// Calls `fn(slot)` for every value among the arguments, with repetitions.
  template <class Fn>
  void ForEachOperand(Fn&& fn) const;
};

/// Sizes that are the parts of a whole, whatever the data: the rows of each expert. By the slots of
/// the plan that they are read into.
struct SizePartition {
  std::vector<SlotId> slots;
  int64_t total = 0;
};

/// The size of an input that the graph does not know: another graph read it from data.
inline constexpr int64_t kAnySize = -1;

/// What device graphs hold of a plan (passes/compile/cuda_graph.h).
enum class Capture : uint8_t {
  kNothing,
  kWhole,
  kPieces  ///< the steps between those with `is_outside`
};

/// A graph lowered for execution: what to call in which order, and when each value goes. Knows
/// nothing of tensors; an executor binds it to a library of operators.
struct Plan {
  struct Input {
    SlotId slot;
    DType dtype = DType::kUnknown;
    std::vector<int64_t> sizes;                   ///< or kAnySize
    std::optional<std::vector<int64_t>> strides;  ///< none: not known, any will do
    /// A parameter, a buffer or state of the optimizer: the same memory in every run.
    bool is_static = false;
    bool is_donated = false;  ///< PlanOptions::donate_gradients
    size_t placeholder = 0;   ///< its place among the graph's placeholders, numbers included
  };
  struct Constant {
    SlotId slot;
    std::string path;  ///< attribute path of its kGetAttr node; of a body from the program on
  };

  std::string graph;  ///< name
  PlanOptions options;
  Capture capture = Capture::kNothing;
  SymbolSizes sizes;              ///< what the graph's symbols are in this plan
  Fingerprint graph_fingerprint;  ///< FingerprintScope::kComputation of what was lowered
  IdVector<SlotId, PlanSlot> slots;
  IdVector<KernelId, Kernel> kernels;
  IdVector<FlexKernelId, FlexKernel> flex_kernels;
  IdVector<BodyId, Plan> bodies;  ///< that higher-order operators run, each lowered once
  std::vector<Input> inputs;      ///< in the order of the placeholders; never killed
  std::vector<Constant> constants;
  IdVector<StepId, PlanStep> steps;       ///< in the order of the nodes
  std::vector<SizePartition> partitions;  ///< of sizes that steps read from data
  std::vector<SlotId> outputs;            ///< invalid: None, or a number of a program

  /// Of graph, options and sizes: equal plans do the same.
  Fingerprint fingerprint() const;
};

/// Lowers a graph as it stands; nothing is reordered, merged or left out. Its symbols are what
/// `sizes` says: one graph makes a plan per combination of sizes.
///
/// A fused node (passes/compile/fuse.h) becomes one step with a kernel, or the steps of its body,
/// as a region does (passes/regions).
/// Values of data-dependent size (`u0 = _local_scalar_dense(…)`) have no layout: steps
/// take the numbers at run time, and operators allocate. Kernels of such values are for static
/// plans.
/// A higher-order operator (runtime/plan/higher_order.h) is one step. Its bodies become plans
/// without options.
///
/// Errors (kUnsupported): symbols that are not in `sizes`, other higher-order operators, calls of
/// methods or modules, inputs other than tensors.
Result<Plan> Lower(const Graph& graph, const PlanOptions& options = {},
                   const SymbolSizes& sizes = {});

template <class Fn>
void ForEachSlot(const PlanArg& arg, Fn&& fn) {
  if (arg.kind == ArgKind::kValue) fn(arg.slot);
  for (const PlanArg& element : arg.elements)
    ForEachSlot(element, fn);
}

template <class Fn>
void PlanStep::ForEachOperand(Fn&& fn) const {
  for (const PlanArg& arg : args)
    ForEachSlot(arg, fn);
  for (const auto& [name, arg] : kwargs)
    ForEachSlot(arg, fn);
}

/// `mm = aten.mm.default(view: f32[8, 4][4, 1]cpu, t: f32[4, 4][1, 4]cpu)`, for messages.
std::string Describe(const Plan& plan, const PlanStep& step);

}  // namespace strata
