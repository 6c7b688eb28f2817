#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/fx/operators.h"
#include "ir/native_text.h"

namespace strata {
namespace fx {
namespace {

constexpr int kMaxClassDepth = 40;

/// Attributes that are printed elsewhere than among a comment's `key: value` pairs.
bool IsTextKey(std::string_view key) {
  return key == kArgumentKey || key == kDescriptorKey || key == kPythonTypeKey ||
         key == "recompute" || key == "ac_graph_id" || key.starts_with(kCustomPrefix);
}

class Printer {
 public:
  Printer(const Graph& graph, const FxPrintOptions& options, std::string& out)
      : graph_(graph), module_(graph.module()), options_(options), out_(out) {}

  /// `class_name` of a body is its attribute's name; the program's is among its attributes.
  void PrintClass(std::string_view class_name, size_t indent, int depth) {
    indent_ = indent;
    FindLastUses();
    Line("class ");
    out_ += class_name;
    out_ += "(torch.nn.Module):\n";
    indent_ += 4;
    const bool is_expanded = depth == 0 && OutputFact(kSignatureKey).empty();
    if (OutputFact(kSignatureKey) == "boxed") {
      PrintBoxedSignature();
    } else {
      PrintSignature(is_expanded);
      indent_ += 4;
      PrintPrologue(is_expanded);
    }
    const size_t body = out_.size();
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind == NodeKind::kPlaceholder) PrintAlias(id);
    }
    for (NodeId id : graph_.nodes()) {
      const NodeKind kind = graph_.node(id).kind;
      if (kind == NodeKind::kPlaceholder) continue;
      if (kind == NodeKind::kOutput) {
        PrintReturn(id, depth == 0);
        continue;
      }
      if (options_.comments && has_comments_) PrintComment(id, body);
      PrintNode(id);
    }
    if (out_.size() == body) Line("pass\n");
    if (depth < kMaxClassDepth) PrintChildren(indent + 4, depth);
  }

 private:
  std::string_view OutputFact(std::string_view key) const {
    return graph_.output().valid() ? graph_.attribute(graph_.output(), key) : std::string_view{};
  }

  void Line(std::string_view text) {
    out_.append(indent_, ' ');
    out_ += text;
  }

  // Liveness, as torch.fx CodeGen computes it: a value is freed after its last reader.

  /// The results that have a name of their own in the text.
  std::vector<ValueId> Elements(NodeId id) const {
    std::vector<ValueId> elements;
    const Node& node = graph_.node(id);
    if (!node.returns_tuple) return elements;
    for (size_t i = 0; i < node.num_results; ++i) {
      const ValueId value = graph_.result(id, i);
      if (graph_.value(value).name.valid() || graph_.value(value).num_uses > 0) {
        elements.push_back(value);
      }
    }
    return elements;
  }

  void FindLastUses() {
    last_user_.assign(static_cast<size_t>(graph_.value_bound()), NodeId{});
    has_comments_ = false;
    for (NodeId id : graph_.nodes()) {
      graph_.ForEachOperand(
          id, [&](ValueId value) { last_user_[static_cast<size_t>(value.index)] = id; });
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::kPlaceholder || node.kind == NodeKind::kOutput) continue;
      has_comments_ |= node.phase != Phase::kUnknown || node.loc.valid() || node.module.valid() ||
                       node.seq_nr >= 0;
    }
    const std::string_view mark = OutputFact(kBackwardKey);
    marks_by_key_ = mark != "prefix";
    marks_by_prefix_ = mark != "key";
  }

  void PrintFree(std::string_view name, bool& any) {
    out_ += any ? " = " : ";  ";
    out_ += name;
    any = true;
  }

  void EndStatement(NodeId id, bool is_unused) {
    bool any = false;
    if (options_.frees) {
      graph_.ForEachOperand(id, [&](ValueId value) {
        NodeId& last = last_user_[static_cast<size_t>(value.index)];
        if (last != id) return;
        last = {};
        PrintFree(ValueName(value), any);
      });
      if (is_unused) PrintFree(graph_.name(id), any);
      if (any) out_ += " = None";
    }
    out_ += '\n';
  }

