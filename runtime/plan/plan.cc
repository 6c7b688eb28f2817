#include "runtime/plan/plan.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string_view>
#include <xxhash.h>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/native_text.h"

namespace strata {
namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const PlanOptions& options)
      : graph_(graph),
        module_(graph.module()),
        slot_of_(static_cast<size_t>(graph.value_bound()), -1) {
    plan_.graph = graph.name_text();
    plan_.options = options;
    plan_.graph_fingerprint = FingerprintOf(graph);
  }

  Result<Plan> Run() {
    for (const NodeId node : graph_.nodes()) {
      auto lowered = LowerNode(node);
      if (!lowered) {
        return std::move(lowered).error().In(
            fmt::format("graph {} cannot be executed: {}", plan_.graph, graph_.name(node)));
      }
    }
    if (!plan_.options.keep_values) AddKills();
    return std::move(plan_);
  }

 private:
  Status LowerNode(NodeId node) {
    switch (graph_.node(node).kind) {
      case NodeKind::kPlaceholder:
        return AddInput(node);
      case NodeKind::kGetAttr:
        return AddConstant(node);
      case NodeKind::kCall:
        return AddStep(node);
      case NodeKind::kOutput:
        return AddOutputs(node);
      default:
        return Unsupported("calls of methods and modules are not operators");
    }
  }

  Status AddInput(NodeId node) {
    const ValueId value = graph_.result(node);
    const TypeId type_id = graph_.value(value).type;
    if (!type_id.valid() || module_.types()[type_id].kind != TypeKind::kTensor) {
      return Unsupported("an input must be a tensor of known type");
    }
    const Type& type = module_.types()[type_id];
    Plan::Input input{.slot = NewSlot(value), .dtype = type.dtype, .sizes = {}, .strides = {}};
    STRATA_TRY(input.sizes, Numbers(type.sizes));
    if (type.has_strides) {
      STRATA_TRY(input.strides, Numbers(type.strides));
    }
    plan_.inputs.push_back(std::move(input));
    return Ok();
  }

  Result<std::vector<int64_t>> Numbers(std::span<const DimId> dims) const {
    std::vector<int64_t> numbers;
    for (const DimId dim : dims) {
      const std::optional<int64_t> number = module_.dims().AsConst(dim);
      if (!number) return Unsupported("sizes must be numbers");
      numbers.push_back(*number);
    }
    return numbers;
  }

  Status AddConstant(NodeId node) {
    if (graph_.node(node).num_args > 0) return Unsupported("higher-order operators do not run yet");
    plan_.constants.push_back(
        {.slot = NewSlot(graph_.result(node)), .path = std::string(graph_.op(node))});
    return Ok();
  }

  Status AddStep(NodeId node) {
    const Node& n = graph_.node(node);
    PlanStep step{.node = node,
                  .op = std::string(graph_.op(node)),
                  .args = {},
                  .kwargs = {},
                  .returns_tuple = n.returns_tuple,
                  .results = {},
                  .kills = {},
                  .where = Where(node)};
    for (const Arg& arg : graph_.args(node)) {
      STRATA_TRY(PlanArg lowered, LowerArg(arg));
      step.args.push_back(std::move(lowered));
    }
    for (size_t i = 0; i < n.num_kwargs; ++i) {
      const NamedArg kwarg = graph_.kwarg(node, i);
      STRATA_TRY(PlanArg lowered, LowerArg(kwarg.value));
      step.kwargs.emplace_back(module_.str(kwarg.name), std::move(lowered));
    }
    for (size_t i = 0; i < n.num_results; ++i) {
      const ValueId value = graph_.result(node, i);
      const bool is_read = graph_.value(value).num_uses > 0 || plan_.options.keep_values;
      step.results.push_back(is_read ? NewSlot(value) : -1);
    }
    plan_.steps.push_back(std::move(step));
    return Ok();
  }

  Status AddOutputs(NodeId node) {
    const auto add = [&](const Arg& arg) -> Status {
      STRATA_TRY(const PlanArg output, LowerArg(arg));
      if (output.kind != ArgKind::kValue && output.kind != ArgKind::kNone) {
        return Unsupported("an output must be a tensor or None");
      }
      plan_.outputs.push_back(output.slot);
      return Ok();
    };
    for (const Arg& arg : graph_.args(node)) {
      if (!arg.is_span()) {
        STRATA_RETURN_IF_ERROR(add(arg));
        continue;
      }
      for (const Arg& element : graph_.elements(arg))
        STRATA_RETURN_IF_ERROR(add(element));
    }
    return Ok();
  }

  Result<PlanArg> LowerArg(const Arg& arg) {
    PlanArg lowered;
    lowered.kind = arg.kind();
    switch (arg.kind()) {
      case ArgKind::kNone:
        return lowered;
      case ArgKind::kValue:
        lowered.slot = SlotOf(arg.value());
        return lowered;
      case ArgKind::kInt:
        lowered.integer = arg.as_int();
        return lowered;
      case ArgKind::kBool:
        lowered.integer = arg.as_bool() ? 1 : 0;
        return lowered;
      case ArgKind::kFloat:
        lowered.real = arg.as_float();
        return lowered;
      case ArgKind::kDType:
        lowered.dtype = arg.dtype();
        return lowered;
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kRaw:
        lowered.text = module_.str(arg.str());
        return lowered;
      case ArgKind::kDim: {
        const std::optional<int64_t> number = module_.dims().AsConst(arg.dim());
        if (!number) return Unsupported("sizes must be numbers");
        lowered.kind = ArgKind::kInt;
        lowered.integer = *number;
        return lowered;
      }
      case ArgKind::kList:
      case ArgKind::kTuple:
        for (const Arg& element : graph_.elements(arg)) {
          STRATA_TRY(PlanArg item, LowerArg(element));
          lowered.elements.push_back(std::move(item));
        }
        return lowered;
      case ArgKind::kGraph:
        return Unsupported("higher-order operators do not run yet");
      case ArgKind::kDict:
      case ArgKind::kCall:
        return Unsupported("an operator takes no dictionaries and no calls");
    }
    return Unsupported("an argument of unknown kind");
  }

  /// The last reader of a value ends its life. As FX's `delete_unused_values`, but for inputs,
  /// which belong to the caller, and constants, which serve the next run.
  void AddKills() {
    std::vector<bool> lives_on(plan_.slots.size(), false);
    const auto mark = [&](int32_t slot) {
      if (slot < 0 || lives_on[static_cast<size_t>(slot)]) return false;
      lives_on[static_cast<size_t>(slot)] = true;
      return true;
    };
    for (const Plan::Input& input : plan_.inputs)
      mark(input.slot);
    for (const Plan::Constant& constant : plan_.constants)
      mark(constant.slot);
    for (const int32_t output : plan_.outputs)
      mark(output);
    for (PlanStep& step : plan_.steps | std::views::reverse) {
      graph_.ForEachOperand(step.node, [&](ValueId operand) {
        if (mark(SlotOf(operand))) step.kills.push_back(SlotOf(operand));
      });
      std::ranges::sort(step.kills);
    }
  }

  std::string Where(NodeId node) const {
    const Node& n = graph_.node(node);
    const std::string_view module = module_.str(n.module);
    std::string where(module.empty() ? ToString(n.phase) : module);
    if (n.loc.valid()) {
      const SourceLoc& loc = module_.loc(n.loc);
      where += fmt::format(" ({}:{})", module_.str(loc.file), loc.line);
    }
    return where;
  }

  int32_t NewSlot(ValueId value) {
    const TypeId type = graph_.value(value).type;
    plan_.slots.push_back({.value = value,
                           .name = std::string(graph_.value_name(value)),
                           .type = type.valid() ? module_.types().ToString(type) : ""});
    return slot_of_[static_cast<size_t>(value.index)] =
               static_cast<int32_t>(plan_.slots.size()) - 1;
  }
  int32_t SlotOf(ValueId value) const { return slot_of_[static_cast<size_t>(value.index)]; }

  static Error Unsupported(std::string_view why) {
    return Error(ErrorCode::kUnsupported, "{}", why);
  }

  const Graph& graph_;
  const Module& module_;
  std::vector<int32_t> slot_of_;  // by value
  Plan plan_;
};

