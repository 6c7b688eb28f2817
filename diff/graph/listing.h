#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "ir/graph.h"
#include "ir/ids.h"
#include "ir/module.h"

namespace strata {

/// An index into one Listing: a printed node. Ascending ids are the printed order.
using EntityId = Id<struct EntityTag>;
/// An index into Listing::scopes.
using ScopeId = Id<struct ScopeTag>;

/// What a printed node is; only nodes of one kind can be identical.
enum class EntityKind : uint8_t { kInput, kConstant, kCompute, kOutput };
std::string_view ToString(EntityKind kind);  ///< "input", "constant", "compute", "output"

/// A line of the printed graph: a node, or a named element of a node that returns a tuple (a
/// `getitem` line).
struct Entity {
  GraphId graph;  ///< the program itself or one of its bodies
  NodeId node;
  ValueId element;  ///< valid: the element, not the node
  EntityKind kind = EntityKind::kCompute;
};

class Listing;

/// Whether both have the same `Listing::name`.
bool SameName(const Listing& before, EntityId a, const Listing& after, EntityId b);

/// The printed nodes of a graph and of all bodies it refers to: each graph in its own order, a body
/// after the graph that refers to it first.
class Listing {
 public:
  /// REQUIRES: `graph` outlives the listing and is not changed.
  explicit Listing(const Graph& graph);

  int32_t size() const { return entities_.end_id().index; }
  Entity operator[](EntityId id) const;
  /// All entities, in printed order.
  IdRange<EntityId> ids() const { return IdsOf(entities_); }

  /// The name as scripts see it: `add_3`, `output`; in a body `true_graph_0/add_3`.
  std::string name(EntityId id) const;
  /// The same inside of its graph: `add_3`.
  std::string_view local_name(EntityId id) const;
  /// "aten.mm.default"; of an element `_operator.getitem`; empty for inputs and outputs.
  std::string_view target(EntityId id) const;
  /// The value that this entity is: the element, or the node's only result. None for outputs, and
  /// for nodes that return a tuple.
  ValueId value(EntityId id) const;

  /// The entity that prints `node`; none when the listing has no such graph.
  EntityId Find(GraphId graph, NodeId node) const;
  /// The entity under whose name `value` is printed as an operand.
  EntityId FindValue(GraphId graph, ValueId value) const;
  /// By name, as `name` gives it; none when there is none.
  EntityId FindName(std::string_view name) const;

  const Graph& root() const { return *scopes_[kProgram].graph; }
  const Graph& graph(EntityId id) const { return root().module().graph(entities_[id].graph); }

  /// A graph of the listing. The first one is the program, the others are bodies.
  struct Scope {
    const Graph* graph;
    std::string prefix;               ///< "" or "true_graph_0/"
    IdRange<EntityId> ids;            ///< its entities
    EntityId referred_by;             ///< the entity (of an outer scope) that refers to it first
    std::vector<EntityId> referrers;  ///< all that do, each as often as it does
  };
  const IdVector<ScopeId, Scope>& scopes() const { return scopes_; }
  /// The scope of `root`.
  static constexpr ScopeId kProgram{0};
  ScopeId scope_of(EntityId id) const { return scope_of(entities_[id].graph); }
  /// None: the graph is not listed.
  ScopeId scope_of(GraphId graph) const {
    return scope_of_graph_[static_cast<size_t>(graph.index)];
  }

 private:
  void AddScope(const Graph& graph, std::string prefix, EntityId referred_by);

  /// An Entity without what follows from the graph.
  struct Line {
    GraphId graph;
    int32_t node_or_element;  ///< index of the node; of the element, inverted
  };
  IdVector<EntityId, Line> entities_;
  IdVector<ScopeId, Scope> scopes_;
  IdVector<ScopeId, std::vector<EntityId>> entity_of_node_;   // by node index
  IdVector<ScopeId, std::vector<EntityId>> entity_of_value_;  // by value index
  std::vector<ScopeId> scope_of_graph_;                       // by graph index
};

}  // namespace strata