  // Names and values.

  std::string ValueName(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.name.valid() || !graph_.node(value.def).returns_tuple) {
      return std::string(graph_.value_name(id));
    }
    return fmt::format("{}_{}", graph_.name(value.def), value.index);
  }

  void PrintType(TypeId type) {
    if (!type.valid()) return;
    out_ += ": \"";
    module_.types().Print(type, out_);
    out_ += '"';
  }

  void PrintNodeType(NodeId id) {
    const std::string_view python_type = graph_.attribute(id, kPythonTypeKey);
    if (!python_type.empty()) {
      out_ += " : ";
      out_ += python_type;
    } else if (!graph_.node(id).returns_tuple && graph_.node(id).num_results > 0) {
      PrintType(graph_.value(graph_.result(id)).type);
    }
  }

  void PrintList(std::span<const Arg> elements) {
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) out_ += ", ";
      PrintArg(elements[i]);
    }
  }

  void PrintDevice(std::string_view device) {
    const size_t colon = device.find(':');
    out_ += "device(type='";
    out_ += device.substr(0, colon);
    out_ += '\'';
    if (colon != std::string_view::npos) {
      out_ += ", index=";
      out_ += device.substr(colon + 1);
    }
    out_ += ')';
  }

  void PrintArg(const Arg& arg) {
    switch (arg.kind()) {
      case ArgKind::kNone:
        out_ += "None";
        break;
      case ArgKind::kValue:
        out_ += ValueName(arg.value());
        break;
      case ArgKind::kInt:
        fmt::format_to(std::back_inserter(out_), "{}", arg.as_int());
        break;
      case ArgKind::kFloat:
        AppendFloat(arg.as_float(), out_);
        break;
      case ArgKind::kBool:
        out_ += arg.as_bool() ? "True" : "False";
        break;
      case ArgKind::kDim:
        module_.dims().Print(arg.dim(), out_);
        break;
      case ArgKind::kString:
        AppendQuoted(module_.str(arg.str()), out_);
        break;
      case ArgKind::kDType:
        out_ += TorchName(arg.dtype());
        break;
      case ArgKind::kDevice:
        PrintDevice(module_.str(arg.str()));
        break;
      case ArgKind::kRaw:
        out_ += module_.str(arg.str());
        break;
      case ArgKind::kGraph:
        out_ += ChildName(module_.graph(arg.graph()));
        break;
      case ArgKind::kList:
        out_ += '[';
        PrintList(graph_.elements(arg));
        out_ += ']';
        break;
      case ArgKind::kTuple:
        out_ += '(';
        PrintList(graph_.elements(arg));
        out_ += arg.span_size() == 1 ? ",)" : ")";
        break;
      case ArgKind::kDict: {
        const std::span<const Arg> items = graph_.elements(arg);
        out_ += '{';
        for (size_t i = 0; i + 1 < items.size(); i += 2) {
          if (i > 0) out_ += ", ";
          PrintArg(items[i]);
          out_ += ": ";
          PrintArg(items[i + 1]);
        }
        out_ += '}';
        break;
      }
      case ArgKind::kCall: {
        const std::span<const Arg> parts = graph_.elements(arg);
        const std::string_view name = module_.str(parts[0].str());
        out_ += name;
        if (name.ends_with('=')) {
          PrintArg(parts[1]);
        } else {
          out_ += '(';
          PrintList(parts.subspan(1));
          out_ += ')';
        }
        break;
      }
    }
  }

  static std::string_view ChildName(const Graph& body) {
    const std::string_view path = body.name_text();
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  }

  // torch.fx `_format_target`: what is no identifier goes through getattr.
  std::string Target(std::string base, std::string_view path) const {
    while (true) {
      const std::string_view element = path.substr(0, path.find('.'));
      base = IsIdentifier(element) ? fmt::format("{}.{}", base, element)
                                   : fmt::format("getattr({}, \"{}\")", base, element);
      if (element.size() == path.size()) return base;
      path.remove_prefix(element.size() + 1);
    }
  }

  // Parts of a class.

  void PrintParameter(NodeId id) {
    const std::string_view argument = graph_.attribute(id, kArgumentKey);
    out_ += argument.empty() ? graph_.name(id) : argument;
    PrintNodeType(id);
    if (graph_.node(id).num_args > 0) {
      out_ += " = ";
      PrintArg(graph_.args(id)[0]);
    }
  }

  void PrintSignature(bool is_expanded) {
    Line("def forward(");
    if (is_expanded) {
      out_ += '\n';
      Line("    self,\n");
    } else {
      out_ += "self";
    }
    const std::string_view separator = is_expanded ? ",\n" : "";
    const auto begin_parameter = [&] {
      if (is_expanded) {
        Line("    ");
      } else {
        out_ += ", ";
      }
    };
    if (OutputFact(kFlattenKey).empty()) {
      for (NodeId id : graph_.nodes()) {
        if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
        begin_parameter();
        PrintParameter(id);
        if (is_expanded) {
          out_ += ',';
          PrintDescriptor(id);
          out_ += '\n';
        }
      }
    } else {
      std::string_view arguments = OutputFact(kArgumentsKey);
      while (!arguments.empty()) {
        const std::string_view argument = arguments.substr(0, arguments.find(", "));
        begin_parameter();
        out_ += argument;
        out_ += separator;
        arguments.remove_prefix(std::min(argument.size() + 2, arguments.size()));
      }
    }
    if (is_expanded) Line("");
    PrintEndOfSignature();
  }

  void PrintEndOfSignature() {
    out_ += ')';
    if (const std::string_view type = OutputFact(kReturnTypeKey); !type.empty()) {
      out_ += " -> ";
      out_ += type;
    }
    out_ += ":\n";
  }

  /// torch.fx _BoxedCodeGen: inputs come in a list, which is emptied so that they can be freed.
  void PrintBoxedSignature() {
    Line("def forward(self, args_list");
    PrintEndOfSignature();
    indent_ += 4;
    bool any = false;
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
      if (!any) Line("args_iter = iter(args_list)\n");
      any = true;
      const std::string_view argument = graph_.attribute(id, kArgumentKey);
      Line(argument.empty() ? graph_.name(id) : argument);
      out_ += " = next(args_iter)\n";
    }
    if (any) Line("args_list.clear()\n");
  }

  void PrintDescriptor(NodeId id) {
    const std::string_view descriptor = graph_.attribute(id, kDescriptorKey);
    if (descriptor.empty()) return;
    out_ += "  # ";
    out_ += descriptor;
  }

  /// torch.fx _PyTreeCodeGen: types on lines of their own, then the inputs from the arguments.
  void PrintPrologue(bool is_expanded) {
    const std::string_view flatten = OutputFact(kFlattenKey);
    if (flatten.empty()) return;
    std::string names;
    bool has_types = false;
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
      names += graph_.name(id);
      names += ", ";
      const size_t begin = out_.size();
      PrintNodeType(id);
      if (out_.size() == begin) continue;
      const std::string type = out_.substr(begin);
      out_.resize(begin);
      if (is_expanded || !has_types) Line("");
      has_types = true;
      out_ += graph_.name(id);
      out_ += type;
      if (is_expanded) {
        PrintDescriptor(id);
        out_ += '\n';
      } else {
        out_ += "; ";
      }
    }
    if (has_types && !is_expanded) out_ += "\n\n";
    Line(names.substr(0, names.empty() ? 0 : names.size() - 1));
    out_ += " = ";
    out_ += flatten;
    out_ += '\n';
  }

  void PrintAlias(NodeId id) {
    std::string_view argument = graph_.attribute(id, kArgumentKey);
    while (argument.starts_with('*'))
      argument.remove_prefix(1);
    if (argument.empty() || argument == graph_.name(id)) return;
    Line(graph_.name(id));
    out_ += " = ";
    out_ += argument;
    out_ += '\n';
  }

  std::string CommentOf(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool is_backward = node.phase == Phase::kBackward;
    std::string metadata, custom;
    const auto add = [](std::string& list, std::string_view key, std::string_view value) {
      if (!list.empty()) list += ", ";
      list += key;
      list += ": ";
      list += value;
    };
    if (is_backward && marks_by_key_) add(metadata, "autograd_backward", "True");
    if (node.seq_nr >= 0) add(metadata, "seq_nr", std::to_string(node.seq_nr));
    if (node.module.valid()) {
      std::string quoted;
      AppendQuoted(module_.str(node.module), quoted);
      add(custom, "'module_fqn'", quoted);
    }
    for (const auto& [key_id, value_id] : graph_.attributes(id)) {
      const std::string_view key = module_.str(key_id);
      if (key.starts_with(kCustomPrefix)) {
        std::string quoted;
        AppendQuoted(key.substr(kCustomPrefix.size()), quoted);
        add(custom, quoted, module_.str(value_id));
      } else if (!IsTextKey(key)) {
        add(metadata, key, module_.str(value_id));
      }
    }
    std::string comment;
    if (!metadata.empty()) comment += "# " + metadata + ' ';
    comment += '#';
    if (!custom.empty()) comment += " Annotation: {" + custom + '}';
    const std::string_view recompute = graph_.attribute(id, "recompute");
    const std::string_view ac_graph_id = graph_.attribute(id, "ac_graph_id");
    if (!ac_graph_id.empty()) {
      fmt::format_to(std::back_inserter(comment), " ac_graph_id: {}{}{}", ac_graph_id,
                     recompute.empty() ? "" : " - ", recompute);
    } else if (!recompute.empty()) {
      fmt::format_to(std::back_inserter(comment), " recompute: {}", recompute);
    }
    if (!node.loc.valid()) return comment + " No stacktrace found for following nodes";
    const SourceLoc& loc = module_.loc(node.loc);
    if (is_backward && marks_by_prefix_) comment += " Backward of forward node:";
    fmt::format_to(std::back_inserter(comment), " File: {}:{} in {}, code: {}",
                   module_.str(loc.file), loc.line, module_.str(loc.function),
                   module_.str(loc.code));
    return comment;
  }

  void PrintComment(NodeId id, size_t body_begin) {
    std::string comment = CommentOf(id);
    if (comment == last_comment_) return;
    last_comment_ = std::move(comment);
    if (out_.size() != body_begin) out_ += '\n';
    Line(last_comment_);
    out_ += '\n';
  }

  void PrintCallOf(std::string_view function, std::span<const Arg> args, NodeId id) {
    out_ += function;
    out_ += '(';
    PrintList(args);
    for (size_t i = 0; i < graph_.node(id).num_kwargs; ++i) {
      if (i > 0 || !args.empty()) out_ += ", ";
      const NamedArg kwarg = graph_.kwarg(id, i);
      out_ += module_.str(kwarg.name);
      out_ += " = ";
      PrintArg(kwarg.value);
    }
    out_ += ')';
  }

  /// Operators and attributes; false for calls that print as calls.
  bool PrintOperation(NodeId id) {
    const std::string_view op = graph_.op(id);
    const std::span<const Arg> args = graph_.args(id);
    if (graph_.node(id).num_kwargs > 0) return false;
    if (op == kGetAttr && args.size() == 2 && args[1].kind() == ArgKind::kString &&
        IsIdentifier(module_.str(args[1].str()))) {
      PrintArg(args[0]);
      out_ += '.';
      out_ += module_.str(args[1].str());
      return true;
    }
    if (!op.starts_with("_operator.")) return false;
    if (op == kGetItem && args.size() == 2) {
      PrintArg(args[0]);
      out_ += '[';
      PrintArg(args[1]);
      out_ += ']';
      return true;
    }
    if (args.size() == 1) {
      for (const Operator& prefix : kPrefixOperators) {
        if (prefix.op != op) continue;
        out_ += prefix.symbol;
        PrintArg(args[0]);
        return true;
      }
    }
    if (args.size() == 2) {
      for (const Operator& binary : kBinaryOperators) {
        if (binary.op != op) continue;
        PrintArg(args[0]);
        out_ += ' ';
        out_ += binary.symbol;
        out_ += ' ';
        PrintArg(args[1]);
        return true;
      }
    }
    return false;
  }

  /// `a += b;  iadd = a`: true when the statement before the assignment was printed.
  bool PrintInplace(NodeId id) {
    const std::string_view op = graph_.op(id);
    const std::span<const Arg> args = graph_.args(id);
    if (graph_.node(id).kind != NodeKind::kCall || !op.starts_with("_operator.") ||
        graph_.node(id).num_kwargs > 0) {
      return false;
    }
    if (op == kSetItem && args.size() == 3) {
      PrintArg(args[0]);
      out_ += '[';
      PrintArg(args[1]);
      out_ += "] = ";
      PrintArg(args[2]);
      out_ += ";  ";
      return true;
    }
    const auto* const found = std::ranges::find(kInplaceOperators, op, &Operator::op);
    if (found == kInplaceOperators.end() || args.size() != 2) return false;
    PrintArg(args[0]);
    out_ += ' ';
    out_ += found->symbol;
    out_ += ' ';
    PrintArg(args[1]);
    out_ += ";  ";
    return true;
  }

  void PrintNode(NodeId id) {
    const Node& node = graph_.node(id);
    Line("");
    const bool is_inplace = PrintInplace(id);
    out_ += graph_.name(id);
    PrintNodeType(id);
    out_ += " = ";
    const std::string_view op = graph_.op(id);
    std::span<const Arg> args = graph_.args(id);
    if (!args.empty() && args[0].kind() == ArgKind::kGraph) {
      if (node.kind != NodeKind::kCall) args = args.subspan(1);
    }
    if (is_inplace) {
      PrintArg(args[0]);
    } else if (node.kind == NodeKind::kGetAttr) {
      out_ += Target("self", op);
    } else if (node.kind == NodeKind::kCallModule) {
      PrintCallOf(Target("self", op), args, id);
    } else if (node.kind == NodeKind::kCallMethod && !args.empty()) {
      const size_t begin = out_.size();
      PrintArg(args[0]);
      const std::string receiver = out_.substr(begin);
      out_.resize(begin);
      PrintCallOf(Target(receiver, op), args.subspan(1), id);
    } else if (!PrintOperation(id)) {
      const bool is_torch_op = op.find('.') != std::string_view::npos && !op.starts_with("torch.");
      if (is_torch_op) out_ += "torch.ops.";
      PrintCallOf(op, args, id);
    }
    const std::vector<ValueId> elements = Elements(id);
    EndStatement(id, node.returns_tuple ? elements.empty() : !graph_.HasUses(id));
    for (size_t i = 0; i < elements.size(); ++i)
      PrintElement(id, elements[i], i + 1 == elements.size());
  }

  void PrintElement(NodeId id, ValueId element, bool is_last) {
    const Value& value = graph_.value(element);
    Line(ValueName(element));
    PrintType(value.type);
    fmt::format_to(std::back_inserter(out_), " = {}[{}]", graph_.name(id), value.index);
    if (options_.frees) {
      bool any = false;
      if (is_last) PrintFree(graph_.name(id), any);
      if (value.num_uses == 0) PrintFree(ValueName(element), any);
      if (any) out_ += " = None";
    }
    out_ += '\n';
  }

  void PrintReturn(NodeId id, bool is_program) {
    if (graph_.node(id).num_args == 0) return;
    const Arg& value = graph_.args(id)[0];
    const bool is_pytree = graph_.attribute(id, kReturnKey) == "pytree";
    Line("return ");
    if (is_pytree) out_ += "pytree.tree_unflatten(";
    std::string_view descriptors = graph_.attribute(id, kDescriptorsKey);
    const bool is_list = value.kind() == ArgKind::kList || value.kind() == ArgKind::kTuple;
    if (is_program && is_list && !descriptors.empty()) {
      out_ += value.kind() == ArgKind::kList ? "[\n" : "(\n";
      for (const Arg& element : graph_.elements(value)) {
        Line("    ");
        PrintArg(element);
        out_ += ',';
        const std::string_view descriptor = descriptors.substr(0, descriptors.find('\n'));
        descriptors.remove_prefix(std::min(descriptor.size() + 1, descriptors.size()));
        if (!descriptor.empty()) {
          out_ += "  # ";
          out_ += descriptor;
        }
        out_ += '\n';
      }
      Line(value.kind() == ArgKind::kList ? "]" : ")");
    } else {
      PrintArg(value);
    }
    if (is_pytree) out_ += ", self._out_spec)";
    out_ += '\n';
  }

  /// Bodies, in the order of the module: those that nodes refer to, and those that only the names
  /// tell.
  void PrintChildren(size_t indent, int depth) {
    struct Child {
      GraphId graph;
      std::string name;
    };
    std::vector<Child> children;
    const auto add = [&](GraphId graph, std::string_view name) {
      if (std::ranges::none_of(children, [&](const Child& c) { return c.graph == graph; })) {
        children.push_back({graph, std::string(name)});
      }
    };
    for (NodeId id : graph_.nodes()) {
      for (const Arg& arg : graph_.args(id)) {
        if (arg.kind() != ArgKind::kGraph) continue;
        const bool is_attribute = graph_.node(id).kind != NodeKind::kCall;
        add(arg.graph(), is_attribute ? graph_.op(id) : ChildName(module_.graph(arg.graph())));
      }
    }
    if (graph_.is_foreign()) {
      const std::string prefix =
          graph_.is_body() ? std::string(graph_.name_text()) + "/" : std::string();
      for (size_t i = 0; i < module_.num_graphs(); ++i) {
        const GraphId id{static_cast<int32_t>(i)};
        const std::string_view path = module_.graph(id).name_text();
        if (!module_.graph(id).is_body() || !path.starts_with(prefix)) continue;
        const std::string_view name = path.substr(prefix.size());
        if (!name.empty() && name.find('/') == std::string_view::npos) add(id, name);
      }
    }
    std::ranges::sort(children, {}, &Child::graph);
    for (const Child& child : children) {
      out_ += '\n';
      Printer(module_.graph(child.graph), options_, out_).PrintClass(child.name, indent, depth + 1);
    }
  }

  const Graph& graph_;
  const Module& module_;
  const FxPrintOptions& options_;
  std::string& out_;
  size_t indent_ = 0;
  std::vector<NodeId> last_user_;  // by value; none once it was freed
  bool has_comments_ = false, marks_by_key_ = true, marks_by_prefix_ = true;
  std::string last_comment_;
};

}  // namespace
}  // namespace fx

void PrintFx(const Graph& graph, const FxPrintOptions& options, std::string& out) {
  const NodeId output = graph.output();
  const std::string_view class_name =
      output.valid() ? graph.attribute(output, fx::kClassKey) : std::string_view{};
  fx::Printer(graph, options, out)
      .PrintClass(class_name.empty() ? "GraphModule" : class_name, 0, 0);
}

std::string PrintFx(const Graph& graph, const FxPrintOptions& options) {
  std::string text;
  PrintFx(graph, options, text);
  return text;
}

}  // namespace strata
