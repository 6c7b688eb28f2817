#include "ir/text/native_text.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/python_literal.h"
#include "ir/arg_printer.h"
#include "ir/text/native_line.h"
#include "ir/text/native_words.h"

namespace strata {
namespace {

class NativeArgPrinter final : public ArgPrinter {
 public:
  NativeArgPrinter(const Graph& graph, const NativeNames& names, std::string& out)
      : ArgPrinter(graph, out), names_(names) {}

  void PrintValue(ValueId id) override {
    const Value& value = graph_.value(id);
    if (!graph_.node(value.def).returns_tuple) {
      AppendName(names_.OfNode(graph_, value.def), out_);
    } else if (value.name.valid()) {
      AppendName(names_.OfElement(graph_, id), out_);
    } else {
      AppendName(names_.OfNode(graph_, value.def), out_, int64_t{graph_.result_index(id)});
    }
  }

 private:
  void PrintBody(const Graph& body) override {
    out_ += fmt::format("graph({})", names_.OfGraph(body));
  }
  void PrintDim(DimId dim) override {
    out_ += "sym(";
    ArgPrinter::PrintDim(dim);
    out_ += ')';
  }
  void PrintDevice(std::string_view device) override { PrintQuoted("device(", device); }
  void PrintRaw(std::string_view text) override { PrintQuoted("raw(", text); }
  void PrintCall(std::span<const Arg> parts) override {
    out_ += "call(";
    PrintList(parts);
    out_ += ')';
  }
  void PrintQuoted(std::string_view begin, std::string_view text) {
    out_ += begin;
    AppendQuoted(text, out_);
    out_ += ')';
  }

  const NativeNames& names_;
};

class Printer {
 public:
  Printer(const Module& module, const NativeLineStyle& style, const NativeNames& names,
          std::string& out)
      : module_(module), style_(style), names_(names), out_(out) {}

  void Symbols() {
    for (const Symbol& symbol : module_.dims().symbols()) {
      const bool known =
          symbol.hint || symbol.min != 0 || symbol.max != INT64_MAX || !symbol.backed;
      if (!known) continue;
      out_ += "symbol ";
      AppendName(module_.str(symbol.name), out_);
      if (symbol.hint) Number(" hint=", *symbol.hint);
      if (symbol.min != 0) Number(" min=", symbol.min);
      if (symbol.max != INT64_MAX) Number(" max=", symbol.max);
      if (!symbol.backed) out_ += " unbacked";
      out_ += '\n';
    }
  }

  void Program(const Graph& graph) {
    PrintGraphLine(graph, out_);
    out_ += '\n';
    for (NodeId id : graph.nodes()) {
      out_ += "  ";
      Line(graph, id);
      out_ += '\n';
    }
  }

  void Line(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const std::string_view name = names_.OfNode(graph, id);
    const bool is_output = node.kind == NodeKind::kOutput;
    if (!is_output) {
      if (node.returns_tuple) {
        Elements(graph, node);
      } else {
        AppendName(name, out_);
      }
      out_ += " = ";
    }
    Call(graph, id);
    if (node.returns_tuple || (is_output && name != "output")) {
      out_ += " as ";
      AppendName(name, out_);
    }
    if (style_.types) Types(graph, node);
    if (style_.aliases) Aliases(graph, node);
    Metadata(graph, id);
    if (style_.stable_ids) {
      Number(" #", static_cast<int64_t>(node.stable_id));
      if (node.text_line >= 0) Number(" line=", node.text_line);
    }
  }

 private:
  void Number(std::string_view before, int64_t number) {
    out_ += before;
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }

  void Call(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    switch (node.kind) {
      case NodeKind::kPlaceholder:
        out_ += "placeholder";
        if (node.num_args + node.num_kwargs > 0) Arguments(graph, id);
        return;
      case NodeKind::kGetAttr:
        out_ += "attr ";
        AppendPath(graph.op(id), out_);
        if (node.num_args + node.num_kwargs > 0) Arguments(graph, id);
        return;
      case NodeKind::kOutput:
        out_ += "output";
        break;
      case NodeKind::kCallMethod:
        out_ += "method ";
        AppendPath(graph.op(id), out_);
        break;
      case NodeKind::kCallModule:
        out_ += "submodule ";
        AppendPath(graph.op(id), out_);
        break;
      case NodeKind::kCall:
      case NodeKind::kErased:
        AppendPath(graph.op(id), out_);
        break;
    }
    Arguments(graph, id);
  }

  void Arguments(const Graph& graph, NodeId id) {
    NativeArgPrinter printer(graph, names_, out_);
    out_ += '(';
    printer.PrintList(graph.args(id));
    for (size_t i = 0; i < graph.node(id).num_kwargs; ++i) {
      if (i > 0 || !graph.args(id).empty()) out_ += ", ";
      const NamedArg kwarg = graph.kwarg(id, i);
      AppendKey(module_.str(kwarg.name));
      printer.Print(kwarg.value);
    }
    out_ += ')';
  }

  /// `name=`. Nothing else can stand there, so a keyword (`device=`) needs no quotes.
  void AppendKey(std::string_view name) {
    if (std::ranges::find(kKeywords, name) != kKeywords.end()) {
      out_ += name;
    } else {
      AppendName(name, out_);
    }
    out_ += '=';
  }

