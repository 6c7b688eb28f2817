#include "diff/graph/listing.h"

#include <utility>

#include "diff/graph/large_arrays.h"
#include "ir/module.h"

namespace strata {
namespace {

EntityKind KindOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kPlaceholder:
      return EntityKind::kInput;
    case NodeKind::kGetAttr:
      return EntityKind::kConstant;
    case NodeKind::kOutput:
      return EntityKind::kOutput;
    default:
      return EntityKind::kCompute;
  }
}

/// Calls `fn(GraphId)` for each graph that `arg` holds.
template <class Fn>
void ForEachGraph(const Graph& graph, const Arg& arg, Fn&& fn) {
  if (arg.kind() == ArgKind::kGraph) {
    fn(arg.graph());
  } else if (arg.is_span()) {
    for (const Arg& element : graph.elements(arg))
      ForEachGraph(graph, element, fn);
  }
}

}  // namespace

std::string_view ToString(EntityKind kind) {
  switch (kind) {
    case EntityKind::kInput:
      return "input";
    case EntityKind::kConstant:
      return "constant";
    case EntityKind::kCompute:
      return "compute";
    case EntityKind::kOutput:
      return "output";
  }
  return "";
}

Listing::Listing(const Graph& graph) : scope_of_graph_(graph.module().num_graphs()) {
  ReserveLarge(entities_, static_cast<size_t>(graph.num_printed_nodes()));
  AddScope(graph, "", {});
}

void Listing::AddScope(const Graph& graph, std::string prefix, EntityId referred_by) {
  const EntityId begin = entities_.end_id();
  const ScopeId scope = scopes_.Add({&graph, prefix, {begin, begin}, referred_by, {}});
  scope_of_graph_[static_cast<size_t>(graph.id().index)] = scope;
  if (referred_by.valid()) scopes_[scope].referrers.push_back(referred_by);
  auto of_node = MakeLarge<std::vector<EntityId>>(static_cast<size_t>(graph.node_bound()));
  auto of_value = MakeLarge<std::vector<EntityId>>(static_cast<size_t>(graph.value_bound()));

  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    of_node[static_cast<size_t>(id.index)] = entities_.end_id();
    for (size_t i = 0; i < node.num_results; ++i)
      of_value[static_cast<size_t>(graph.result(id, i).index)] = entities_.end_id();
    entities_.Add({graph.id(), id.index});
    if (!node.returns_tuple) continue;
    for (size_t i = 0; i < node.num_results; ++i) {
      const ValueId element = graph.result(id, i);
      if (!graph.value(element).name.valid()) continue;
      of_value[static_cast<size_t>(element.index)] = entities_.Add({graph.id(), ~element.index});
    }
  }
  entity_of_node_.Add(std::move(of_node));
  entity_of_value_.Add(std::move(of_value));
  const IdRange<EntityId> ids(begin, entities_.end_id());
  scopes_[scope].ids = ids;

  // Adding the bodies may move the elements of the vectors.
  for (EntityId entity : ids) {
    const auto [unused, id, element, kind] = (*this)[entity];
    if (element.valid()) continue;
    const auto add = [&, node_id = id](GraphId body) {
      if (const ScopeId known = scope_of(body); known.valid()) {
        scopes_[known].referrers.push_back(entity);
        return;
      }
      const Graph& inner = graph.module().graph(body);
      const NodeKind kind_of_node = graph.node(node_id).kind;
      const bool by_path =
          kind_of_node == NodeKind::kGetAttr || kind_of_node == NodeKind::kCallModule;
      const std::string_view name = by_path ? graph.op(node_id) : inner.name_text();
      AddScope(inner, prefix + std::string(name) + "/", entity);
    };
    for (const Arg& arg : graph.args(id))
      ForEachGraph(graph, arg, add);
    for (size_t i = 0; i < graph.node(id).num_kwargs; ++i)
      ForEachGraph(graph, graph.kwarg(id, i).value, add);
  }
}

Entity Listing::operator[](EntityId id) const {
  const auto [graph_id, node_or_element] = entities_[id];
  const Graph& graph = root().module().graph(graph_id);
  if (node_or_element < 0) {
    const ValueId element{~node_or_element};
    return {graph_id, graph.value(element).def, element, EntityKind::kCompute};
  }
  const NodeId node{node_or_element};
  return {graph_id, node, {}, KindOf(graph.node(node).kind)};
}

std::string Listing::name(EntityId id) const {
  std::string name = scopes_[scope_of(id)].prefix;
  return name += local_name(id);
}

std::string_view Listing::local_name(EntityId id) const {
  const Entity entity = (*this)[id];
  const Graph& graph = *scopes_[scope_of(id)].graph;
  if (entity.kind == EntityKind::kOutput) return "output";
  return entity.element.valid() ? graph.value_name(entity.element) : graph.name(entity.node);
}

bool SameName(const Listing& before, EntityId a, const Listing& after, EntityId b) {
  const auto prefix = [](const Listing& listing, EntityId id) -> const std::string& {
    return listing.scopes()[listing.scope_of(id)].prefix;
  };
  // Nearly always both are of the program itself, or of one body.
  if (prefix(before, a) == prefix(after, b)) return before.local_name(a) == after.local_name(b);
  return before.name(a) == after.name(b);
}

std::string_view Listing::target(EntityId id) const {
  const Entity entity = (*this)[id];
  if (entity.element.valid()) return "_operator.getitem";
  return graph(id).op(entity.node);
}

ValueId Listing::value(EntityId id) const {
  const Entity entity = (*this)[id];
  if (entity.element.valid()) return entity.element;
  const Node& node = graph(id).node(entity.node);
  return node.num_results == 1 && !node.returns_tuple ? node.first_result : ValueId{};
}

EntityId Listing::Find(GraphId graph, NodeId node) const {
  const ScopeId scope = scope_of(graph);
  if (!scope.valid() || !node.valid()) return {};
  return entity_of_node_[scope][static_cast<size_t>(node.index)];
}

EntityId Listing::FindValue(GraphId graph, ValueId value) const {
  const ScopeId scope = scope_of(graph);
  if (!scope.valid() || !value.valid()) return {};
  return entity_of_value_[scope][static_cast<size_t>(value.index)];
}

EntityId Listing::FindName(std::string_view name) const {
  for (EntityId id : ids()) {
    if (this->name(id) == name) return id;
  }
  return {};
}

}  // namespace strata
