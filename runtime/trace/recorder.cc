#include "runtime/trace/recorder.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/gradient_sums.h"
#include "ir/ops.h"
#include "runtime/aten/literals.h"

namespace strata {
namespace {

/// Drops what an undefined tensor, or none, drops from an argument list.
bool IsDefault(const c10::Argument& argument, const c10::IValue& value) {
  const std::optional<c10::IValue>& fallback = argument.default_value();
  if (!fallback) return false;
  // Comparing tensors would call an operator.
  if (value.isTensor()) return fallback->isNone() && !value.toTensor().defined();
  return *fallback == value;
}

/// Operators that change sizes or strides of their operand in place, and those that return the view
/// instead, with the same arguments. Source: native_functions.yaml, tag inplace_view.
constexpr std::pair<std::string_view, std::string_view> kInPlaceViews[] = {
    {"aten.as_strided_.default", "aten.as_strided.default"},
    {"aten.detach_.default", "aten.detach.default"},
    {"aten.squeeze_.default", "aten.squeeze.default"},
    {"aten.squeeze_.dim", "aten.squeeze.dim"},
    {"aten.squeeze_.dims", "aten.squeeze.dims"},
    {"aten.t_.default", "aten.t.default"},
    {"aten.transpose_.default", "aten.transpose.int"},
    {"aten.unsqueeze_.default", "aten.unsqueeze.default"},
};

/// The operator that returns the view that `op` changes its operand to; empty: it changes no view.
std::string_view ViewOf(std::string_view op) {
  const auto* const found =
      std::ranges::find(kInPlaceViews, op, [](const auto& entry) { return entry.first; });
  return found == std::end(kInPlaceViews) ? std::string_view() : found->second;
}

/// `Optional[int]` is `int` for a value that is there.
const c10::Type& Unwrapped(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::OptionalType ? *type->containedType(0) : *type;
}

/// How results read a value: a list or several results by position, one result directly.
bool ReturnsTuple(std::span<const c10::IValue> results) {
  return results.size() > 1 || (results.size() == 1 && results[0].isTensorList());
}

/// Calls `fn(tensor)` for every result of a call, with an undefined tensor for a result of another
/// type.
template <class Fn>
void ForEachResult(std::span<const c10::IValue> results, Fn&& fn) {
  for (const c10::IValue& result : results) {
    if (result.isTensorList()) {
      for (const at::Tensor& element : result.toTensorVector())
        fn(element);
    } else {
      fn(result.isTensor() ? result.toTensor() : at::Tensor());
    }
  }
}

}  // namespace

std::string_view ToString(InputKind kind) {
  switch (kind) {
    case InputKind::kParameter:
      return "parameter";
    case InputKind::kBuffer:
      return "buffer";
    case InputKind::kState:
      return "state";
    case InputKind::kGradient:
      return "gradient";
    case InputKind::kBatch:
      return "batch";
  }
  return "";
}

Recorder::Recorder(Graph& graph, std::string_view device, Constants& constants)
    : graph_(graph),
      module_(graph.module()),
      rewriter_(graph),
      device_(device),
      constants_(constants),
      flex_(rewriter_, device) {}

void Recorder::AddInput(const TraceInput& input) {
  const std::string name = PlaceholderName(input.name);
  const TypeId type = TypeOf(input.example);
  const NodeId node = rewriter_.Create(
      {.kind = NodeKind::kPlaceholder, .results = std::span(&type, 1), .name = name},
      From::Source());
  rewriter_.SetModule(node, input.module);
  rewriter_.SetAttribute(node, "fqn", input.name);
  rewriter_.SetAttribute(node, "input", ToString(input.kind));
  Define(input.example, graph_.result(node));
}

NodeId Recorder::Begin(const c10::OperatorHandle& op, std::span<const c10::IValue> args,
                       const CallSite& site) {
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  operands_.clear();
  std::string name = OperatorName(op.schema());
  if (const std::string_view view = ViewOf(name); !view.empty()) {
    LeaveView(args[0].toTensor());
    name = view;
  }
  if (const std::optional<NodeId> flex = CreateFlexNode(op, name, args)) {
    Place(*flex, site);
    rewriter_.SetSeqNr(*flex, site.seq_nr);
    return *flex;
  }

  size_t num_positional = 0;
  for (size_t i = 0; i < args.size() && !arguments[i].kwarg_only(); ++i) {
    if (!IsDefault(arguments[i], args[i])) num_positional = i + 1;
  }
  std::vector<Arg> positional;
  std::vector<NamedArg> keywords;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_keyword = arguments[i].kwarg_only();
    if (is_keyword ? IsDefault(arguments[i], args[i]) : i >= num_positional) continue;
    const Arg arg = ToArg(args[i], Unwrapped(arguments[i].real_type()));
    if (is_keyword) {
      keywords.push_back({module_.Intern(arguments[i].name()), arg});
    } else {
      positional.push_back(arg);
    }
  }

