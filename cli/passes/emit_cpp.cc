#include "cli/passes/emit_cpp.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/passes/cpp_text.h"
#include "embedded/strata_emit_cpp_assets.h"
#include "ir/complex_literal.h"
#include "ir/fused_op.h"
#include "ir/module.h"
#include "ir/op_name.h"
#include "passes/core/written_memory.h"

namespace strata::cli {
namespace {

/// Written as the operator of C++ that it calls in Python, `aten._to_copy`.
constexpr std::string_view kCastPrim = "prims.convert_element_type.default";

constexpr std::pair<std::string_view, std::string_view> kRawLiterals[] = {
    {"torch.strided", "at::kStrided"},
    {"torch.contiguous_format", "at::MemoryFormat::Contiguous"},
    {"torch.preserve_format", "at::MemoryFormat::Preserve"},
    {"torch.channels_last", "at::MemoryFormat::ChannelsLast"},
};

/// Bodies of fused nodes, those first that others call, and the names of their functions.
struct Functions {
  std::vector<GraphId> order;
  std::map<int32_t, std::string> names;  ///< by the id of the body
  CppNames taken;
};

const Graph& BodyOf(const Graph& graph, NodeId fused) {
  const NodeId attribute = graph.value(graph.args(fused)[0].value()).def;
  return graph.module().graph(graph.args(attribute)[0].graph());
}

void CollectBodies(const Graph& graph, Functions& functions) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall || graph.op(node) != kFusedOp) continue;
    const Graph& body = BodyOf(graph, node);
    if (functions.names.contains(body.id().index)) continue;
    CollectBodies(body, functions);
    functions.names.emplace(body.id().index, functions.taken.Take(body.name_text()));
    functions.order.push_back(body.id());
  }
}

/// Writes the body of a function: a statement per node.
class FunctionWriter {
 public:
  FunctionWriter(const Graph& graph, const Functions& functions, std::string& out)
      : graph_(graph), functions_(functions), out_(out), names_(functions.taken) {
    FindLastUses();
  }

  Status Write() {
    size_t inputs = 0;
    for (const NodeId node : graph_.nodes()) {
      const Node& n = graph_.node(node);
      auto written = n.kind == NodeKind::kPlaceholder ? WriteInput(node, inputs++)
                     : n.kind == NodeKind::kGetAttr   ? WriteAttribute(node, inputs)
                     : n.kind == NodeKind::kCall      ? WriteCall(node)
                     : n.kind == NodeKind::kOutput    ? WriteReturn(node)
                                                      : Refuse(node, "is not an operator");
      if (!written) {
        return std::move(written).error().In(
            fmt::format("{} of {}", graph_.name(node), graph_.name_text()));
      }
    }
    return Ok();
  }

 private:
  static Status Refuse(NodeId, std::string_view why) {
    return Error(ErrorCode::kUnsupported, "it {}", why);
  }

  void FindLastUses() {
    std::map<int32_t, NodeId> last;
    for (const NodeId node : graph_.nodes())
      graph_.ForEachOperand(node, [&](ValueId value) { last[value.index] = node; });
    for (const auto& [value, node] : last) {
      read_.insert(value);
      if (node != graph_.output()) freed_[node.index].push_back(ValueId{value});
    }
  }

  const std::string& NameOf(ValueId value) const { return names_of_values_.at(value.index); }

  /// The local variable of a value.
  const std::string& Declare(ValueId value) {
    return names_of_values_[value.index] = names_.Take(graph_.value_name(value));
  }

  Status WriteInput(NodeId node, size_t index) {
    out_ += fmt::format("  Tensor {} = given[{}];\n", Declare(graph_.result(node)), index);
    return Ok();
  }

  /// A constant is an input behind the placeholders; a body is a function.
  Status WriteAttribute(NodeId node, size_t& inputs) {
    const bool is_body = !graph_.args(node).empty();
    return is_body ? Ok() : WriteInput(node, inputs++);
  }

  Status WriteCall(NodeId node) {
    const Node& n = graph_.node(node);
    std::string call;
    if (graph_.op(node) == kFusedOp) {
      STRATA_TRY(call, FusedCall(node));
    } else {
      STRATA_TRY(call, OperatorCall(node));
    }
    const std::string place = Place(node);
    if (n.returns_tuple) {
      WriteTuple(node, call, place);
    } else if (n.num_results == 1) {
      const ValueId result = graph_.result(node);
      out_ += fmt::format("  {} {} = {};{}\n", IsInteger(result) ? "int64_t" : "Tensor",
                          Declare(result), call, place);
    } else {
      out_ += fmt::format("  {};{}\n", call, place);
    }
    std::vector<std::string> freed;
    for (const ValueId value : freed_[node.index])
      if (!IsBody(value)) freed.push_back(NameOf(value));
    if (!freed.empty()) out_ += fmt::format("  Release({});\n", fmt::join(freed, ", "));
    return Ok();
  }

