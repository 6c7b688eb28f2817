#include "diff/graph/arguments.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/arg_printer.h"
#include "ir/module.h"

namespace strata {
namespace {

class LiteralPrinter final : public ArgPrinter {
 public:
  LiteralPrinter(const Graph& graph, bool operand_names, std::string& out)
      : ArgPrinter(graph, out), operand_names_(operand_names) {}

 private:
  void PrintValue(ValueId value) override {
    out_ += operand_names_ ? graph_.value_name(value) : "_";
  }
  void PrintBody(const Graph& body) override { out_ += operand_names_ ? body.name_text() : "_"; }

  const bool operand_names_;
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
    const std::string index = fmt::format("{}", graph.result_index(entity.element));
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

bool AreOperands(std::span<const Leaf> leaves) {
  return std::ranges::all_of(leaves, [](const Leaf& leaf) { return leaf.operand.valid(); });
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