  const NodeId node =
      rewriter_.Create({.op = name, .args = positional, .kwargs = keywords}, From::Source());
  Place(node, site);
  const bool is_sum = site.by_engine && IsOverloadOf(name, "aten.add");
  if (is_sum) rewriter_.SetAttribute(node, kGradientSumAttribute, "True");
  // A sum is for the function that reads it, and so is the first gradient; other operations of the
  // engine fit a gradient to the input of the function that made it.
  if (is_sum || (site.by_engine && site.seq_nr < 0)) {
    unplaced_.push_back(node);
  } else {
    rewriter_.SetSeqNr(node, site.seq_nr);
  }
  return node;
}

void Recorder::Place(NodeId node, const CallSite& site) {
  rewriter_.SetPhase(node, site.phase);
  rewriter_.SetModule(node, site.module);
  rewriter_.SetLoc(node, site.loc);
  for (const auto& [name, value] : site.attributes) {
    rewriter_.SetAttribute(node, name, value);
    scoped_.insert(module_.Intern(name));
  }
}

std::optional<NodeId> Recorder::CreateFlexNode(const c10::OperatorHandle& op, std::string_view name,
                                               std::span<const c10::IValue> args) {
  const auto to_arg = [&](const c10::IValue& value) {
    return ToArg(value, *op.schema().arguments()[0].real_type());
  };
  const auto type_of = [&](const at::Tensor& tensor) { return TypeOf(tensor); };
  const auto call = flex_.Translate(name, args, type_of, to_arg);
  if (!call) return std::nullopt;
  return rewriter_.Create({.op = call->op, .args = call->args}, From::Source());
}

void Recorder::End(NodeId node, std::span<const c10::IValue> results) {
  if (results.empty()) return;
  std::vector<at::Tensor> tensors;
  ForEachResult(results, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  std::vector<TypeId> types;
  for (const at::Tensor& tensor : tensors)
    types.push_back(tensor.defined() ? TypeOf(tensor) : TypeId{});
  rewriter_.SetResults(node, types, ReturnsTuple(results));

  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    if (!tensor.defined()) continue;
    const ValueId value = graph_.result(node, i);
    const auto shares = [&](const at::Tensor& operand) {
      return operand.has_storage() && tensor.has_storage() &&
             operand.storage().is_alias_of(tensor.storage());
    };
    // An in-place result is its operand; a view only shares its memory.
    auto source = std::ranges::find_if(
        operands_, [&](const at::Tensor& operand) { return operand.is_same(tensor); });
    const bool is_operand = source != operands_.end();
    if (!is_operand) source = std::ranges::find_if(operands_, shares);
    if (source != operands_.end()) rewriter_.SetAlias(value, ValueOf(*source));
    if (is_operand) {
      Redefine(tensor, value);
    } else {
      Define(tensor, value);
    }
  }
  operands_.clear();
}

