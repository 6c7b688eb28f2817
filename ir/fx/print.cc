#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/fx/operators.h"
#include "ir/fx/print_call.h"
#include "ir/fx/print_comment.h"
#include "ir/fx/print_lines.h"
#include "ir/fx/print_signature.h"
#include "ir/fx/print_value.h"
#include "ir/fx/symbols.h"

namespace strata {
namespace fx {
namespace {

constexpr int kMaxClassDepth = 40;

class Printer : private IndentedLines {
 public:
  Printer(const Graph& graph, const FxPrintOptions& options, std::string& out)
      : IndentedLines(out),
        graph_(graph),
        module_(graph.module()),
        options_(options),
        values_(graph, out),
        calls_(graph, values_, out) {}

  /// `class_name` of a body is its attribute's name; the program's is among its attributes.
  void PrintClass(std::string_view class_name, size_t indent, int depth) {
    indent_ = indent;
    FindLastUses();
    Line("class ");
    out_ += class_name;
    out_ += "(torch.nn.Module):\n";
    indent_ += 4;
    const bool is_expanded = depth == 0 && OutputFact(graph_, kSignatureKey).empty();
    SignaturePrinter signature(graph_, options_, values_, out_);
    signature.Print(indent_, is_expanded);
    indent_ += 4;
    const size_t body = out_.size();
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind == NodeKind::kPlaceholder) signature.PrintAlias(id);
    }
    if (!graph_.is_foreign() || OutputFact(graph_, kSymbolsKey) == "bound")
      symbols_.emplace(graph_);
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
    const std::string_view mark = OutputFact(graph_, kBackwardKey);
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

  void PrintNode(NodeId id) {
    const Node& node = graph_.node(id);
    Line("");
    const bool is_inplace = calls_.PrintInplace(id);
    out_ += values_.NameOf(id);
    values_.PrintNodeType(id);
    out_ += " = ";
    if (is_inplace) {
      values_.Print(graph_.args(id)[0]);
    } else {
      calls_.PrintRightSide(id);
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
  ValuePrinter values_;
  CallPrinter calls_;
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
