#include "diff/graph/arguments.h"

#include <fmt/format.h>

#include "base/python_literal.h"
#include "ir/module.h"

namespace strata {
namespace {

/// `device(type='cuda', index=0)` of "cuda:0".
void AppendDevice(std::string_view device, std::string& out) {
  const size_t colon = device.find(':');
  out += fmt::format("device(type='{}'", device.substr(0, colon));
  if (colon != std::string_view::npos) out += fmt::format(", index={}", device.substr(colon + 1));
  out += ')';
}

class LiteralPrinter {
 public:
  LiteralPrinter(const Graph& graph, bool operand_names, std::string& out)
      : graph_(graph), module_(graph.module()), operand_names_(operand_names), out_(out) {}

  void Print(const Arg& arg) {
    switch (arg.kind()) {
      case ArgKind::kNone:
        out_ += "None";
        return;
      case ArgKind::kValue:
        out_ += operand_names_ ? graph_.value_name(arg.value()) : "_";
        return;
      case ArgKind::kInt:
        out_ += fmt::format("{}", arg.as_int());
        return;
      case ArgKind::kFloat:
        AppendFloat(arg.as_float(), out_);
        return;
      case ArgKind::kBool:
        out_ += arg.as_bool() ? "True" : "False";
        return;
      case ArgKind::kDim:
        module_.dims().Print(arg.dim(), out_);
        return;
      case ArgKind::kString:
        AppendQuoted(module_.str(arg.str()), out_);
        return;
      case ArgKind::kDType:
        out_ += TorchName(arg.dtype());
        return;
      case ArgKind::kDevice:
        AppendDevice(module_.str(arg.str()), out_);
        return;
      case ArgKind::kRaw:
        out_ += module_.str(arg.str());
        return;
      case ArgKind::kGraph:
        out_ += operand_names_ ? module_.graph(arg.graph()).name_text() : "_";
        return;
      case ArgKind::kList:
        Sequence(graph_.elements(arg), "[", "]");
        return;
      case ArgKind::kTuple:
        Sequence(graph_.elements(arg), "(", arg.span_size() == 1 ? ",)" : ")");
        return;
      case ArgKind::kCall: {
        const std::span<const Arg> parts = graph_.elements(arg);
        if (parts.empty()) return;
        const std::string_view name = module_.str(parts[0].str());
        out_ += name;
        if (name.ends_with('=') && parts.size() == 2) return Print(parts[1]);  // a keyword
        Sequence(parts.subspan(1), "(", ")");
        return;
      }
      case ArgKind::kDict: {
        out_ += '{';
        const std::span<const Arg> parts = graph_.elements(arg);
        for (size_t i = 0; i + 1 < parts.size(); i += 2) {
          if (i > 0) out_ += ", ";
          Print(parts[i]);
          out_ += ": ";
          Print(parts[i + 1]);
        }
        out_ += '}';
        return;
      }
    }
  }

 private:
  void Sequence(std::span<const Arg> elements, std::string_view open, std::string_view close) {
    out_ += open;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) out_ += ", ";
      Print(elements[i]);
    }
    out_ += close;
  }

  const Graph& graph_;
  const Module& module_;
  const bool operand_names_;
  std::string& out_;
};

/// Walks the arguments of one node.
class LeafWalker {
 public:
  LeafWalker(const Listing& listing, const Graph& graph, std::vector<Leaf>& leaves)
      : listing_(listing), graph_(graph), leaves_(leaves) {}

  void Walk(const Arg& arg, const std::string& path) {
    switch (arg.kind()) {
      case ArgKind::kValue:
        leaves_.push_back({path, std::string(graph_.value_name(arg.value())), "_",
                           listing_.FindValue(graph_.id(), arg.value())});
        return;
      case ArgKind::kCall:
        AddLiteral(path, arg);
        for (const Arg& element : graph_.elements(arg))
          OperandsInside(element, path);
        return;
      case ArgKind::kList:
      case ArgKind::kTuple: {
        const std::span<const Arg> elements = graph_.elements(arg);
        if (elements.empty()) AddLiteral(path, arg);
        for (size_t i = 0; i < elements.size(); ++i)
          Walk(elements[i], fmt::format("{}[{}]", path, i));
        return;
      }
      case ArgKind::kDict: {
        const std::span<const Arg> parts = graph_.elements(arg);
        if (parts.empty()) AddLiteral(path, arg);
        for (size_t i = 0; i + 1 < parts.size(); i += 2)
          Walk(parts[i + 1], fmt::format("{}[{}]", path, LiteralText(graph_, parts[i])));
        return;
      }
      default:
        AddLiteral(path, arg);
    }
  }

 private:
  void AddLiteral(const std::string& path, const Arg& arg) {
    leaves_.push_back({path, LiteralText(graph_, arg), SkeletonText(graph_, arg), {}});
  }

  void OperandsInside(const Arg& arg, const std::string& path) {
    if (arg.is_value()) {
      Walk(arg, path);
    } else if (arg.is_span()) {
      for (const Arg& element : graph_.elements(arg))
        OperandsInside(element, path);
    }
  }

  const Listing& listing_;
  const Graph& graph_;
  std::vector<Leaf>& leaves_;
};

}  // namespace

std::string LiteralText(const Graph& graph, const Arg& arg) {
  std::string text;
  LiteralPrinter(graph, true, text).Print(arg);
  return text;
}

std::string SkeletonText(const Graph& graph, const Arg& arg) {
  std::string text;
  LiteralPrinter(graph, false, text).Print(arg);
  return text;
}

std::vector<Leaf> LeavesOf(const Listing& listing, EntityId id) {
  const Entity& entity = listing[id];
  const Graph& graph = listing.graph(id);
  std::vector<Leaf> leaves;
  if (entity.element.valid()) {
    const EntityId node = listing.Find(entity.graph, entity.node);
    const std::string index = fmt::format("{}", graph.value(entity.element).index);
    leaves.push_back({"args[0]", std::string(graph.name(entity.node)), "_", node});
    leaves.push_back({"args[1]", index, index, {}});
    return leaves;
  }
  if (graph.node(entity.node).kind == NodeKind::kGetAttr) return leaves;
  LeafWalker walker(listing, graph, leaves);
  std::span<const Arg> args = graph.args(entity.node);
  // The body that a call_module node calls is not printed among its arguments.
  const bool calls_body = graph.node(entity.node).kind == NodeKind::kCallModule && !args.empty() &&
                          args[0].kind() == ArgKind::kGraph;
  if (calls_body) args = args.subspan(1);
  for (size_t i = 0; i < args.size(); ++i)
    walker.Walk(args[i], fmt::format("args[{}]", i));
  for (size_t i = 0; i < graph.node(entity.node).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(entity.node, i);
    walker.Walk(kwarg.value, fmt::format("kwargs.{}", graph.module().str(kwarg.name)));
  }
  return leaves;
}

std::vector<EntityId> OperandsOf(const Listing& listing, EntityId id) {
  const Entity& entity = listing[id];
  if (entity.element.valid()) return {listing.Find(entity.graph, entity.node)};
  const Graph& graph = listing.graph(id);
  std::vector<EntityId> operands;
  graph.ForEachOperand(entity.node, [&](ValueId value) {
    operands.push_back(listing.FindValue(entity.graph, value));
  });
  return operands;
}

}  // namespace strata