  /// A variable for each result that is read.
  void WriteTuple(NodeId node, const std::string& call, const std::string& place) {
    const std::string all = names_.Take(fmt::format("{}_all", graph_.name(node)));
    out_ += fmt::format("  std::vector<Tensor> {} = {};{}\n", all, call, place);
    for (uint32_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId value = graph_.result(node, i);
      if (!read_.contains(value.index)) continue;
      out_ += fmt::format("  Tensor {} = {}[{}];\n", Declare(value), all, i);
    }
    out_ += fmt::format("  Release({});\n", all);
  }

  bool IsBody(ValueId value) const {
    const NodeId def = graph_.value(value).def;
    return graph_.node(def).kind == NodeKind::kGetAttr && !graph_.args(def).empty();
  }

  /// A number that the program reads from data.
  bool IsInteger(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    return type.valid() && graph_.module().types()[type].kind == TypeKind::kSymInt;
  }

  /// `kernel_0({x, y})`
  Result<std::string> FusedCall(NodeId node) {
    std::vector<std::string> operands;
    for (const ValueId value : graph_.operands(node))
      if (!IsBody(value)) operands.push_back(NameOf(value));
    const std::string call =
        fmt::format("{}({{{}}})", functions_.names.at(BodyOf(graph_, node).id().index),
                    fmt::join(operands, ", "));
    return graph_.node(node).returns_tuple ? call : call + "[0]";
  }

  /// `prims.convert_element_type(x, dtype)` as the operator that it calls in Python.
  Result<std::string> CastCall(NodeId node) {
    const std::span<const Arg> args = graph_.args(node);
    if (args.size() != 2)
      return Error(ErrorCode::kUnsupported, "{} takes a tensor and a dtype", graph_.op(node));
    STRATA_TRY(const std::string value, Literal(args[0]));
    STRATA_TRY(const std::string dtype, Literal(args[1]));
    return fmt::format(R"(Call("aten::_to_copy", "", {{{}}}, {{{{"dtype", {}}}}}))", value, dtype);
  }

  Result<std::string> OperatorCall(NodeId node) {
    if (graph_.op(node) == kCastPrim) return CastCall(node);
    const std::string_view op = graph_.op(node);
    // A call may leave out the overload, as Python may: `aten.clone`.
    const size_t first = op.find('.');
    const size_t last =
        op.find('.', first + 1) == std::string_view::npos ? op.size() : op.rfind('.');
    if (op.starts_with("strata.") || op.starts_with("higher_order.") || first > last) {
      return Error(ErrorCode::kUnsupported,
                   "PyTorch has no operator {}; emit a snapshot before the pass that made it", op);
    }
    const std::string_view overload = last == op.size() ? "default" : op.substr(last + 1);
    std::vector<std::string> args, named;
    for (const Arg& arg : graph_.args(node)) {
      STRATA_TRY(args.emplace_back(), Literal(arg));
    }
    for (size_t i = 0; i < graph_.node(node).num_kwargs; ++i) {
      const NamedArg arg = graph_.kwarg(node, i);
      STRATA_TRY(const std::string value, Literal(arg.value));
      named.push_back(fmt::format("{{{}, {}}}", CppString(graph_.module().str(arg.name)), value));
    }
    const Node& n = graph_.node(node);
    const bool is_integer = n.num_results == 1 && IsInteger(graph_.result(node));
    return fmt::format("{}(\"{}::{}\", \"{}\", {{{}}}{})",
                       n.returns_tuple ? "CallAll"
                       : is_integer    ? "CallInt"
                                       : "Call",
                       op.substr(0, first), op.substr(first + 1, last - first - 1),
                       overload == "default" ? "" : overload, fmt::join(args, ", "),
                       named.empty() ? "" : fmt::format(", {{{}}}", fmt::join(named, ", ")));
  }

