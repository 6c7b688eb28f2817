#include "bench/diff_eval/mutations/mutator.h"

#include <algorithm>

#include <fmt/format.h>

namespace strata::bench {

bool Mutator::IsPlain(NodeId id) const {
  const Node& node = graph_.node(id);
  return node.kind != NodeKind::kErased && !node.returns_tuple && node.num_results == 1;
}

bool Mutator::IsPlainCall(NodeId id) const {
  return graph_.node(id).kind == NodeKind::kCall && IsPlain(id);
}

std::optional<Type> Mutator::TensorOf(ValueId value) const {
  const TypeId type = graph_.value(value).type;
  if (!type.valid() || module_.types()[type].kind != TypeKind::kTensor) return std::nullopt;
  return module_.types()[type];
}

std::vector<Use> Mutator::UsesOf(ValueId value) const {
  std::vector<Use> uses;
  for (Use use : graph_.uses(value))
    uses.push_back(use);
  return uses;
}

NodeId Mutator::OnlyUser(NodeId id) const {
  const std::vector<Use> uses = UsesOf(graph_.result(id));
  return uses.size() == 1 ? uses[0].user : NodeId{};
}

std::vector<NodeId> Mutator::ChainFrom(NodeId id, size_t most) const {
  std::vector<NodeId> chain{id};
  while (chain.size() < most) {
    const NodeId next = OnlyUser(chain.back());
    if (!next.valid() || !IsPlainCall(next) || !IsFree(next) || TypeIdOf(next) != TypeIdOf(id))
      break;
    chain.push_back(next);
  }
  return chain;
}

NodeId Mutator::Make(std::string_view op, std::span<const Arg> args, TypeId type, NodeId like) {
  NodeSpec spec;
  spec.op = op;
  spec.args = args;
  const NodeId node = rewriter_.Create(spec, From{like});
  rewriter_.SetType(graph_.result(node), type);
  Touch(node);
  return node;
}

void Mutator::RedirectUses(ValueId from, ValueId to, NodeId except) {
  for (Use use : UsesOf(from)) {
    if (use.user != except) rewriter_.ReplaceUse(use, to);
  }
}

void Mutator::RedirectInside(ValueId from, ValueId to, const std::vector<NodeId>& inside) {
  for (Use use : UsesOf(from)) {
    if (std::ranges::find(inside, use.user) != inside.end()) rewriter_.ReplaceUse(use, to);
  }
}

std::vector<NodeId> Mutator::CloneChain(const std::vector<NodeId>& chain, ValueId from,
                                        ValueId to) {
  std::vector<NodeId> copies;
  for (NodeId node : chain) {
    copies.push_back(rewriter_.Clone(node));
    RedirectInside(from, to, {copies.back()});
    from = graph_.result(node);
    to = graph_.result(copies.back());
  }
  return copies;
}

NodeId Mutator::MakeSplit(std::string_view op, std::span<const Arg> args,
                          const std::vector<TypeId>& types, std::string_view piece, NodeId like) {
  NodeSpec spec;
  spec.op = op;
  spec.args = args;
  spec.results = types;
  spec.returns_tuple = true;
  const NodeId split = rewriter_.Create(spec, From{like});
  for (size_t k = 0; k < types.size(); ++k)
    rewriter_.SetElementName(graph_.result(split, k),
                             fmt::format("{}_{}_{}", piece, split.index, k));
  return split;
}

bool Mutator::ReturnsList() const {
  const NodeId output = graph_.output();
  if (!output.valid() || graph_.args(output).size() != 1) return false;
  const ArgKind kind = graph_.args(output)[0].kind();
  return kind == ArgKind::kList || kind == ArgKind::kTuple;
}

std::vector<Arg> Mutator::Results() const {
  const auto results = graph_.elements(graph_.args(graph_.output())[0]);
  return {results.begin(), results.end()};
}

void Mutator::SetResults(const std::vector<Arg>& results) {
  const NodeId output = graph_.output();
  const Arg args[] = {rewriter_.MakeSpan(graph_.args(output)[0].kind(), results)};
  rewriter_.SetArgs(output, args, {});
  Mark(output);
}

}  // namespace strata::bench