void AppendArg(const Plan& plan, const PlanArg& arg, std::string& out) {
  switch (arg.kind) {
    case ArgKind::kValue: {
      const PlanSlot& slot = plan.slots[static_cast<size_t>(arg.slot)];
      out += slot.name;
      if (!slot.type.empty()) out += fmt::format(": {}", slot.type);
      return;
    }
    case ArgKind::kInt:
      out += fmt::format("{}", arg.integer);
      return;
    case ArgKind::kBool:
      out += arg.integer != 0 ? "True" : "False";
      return;
    case ArgKind::kFloat:
      AppendFloat(arg.real, out);
      return;
    case ArgKind::kDType:
      out += TorchName(arg.dtype);
      return;
    case ArgKind::kString:
      AppendQuoted(arg.text, out);
      return;
    case ArgKind::kDevice:
    case ArgKind::kRaw:
      out += arg.text;
      return;
    case ArgKind::kList:
    case ArgKind::kTuple:
      out += '[';
      for (size_t i = 0; i < arg.elements.size(); ++i) {
        if (i > 0) out += ", ";
        AppendArg(plan, arg.elements[i], out);
      }
      out += ']';
      return;
    default:
      out += "None";
      return;
  }
}

}  // namespace

Result<Plan> Lower(const Graph& graph, const PlanOptions& options) {
  return Lowering(graph, options).Run();
}

Fingerprint Plan::fingerprint() const {
  const uint64_t content[] = {graph_fingerprint.hi, graph_fingerprint.lo,
                              options.keep_values ? 1U : 0U};
  const XXH128_hash_t hash = XXH3_128bits(content, sizeof(content));
  return {.hi = hash.high64, .lo = hash.low64};
}

std::string Describe(const Plan& plan, const PlanStep& step) {
  std::string out;
  for (const int32_t slot : step.results) {
    if (slot < 0) continue;
    if (!out.empty()) out += ", ";
    out += plan.slots[static_cast<size_t>(slot)].name;
  }
  if (!out.empty()) out += " = ";
  out += step.op;
  out += '(';
  bool is_first = true;
  const auto comma = [&] {
    if (!std::exchange(is_first, false)) out += ", ";
  };
  for (const PlanArg& arg : step.args) {
    comma();
    AppendArg(plan, arg, out);
  }
  for (const auto& [name, arg] : step.kwargs) {
    comma();
    out += name;
    out += '=';
    AppendArg(plan, arg, out);
  }
  out += ')';
  return out;
}

}  // namespace strata