  /// An argument as C++ writes it.
  Result<std::string> Literal(const Arg& arg) {
    const Module& module = graph_.module();
    switch (arg.kind()) {
      case ArgKind::kNone:
        return std::string("Arg()");
      case ArgKind::kValue:
        if (!IsBody(arg.value())) return NameOf(arg.value());
        return Error(ErrorCode::kUnsupported, "it calls a graph, which has no C++ form here");
      case ArgKind::kInt:
        // The least one has no literal.
        if (arg.as_int() == std::numeric_limits<int64_t>::min()) return std::string("INT64_MIN");
        return fmt::format("int64_t{{{}}}", arg.as_int());
      case ArgKind::kFloat:
        return CppDouble(arg.as_float());
      case ArgKind::kBool:
        return std::string(arg.as_bool() ? "true" : "false");
      case ArgKind::kString:
        return fmt::format("std::string({})", CppString(module.str(arg.str())));
      case ArgKind::kDType: {
        const std::string_view type = CppScalarType(arg.dtype());
        if (!type.empty()) return std::string(type);
        return Error(ErrorCode::kUnsupported, "{} has no C++ form here", TorchName(arg.dtype()));
      }
      case ArgKind::kDevice:
        return fmt::format("at::Device({})", CppString(module.str(arg.str())));
      case ArgKind::kRaw:
        for (const auto& [text, literal] : kRawLiterals)
          if (text == module.str(arg.str())) return std::string(literal);
        if (const auto number = ParseComplex(module.str(arg.str()))) {
          return fmt::format("c10::complex<double>({}, {})", CppDouble(number->real()),
                             CppDouble(number->imag()));
        }
        return Error(ErrorCode::kUnsupported, "{} has no C++ form here", module.str(arg.str()));
      case ArgKind::kList:
      case ArgKind::kTuple: {
        std::vector<std::string> elements;
        for (const Arg& element : graph_.elements(arg)) {
          STRATA_TRY(elements.emplace_back(), Literal(element));
        }
        return fmt::format("List({{{}}})", fmt::join(elements, ", "));
      }
      case ArgKind::kDim:
        return Error(ErrorCode::kUnsupported,
                     "it reads a dynamic size; train with compile.symbolic_dims = 'none'");
      default:
        return Error(ErrorCode::kUnsupported, "an argument has no C++ form here");
    }
  }

  /// `  // layers.0.attention.wq, model.py:79`
  std::string Place(NodeId node) const {
    const Node& n = graph_.node(node);
    std::string place(graph_.module().str(n.module));
    if (n.loc.valid()) {
      const SourceLoc& loc = graph_.module().loc(n.loc);
      place += fmt::format("{}{}:{}", place.empty() ? "" : ", ", graph_.module().str(loc.file),
                           loc.line);
    }
    if (n.phase != Phase::kUnknown)
      place += fmt::format("{}{}", place.empty() ? "" : ", ", ToString(n.phase));
    return place.empty() ? "" : "  " + CppComment(place);
  }

  Status WriteReturn(NodeId node) {
    std::vector<std::string> values;
    const std::span<const Arg> args = graph_.args(node);
    const bool is_list = args.size() == 1 && args[0].is_span();
    for (const Arg& arg : is_list ? graph_.elements(args[0]) : args)
      values.push_back(arg.is_value() ? NameOf(arg.value()) : "Tensor()");
    out_ += fmt::format("  return {{{}}};\n", fmt::join(values, ", "));
    return Ok();
  }

  const Graph& graph_;
  const Functions& functions_;
  std::string& out_;
  CppNames names_;
  std::map<int32_t, std::string> names_of_values_;
  std::map<int32_t, std::vector<ValueId>> freed_;  // by the node of their last use
  std::set<int32_t> read_;                         // values
};

/// Strides that are not those of contiguous rows; empty where they are.
std::string StridesOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return "";
  const Type& type = graph.module().types()[id];
  if (!type.has_strides) return "";
  std::vector<int64_t> strides;
  int64_t rows = 1;
  bool is_contiguous = true;
  for (size_t i = type.sizes.size(); i-- > 0;) {
    const auto size = graph.module().dims().AsConst(type.sizes[i]);
    const auto stride = graph.module().dims().AsConst(type.strides[i]);
    if (!size || !stride) return "";
    is_contiguous = is_contiguous && (*stride == rows || *size == 1);
    rows *= *size;
    strides.insert(strides.begin(), *stride);
  }
  return is_contiguous ? "" : fmt::format("{}", fmt::join(strides, ", "));
}

/// `at::kFloat, {2, 3}, {3, 1}`: as `Input` has it. A type that is not known is undefined, and has
/// no sizes that count.
std::string InputType(const Graph& graph, ValueId value) {
  constexpr std::string_view kUnknown = "at::ScalarType::Undefined, {}, {}";
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return std::string(kUnknown);
  const Type& type = graph.module().types()[id];
  const std::string_view scalar = CppScalarType(type.dtype);
  std::vector<int64_t> sizes;
  for (const DimId dim : type.sizes)
    if (const auto size = graph.module().dims().AsConst(dim)) sizes.push_back(*size);
  if (scalar.empty() || sizes.size() != type.sizes.size()) return std::string(kUnknown);
  return fmt::format("{}, {{{}}}, {{{}}}", scalar, fmt::join(sizes, ", "), StridesOf(graph, value));
}