void Recorder::EndSize(NodeId node, std::string_view symbol, int64_t index, int64_t sampled) {
  Type type;
  type.kind = TypeKind::kSymInt;
  type.dim = module_.dims().Sym(symbol);
  module_.dims().SetSymbol(
      {.name = module_.Intern(symbol), .hint = std::nullopt, .min = 0, .backed = false});
  const TypeId id = module_.types().Intern(type);
  rewriter_.SetResults(node, std::span(&id, 1), /*returns_tuple=*/false);
  rewriter_.SetAttribute(node, kSampledSize, std::to_string(sampled));
  rewriter_.SetAttribute(node, kSizeIndex, std::to_string(index));
  operands_.clear();
}

void Recorder::ReadByBackward(const at::Tensor& gradient, int32_t seq_nr) {
  if (!gradient.defined()) return;
  const auto known = by_tensor_.find(gradient.unsafeGetTensorImpl());
  if (known == by_tensor_.end()) return;
  const NodeId node = graph_.value(known->second).def;
  if (std::erase(unplaced_, node) > 0) rewriter_.SetSeqNr(node, seq_nr);
}

void Recorder::AddOutputs(std::span<const at::Tensor> outputs) {
  std::vector<Arg> elements;
  for (const at::Tensor& output : outputs)
    elements.push_back(TensorArg(output));
  const Arg list = rewriter_.MakeSpan(ArgKind::kList, elements);
  rewriter_.Create({.kind = NodeKind::kOutput, .args = std::span(&list, 1)}, From::Source());
}

void Recorder::Finish() {
  NameElements();
  PlaceByReader();
  CopyForwardOrigins();
}

/// As FX: an element is a node `getitem`, `getitem_1`, … of its own, and exists when it is read.
void Recorder::NameElements() {
  int32_t count = 0;
  for (const NodeId node : graph_.nodes()) {
    if (!graph_.node(node).returns_tuple) continue;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId element = graph_.result(node, i);
      if (graph_.uses(element).empty()) continue;
      rewriter_.SetElementName(element, count == 0 ? "getitem" : fmt::format("getitem_{}", count));
      ++count;
    }
  }
}

/// What no function reads: the inner ones of a sum of several terms, and sums that are outputs.
void Recorder::PlaceByReader() {
  // Backwards, so that a reader is placed before what it reads.
  for (const NodeId node : unplaced_ | std::views::reverse) {
    int32_t seq_nr = -1;
    // Terms that autograd did not make, of a gradient summed before, have no number.
    const auto follow = [&](NodeId neighbour) {
      if (graph_.node(neighbour).seq_nr >= 0) seq_nr = graph_.node(neighbour).seq_nr;
    };
    for (const ValueId term : graph_.operands(node))
      follow(graph_.value(term).def);
    for (const Use use : graph_.uses(graph_.result(node)))
      follow(use.user);
    rewriter_.SetSeqNr(node, seq_nr);
  }
}

/// Source: torchtitan graph_trainer `_copy_fwd_metadata_to_bw_nodes`.
void Recorder::CopyForwardOrigins() {
  std::unordered_map<int32_t, NodeId> forward;
  for (const NodeId node : graph_.nodes()) {
    const Node& n = graph_.node(node);
    if (n.seq_nr >= 0 && n.phase != Phase::kBackward) forward.try_emplace(n.seq_nr, node);
  }
  for (const NodeId node : graph_.nodes()) {
    const Node& n = graph_.node(node);
    if (n.phase != Phase::kBackward) continue;
    const auto mate = forward.find(n.seq_nr);
    if (mate == forward.end()) continue;
    rewriter_.SetModule(node, module_.str(graph_.node(mate->second).module));
    rewriter_.SetLoc(node, graph_.node(mate->second).loc);
    CopyScopedAttributes(mate->second, node);
  }
}

void Recorder::CopyScopedAttributes(NodeId forward, NodeId backward) {
  const auto attributes = graph_.attributes(forward);
  for (const auto& [name, value] : std::vector(attributes.begin(), attributes.end()))
    if (scoped_.contains(name))
      rewriter_.SetAttribute(backward, module_.str(name), module_.str(value));
}

}  // namespace strata