  /// `x`, or `(x, _, y)` for a tuple: what `part` prints for each result.
  template <class Fn>
  void PerResult(const Node& node, Fn&& part) {
    if (node.returns_tuple) out_ += '(';
    for (int32_t i = 0; i < node.num_results; ++i) {
      if (i > 0) out_ += ", ";
      part(ValueId{node.first_result.index + i});
    }
    if (node.returns_tuple && node.num_results == 1) out_ += ',';
    if (node.returns_tuple) out_ += ')';
  }

  template <class Fn>
  static bool AnyResult(const Graph& graph, const Node& node, Fn&& test) {
    for (int32_t i = 0; i < node.num_results; ++i) {
      if (test(graph.value({node.first_result.index + i}))) return true;
    }
    return false;
  }

  void Elements(const Graph& graph, const Node& node) {
    PerResult(node, [&](ValueId id) {
      if (graph.value(id).name.valid()) {
        AppendName(names_.OfElement(graph, id), out_);
      } else {
        out_ += '_';
      }
    });
  }

  void Types(const Graph& graph, const Node& node) {
    if (!AnyResult(graph, node, [](const Value& value) { return value.type.valid(); })) return;
    out_ += " : ";
    PerResult(node, [&](ValueId id) { AppendType(module_, graph.value(id).type, out_); });
  }

  void Aliases(const Graph& graph, const Node& node) {
    if (!AnyResult(graph, node, [](const Value& value) { return value.alias_of.valid(); })) return;
    out_ += " ~";
    PerResult(node, [&](ValueId id) {
      const ValueId owner = graph.value(id).alias_of;
      if (owner.valid()) {
        NativeArgPrinter(graph, names_, out_).PrintValue(owner);
      } else {
        out_ += '_';
      }
    });
  }

  void Metadata(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const size_t begin = out_.size();
    out_ += " {";
    const size_t empty = out_.size();
    const auto part = [&](std::string_view key) {
      if (out_.size() != empty) out_ += ' ';
      out_ += key;
    };
    if (style_.places && node.phase != Phase::kUnknown) part(ToString(node.phase));
    if (style_.places && node.module.valid()) {
      part("module=");
      AppendPath(module_.str(node.module), out_);
    }
    if (style_.sources && node.seq_nr >= 0) {
      part("seq=");
      Number("", node.seq_nr);
    }
    if (style_.places && node.stream != 0) {
      part("stream=");
      Number("", node.stream);
    }
    if (style_.sources && node.loc.valid()) {
      const SourceLoc& loc = module_.loc(node.loc);
      part("loc=(");
      AppendQuoted(module_.str(loc.file), out_);
      Number(", ", loc.line);
      for (StrId text : {loc.function, loc.code}) {
        out_ += ", ";
        if (text.valid()) {
          AppendQuoted(module_.str(text), out_);
        } else {
          out_ += "None";
        }
      }
      out_ += ')';
    }
    for (const auto& [key, value] : graph.attributes(id)) {
      if (style_.attribute != nullptr && !style_.attribute(module_.str(key))) continue;
      part("+");
      AppendName(module_.str(key), out_);
      out_ += '=';
      AppendQuoted(module_.str(value), out_);
    }
    if (out_.size() == empty) {
      out_.resize(begin);
    } else {
      out_ += '}';
    }
  }

  const Module& module_;
  const NativeLineStyle& style_;
  const NativeNames& names_;
  std::string& out_;
};

NativeLineStyle StyleOf(const PrintOptions& options) {
  NativeLineStyle style;
  style.types = options.types;
  style.aliases = style.places = style.sources = options.metadata;
  if (!options.metadata) style.attribute = [](std::string_view) { return false; };
  style.stable_ids = options.stable_ids;
  return style;
}

}  // namespace

std::string_view NativeNames::OfNode(const Graph& graph, NodeId node) const {
  return graph.name(node);
}

std::string_view NativeNames::OfElement(const Graph& graph, ValueId element) const {
  return graph.value_name(element);
}

int32_t NativeNames::OfGraph(const Graph& graph) const {
  return graph.id().index;
}

void PrintLine(const Graph& graph, NodeId node, const NativeLineStyle& style,
               const NativeNames& names, std::string& out) {
  Printer(graph.module(), style, names, out).Line(graph, node);
}

void PrintGraphLine(const Graph& graph, std::string& out) {
  out += "graph ";
  AppendName(graph.name_text(), out);
  if (graph.is_body()) out += " body";
  if (graph.is_foreign()) out += " foreign";
}

void PrintSymbols(const Module& module, std::string& out) {
  Printer(module, {}, {}, out).Symbols();
}

void PrintText(const Graph& graph, const PrintOptions& options, std::string& out) {
  const NativeLineStyle style = StyleOf(options);
  Printer(graph.module(), style, {}, out).Program(graph);
}

std::string PrintText(const Graph& graph, const PrintOptions& options) {
  std::string out;
  PrintText(graph, options, out);
  return out;
}

std::string PrintText(const Module& module, const PrintOptions& options) {
  std::string out;
  PrintSymbols(module, out);
  const NativeLineStyle style = StyleOf(options);
  const NativeNames names;
  Printer printer(module, style, names, out);
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    printer.Program(module.graph({static_cast<int32_t>(i)}));
  }
  return out;
}

}  // namespace strata