std::string InputTable(const Graph& graph) {
  std::string inputs;
  const std::set<ValueId> written = WrittenMemory(graph);
  const auto add = [&](NodeId node, std::string_view name) {
    const ValueId value = graph.result(node);
    inputs += fmt::format("    {{{}, {}, {}{}}},\n", CppString(name), CppString(graph.name(node)),
                          InputType(graph, value), written.contains(value) ? ", true" : "");
  };
  for (const NodeId node : graph.placeholders()) {
    const std::string_view name = graph.attribute(node, "fqn");
    add(node, name.empty() ? graph.name(node) : name);
  }
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kGetAttr && graph.args(node).empty())
      add(node, graph.op(node));
  }
  return inputs;
}

std::string OutputTable(const Graph& graph) {
  std::string outputs;
  const std::span<const Arg> args = graph.args(graph.output());
  const bool is_list = args.size() == 1 && args[0].is_span();
  for (const Arg& arg : is_list ? graph.elements(args[0]) : args) {
    outputs += fmt::format(
        "    {},\n",
        CppString(arg.is_value() ? graph.unique_value_name(arg.value()) : std::string()));
  }
  return outputs;
}

bool CallsPrims(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](NodeId node) {
    return graph.op(node).starts_with("prims.") && graph.op(node) != kCastPrim;
  });
}

/// What step.cpp needs of `prims.*`, which are registered before it runs.
Result<std::string_view> WritePrims(const Graph& graph, const Functions& functions,
                                    const AtomicFolder& folder) {
  const bool are_called =
      CallsPrims(graph) || std::ranges::any_of(functions.order, [&](GraphId body) {
        return CallsPrims(graph.module().graph(body));
      });
  if (!are_called) return std::string_view();
  STRATA_RETURN_IF_ERROR(folder.Write("runtime/aten/prims.cc", assets::kPrimsCc));
  STRATA_RETURN_IF_ERROR(folder.Write("runtime/aten/prims.h", assets::kPrimsH));
  return std::string_view(
      "#include \"runtime/aten/prims.h\"\n\n"
      "static const bool has_prims = (strata::RegisterPrims(), true);\n\n");
}

Status WriteBodies(const Graph& graph, const Functions& functions, std::string& out) {
  for (const GraphId id : functions.order) {
    std::string text;
    STRATA_RETURN_IF_ERROR(FunctionWriter(graph.module().graph(id), functions, text).Write());
    out += fmt::format(
        "// A fused kernel, as the operators that it was made of.\n"
        "static std::vector<Tensor> {}(std::vector<Tensor> given) {{\n{}}}\n\n",
        functions.names.at(id.index), text);
  }
  return Ok();
}

}  // namespace

bool HasCppPrim(std::string_view op) {
  const std::string registration = fmt::format("add(\"{}(", SplitOpName(op).base);
  return std::string_view(assets::kPrimsCc).find(registration) != std::string_view::npos;
}

Status WriteCppProgram(const Graph& graph, std::string_view ref, const AtomicFolder& folder) {
  std::string step, bodies;
  Functions functions;
  CollectBodies(graph, functions);
  STRATA_RETURN_IF_ERROR(FunctionWriter(graph, functions, step).Write());
  STRATA_RETURN_IF_ERROR(WriteBodies(graph, functions, bodies));
  STRATA_TRY(const std::string_view prims, WritePrims(graph, functions, folder));
  const std::string program = fmt::format(
      "// The graph {}, written by strata emit. main.cpp runs it.\n\n"
      "#include \"step.h\"\n\n#include <cmath>\n\n#include \"call.h\"\n{}\n"
      "const std::vector<Input> kInputs = {{\n{}}};\n\n"
      "const std::vector<std::string> kOutputs = {{\n{}}};\n\n{}"
      "std::vector<Tensor> Step(std::vector<Tensor> given) {{\n{}}}\n",
      CppString(ref), prims, InputTable(graph), OutputTable(graph), bodies, step);
  STRATA_RETURN_IF_ERROR(folder.Write("step.cpp", program));
  for (const auto& [name, text] :
       {std::pair<std::string_view, std::string_view>{"CMakeLists.txt", assets::kProjectCmake},
        {"call.cpp", assets::kCallCpp},
        {"call.h", assets::kCallH},
        {"main.cpp", assets::kMainCpp},
        {"step.h", assets::kStepH},
        {"tensors.cpp", assets::kTensorsCpp},
        {"tensors.h", assets::kTensorsH}}) {
    STRATA_RETURN_IF_ERROR(folder.Write(name, text));
  }
  return Ok();
}

}  // namespace strata::cli
