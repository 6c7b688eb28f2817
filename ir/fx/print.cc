#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/fx/operators.h"
#include "ir/fx/print_comment.h"
#include "ir/fx/print_value.h"
#include "ir/fx/symbols.h"

namespace strata {
namespace fx {
namespace {

constexpr int kMaxClassDepth = 40;

class Printer {
 public:
  Printer(const Graph& graph, const FxPrintOptions& options, std::string& out)
      : graph_(graph), module_(graph.module()), options_(options), out_(out), values_(graph, out) {}

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
    if (!graph_.is_foreign() || OutputFact(kSymbolsKey) == "bound") symbols_.emplace(graph_);
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind == NodeKind::kPlaceholder) PrintSymbols(id);
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
      PrintSymbols(id);
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
    comment_style_ = {.marks_by_key = mark != "prefix", .marks_by_prefix = mark != "key"};
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
        PrintFree(values_.NameOf(value), any);
      });
      if (is_unused) PrintFree(values_.NameOf(id), any);
      if (any) out_ += " = None";
    }
    out_ += '\n';
  }

  // Parts of a class.

  void PrintParameter(NodeId id) {
    const std::string_view argument = graph_.attribute(id, kArgumentKey);
    out_ += argument.empty() ? values_.NameOf(id) : argument;
    values_.PrintNodeType(id);
    if (graph_.node(id).num_args > 0) {
      out_ += " = ";
      values_.Print(graph_.args(id)[0]);
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
    Line("args_iter = iter(args_list)\n");
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind != NodeKind::kPlaceholder) continue;
      const std::string_view argument = graph_.attribute(id, kArgumentKey);
      Line(argument.empty() ? values_.NameOf(id) : argument);
      out_ += " = next(args_iter)\n";
    }
    Line("args_list.clear()\n");
  }

  void PrintDescriptor(NodeId id) {
    const std::string_view descriptor = graph_.attribute(id, kDescriptorKey);
    if (descriptor.empty() || !options_.comments) return;
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
      names += values_.NameOf(id);
      names += ", ";
      const size_t begin = out_.size();
      values_.PrintNodeType(id);
      if (out_.size() == begin) continue;
      const std::string type = out_.substr(begin);
      out_.resize(begin);
      if (is_expanded || !has_types) Line("");
      has_types = true;
      out_ += values_.NameOf(id);
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
    if (argument.empty() || argument == values_.NameOf(id)) return;
    Line(values_.NameOf(id));
    out_ += " = ";
    out_ += argument;
    out_ += '\n';
  }

  /// `s0 = x.shape[1]` for the symbols that the results of a node bind.
  void PrintSymbols(NodeId id) {
    if (!symbols_) return;
    for (size_t i = 0; i < graph_.node(id).num_results; ++i) {
      const ValueId value = graph_.result(id, i);
      for (const auto& [symbol, size] : symbols_->Of(value)) {
        Line(symbol);
        fmt::format_to(std::back_inserter(out_), " = {}.shape[{}]\n", values_.NameOf(value), size);
      }
    }
  }

  void PrintComment(NodeId id, size_t body_begin) {
    std::string comment = CommentOf(graph_, id, comment_style_);
    if (comment == last_comment_) return;
    last_comment_ = std::move(comment);
    if (out_.size() != body_begin) out_ += '\n';
    Line(last_comment_);
    out_ += '\n';
  }

  void PrintCallOf(std::string_view function, std::span<const Arg> args, NodeId id) {
    out_ += function;
    out_ += '(';
    values_.PrintList(args);
    for (size_t i = 0; i < graph_.node(id).num_kwargs; ++i) {
      if (i > 0 || !args.empty()) out_ += ", ";
      const NamedArg kwarg = graph_.kwarg(id, i);
      out_ += module_.str(kwarg.name);
      out_ += " = ";
      values_.Print(kwarg.value);
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
      values_.Print(args[0]);
      out_ += '.';
      out_ += module_.str(args[1].str());
      return true;
    }
    if (!op.starts_with("_operator.")) return false;
    if (op == kGetItem && args.size() == 2) {
      values_.Print(args[0]);
      out_ += '[';
      values_.Print(args[1]);
      out_ += ']';
      return true;
    }
    if (args.size() == 1) {
      for (const Operator& prefix : kPrefixOperators) {
        if (prefix.op != op) continue;
        out_ += prefix.symbol;
        values_.Print(args[0]);
        return true;
      }
    }
    if (args.size() == 2) {
      for (const Operator& binary : kBinaryOperators) {
        if (binary.op != op) continue;
        values_.Print(args[0]);
        out_ += ' ';
        out_ += binary.symbol;
        out_ += ' ';
        values_.Print(args[1]);
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
      values_.Print(args[0]);
      out_ += '[';
      values_.Print(args[1]);
      out_ += "] = ";
      values_.Print(args[2]);
      out_ += ";  ";
      return true;
    }
    const auto* const found = std::ranges::find(kInplaceOperators, op, &Operator::op);
    if (found == kInplaceOperators.end() || args.size() != 2) return false;
    values_.Print(args[0]);
    out_ += ' ';
    out_ += found->symbol;
    out_ += ' ';
    values_.Print(args[1]);
    out_ += ";  ";
    return true;
  }

  void PrintNode(NodeId id) {
    const Node& node = graph_.node(id);
    Line("");
    const bool is_inplace = PrintInplace(id);
    out_ += values_.NameOf(id);
    values_.PrintNodeType(id);
    out_ += " = ";
    const std::string_view op = graph_.op(id);
    std::span<const Arg> args = graph_.args(id);
    if (!args.empty() && args[0].kind() == ArgKind::kGraph) {
      if (node.kind != NodeKind::kCall) args = args.subspan(1);
    }
    if (is_inplace) {
      values_.Print(args[0]);
    } else if (node.kind == NodeKind::kGetAttr) {
      out_ += TargetOf("self", op);
    } else if (node.kind == NodeKind::kCallModule) {
      PrintCallOf(TargetOf("self", op), args, id);
    } else if (node.kind == NodeKind::kCallMethod && !args.empty()) {
      const size_t begin = out_.size();
      values_.Print(args[0]);
      const std::string receiver = out_.substr(begin);
      out_.resize(begin);
      PrintCallOf(TargetOf(receiver, op), args.subspan(1), id);
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
    Line(values_.NameOf(element));
    values_.PrintType(value.type);
    fmt::format_to(std::back_inserter(out_), " = {}[{}]", values_.NameOf(id), value.index);
    if (options_.frees) {
      bool any = false;
      if (is_last) PrintFree(values_.NameOf(id), any);
      if (value.num_uses == 0) PrintFree(values_.NameOf(element), any);
      if (any) out_ += " = None";
    }
    out_ += '\n';
  }

  void PrintReturn(NodeId id, bool is_program) {
    if (graph_.node(id).num_args == 0) {  // A trace that failed has no return.
      Line("pass\n");
      return;
    }
    const Arg& value = graph_.args(id)[0];
    const bool is_pytree = graph_.attribute(id, kReturnKey) == "pytree";
    Line("return ");
    if (is_pytree) out_ += "pytree.tree_unflatten(";
    std::string_view descriptors = graph_.attribute(id, kDescriptorsKey);
    const bool is_list = value.kind() == ArgKind::kList || value.kind() == ArgKind::kTuple;
    if (is_program && is_list && !descriptors.empty() && options_.comments) {
      out_ += value.kind() == ArgKind::kList ? "[\n" : "(\n";
      for (const Arg& element : graph_.elements(value)) {
        Line("    ");
        values_.Print(element);
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
      values_.Print(value);
    }
    if (is_pytree) out_ += ", self._out_spec)";
    out_ += '\n';
  }

  /// Bodies, in the order of the module: those that nodes refer to, and those that only their names
  /// reveal.
  void PrintChildren(size_t indent, int depth) {
    struct Child {
      GraphId graph;
      std::string name;
    };
    std::vector<Child> children;
    const auto add = [&](GraphId graph, std::string_view name) {
      // A body under two names is two classes.
      const bool is_known = std::ranges::any_of(
          children, [&](const Child& c) { return c.graph == graph && c.name == name; });
      if (!is_known) children.push_back({graph, std::string(name)});
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
    std::ranges::stable_sort(children, {}, &Child::graph);
    for (const Child& child : children) {
      out_ += '\n';
      Printer(module_.graph(child.graph), options_, out_).PrintClass(child.name, indent, depth + 1);
    }
  }

  const Graph& graph_;
  const Module& module_;
  const FxPrintOptions& options_;
  std::string& out_;
  ValuePrinter values_;
  size_t indent_ = 0;
  std::vector<NodeId> last_user_;  // by value; none once it was freed
  bool has_comments_ = false;
  CommentStyle comment_style_;
  std::string last_comment_;
  std::optional<SymbolBindings> symbols_;
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
