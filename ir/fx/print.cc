#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "ir/fx/fx.h"
#include "ir/fx/known_lines.h"
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

/// Compares a text and a line end with what is printed, piece by piece, so that neither all of it
/// is in memory nor more of it is printed than is needed.
class TextCheck {
 public:
  explicit TextCheck(std::string_view text) : text_(text) {}

  /// Takes the text that comes next out of `printed`; false when it differs.
  bool Take(std::string& printed) {
    const std::string_view rest = text_.substr(std::min(taken_, text_.size()));
    const bool is_last = printed.size() == rest.size() + 1 && taken_ <= text_.size();
    is_equal_ = is_equal_ && (is_last ? printed.back() == '\n' && printed.starts_with(rest)
                                      : rest.starts_with(printed));
    taken_ += printed.size();
    printed.clear();
    return is_equal_;
  }
  size_t taken() const { return taken_; }
  bool is_at_end() const { return is_equal_ && taken_ == text_.size() + 1; }

 private:
  std::string_view text_;
  size_t taken_ = 0;
  bool is_equal_ = true;
};

class Printer : private IndentedLines {
 public:
  Printer(const Graph& graph, const FxPrintOptions& options, std::string& out,
          TextCheck* check = nullptr, KnownLines* known_lines = nullptr)
      : IndentedLines(out),
        graph_(graph),
        module_(graph.module()),
        options_(options),
        check_(check),
        known_lines_(known_lines),
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
    const size_t body = Position();
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
      if (!Check()) return;
    }
    if (Position() == body) Line("pass\n");
    if (depth < kMaxClassDepth) PrintChildren(indent + 4, depth);
  }

 private:
  /// False: the text is known to be another one.
  bool Check() { return check_ == nullptr || check_->Take(out_); }
  size_t Position() const { return out_.size() + (check_ == nullptr ? 0 : check_->taken()); }

  // Liveness, as torch.fx CodeGen computes it: a value is freed after its last reader.

  /// The results of a node that returns a tuple which have a name of their own in the text.
  std::vector<ValueId> Elements(NodeId id) const {
    std::vector<ValueId> elements;
    const Node& node = graph_.node(id);
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
    comments_.emplace(graph_, CommentStyle{.marks_by_key = mark != "prefix" && mark != "none",
                                           .marks_by_prefix = mark != "key" && mark != "none"});
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

  /// `body` is the position at which the body begins.
  void PrintComment(NodeId id, size_t body) {
    comment_.clear();
    comments_->Append(id, comment_);
    if (comment_ == last_comment_) return;
    if (Position() != body) out_ += '\n';
    Line(comment_);
    out_ += '\n';
    last_comment_.swap(comment_);
  }

  void PrintNode(NodeId id) {
    const Node& node = graph_.node(id);
    Line("");
    PrintStatement(id);
    if (!node.returns_tuple) return EndStatement(id, !graph_.HasUses(id));
    const std::vector<ValueId> elements = Elements(id);
    EndStatement(id, elements.empty());
    for (size_t i = 0; i < elements.size(); ++i)
      PrintElement(id, elements[i], i + 1 == elements.size());
  }

  /// All but what it frees.
  void PrintStatement(NodeId id) {
    KnownLines::Line* const known =
        known_lines_ == nullptr ? nullptr : known_lines_->At(graph_.node(id).text_line);
    if (known != nullptr && known->prints_same) {
      out_ += known_lines_->StatementOf(*known);
      return;
    }
    const size_t begin = out_.size();
    const bool is_inplace = calls_.PrintInplace(id);
    out_ += values_.NameOf(id);
    values_.PrintNodeType(id);
    out_ += " = ";
    if (is_inplace) {
      values_.Print(graph_.args(id)[0]);
    } else {
      calls_.PrintRightSide(id);
    }
    if (known != nullptr) {
      known->prints_same =
          std::string_view(out_).substr(begin) == known_lines_->StatementOf(*known);
    }
  }

  void PrintElement(NodeId id, ValueId element, bool is_last) {
    const Value& value = graph_.value(element);
    const uint32_t index = graph_.result_index(element);
    Line(values_.NameOf(element));
    values_.PrintType(value.type);
    fmt::format_to(std::back_inserter(out_), " = {}[{}]", values_.NameOf(id), index);
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
        const std::string_view descriptor = TakeLine(descriptors);
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
      Printer(module_.graph(child.graph), options_, out_, check_, known_lines_)
          .PrintClass(child.name, indent, depth + 1);
      if (!Check()) return;
    }
  }

  const Graph& graph_;
  const Module& module_;
  const FxPrintOptions& options_;
  TextCheck* const check_;         // takes what is printed, if any
  KnownLines* const known_lines_;  // null: nothing is known of the text of nodes
  ValuePrinter values_;
  CallPrinter calls_;
  std::vector<NodeId> last_user_;  // by value; none once it was freed
  bool has_comments_ = false;
  std::optional<CommentPrinter> comments_;
  std::string comment_, last_comment_;
  std::optional<SymbolBindings> symbols_;
};

std::string_view ClassName(const Graph& graph) {
  const std::string_view name = OutputFact(graph, kClassKey);
  return name.empty() ? "GraphModule" : name;
}

}  // namespace
}  // namespace fx

void PrintFx(const Graph& graph, const FxPrintOptions& options, std::string& out) {
  fx::Printer(graph, options, out).PrintClass(fx::ClassName(graph), 0, 0);
}

bool PrintsAs(const Graph& graph, std::string_view text, fx::KnownLines* known_lines) {
  const FxPrintOptions options;
  std::string printed;
  fx::TextCheck check(text);
  fx::Printer(graph, options, printed, &check, known_lines).PrintClass(fx::ClassName(graph), 0, 0);
  check.Take(printed);
  return check.is_at_end();
}

std::string PrintFx(const Graph& graph, const FxPrintOptions& options) {
  std::string text;
  PrintFx(graph, options, text);
  return text;
}

}  // namespace strata
