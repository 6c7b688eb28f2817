#pragma once
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "ir/arg.h"
#include "ir/ids.h"

namespace strata {

class Module;

enum class NodeKind : uint8_t {
  kPlaceholder,  ///< an input of the graph; one result
  kGetAttr,  ///< reads `op` (an attribute path) of the owning module; args[0] is a graph if it is
             ///< one
  kCall,     ///< calls operator `op`
  kCallMethod,  ///< calls method `op` of args[0]
  kCallModule,  ///< calls submodule `op`; args[0] is a graph if it is one
  kOutput,      ///< the graph's return; args[0] is what it returns; the last node
  kErased,
};

enum class Phase : uint8_t { kUnknown, kForward, kLoss, kBackward, kOptimizer };
std::string_view ToString(Phase phase);

/// A node: one operation, with its metadata. Read through Graph, changed through Rewriter.
struct Node {
  StableId stable_id = StableId::kNone;
  StrId op;                 ///< "aten.mm.default"; empty for placeholders and outputs
  NodeId prev, next;        ///< program order
  uint32_t args_begin = 0;  ///< in the graph's pool: positional arguments, then (name, value) pairs
  uint32_t num_args = 0;    ///< positional
  uint16_t num_kwargs = 0;
  uint16_t num_results = 0;
  ValueId first_result;
  StrId name;    ///< as printed; unique in the graph
  StrId module;  ///< "layers.3.attention.wq"
  LocId loc;
  int32_t seq_nr = -1;     ///< autograd sequence number: joins backward to forward; -1: none
  int32_t text_line = -1;  ///< 0-based line of the imported text; -1: none
  uint16_t stream = 0;
  NodeKind kind = NodeKind::kCall;
  Phase phase = Phase::kUnknown;
  bool returns_tuple = false;  ///< results are read by position (FX prints `getitem` lines)
};
static_assert(sizeof(Node) <= 64);

/// A result of a node. A node that returns a tuple has a value per element; elements that are not
/// read by position have no name (they would not be printed).
struct Value {
  NodeId def;
  TypeId type;  ///< none: not known
  ValueId
      alias_of;  ///< the value whose storage this one shares, if it is a view or in-place result
  StrId name;    ///< of the element as printed (`getitem_3`); none for single results
  int32_t first_use = -1;  ///< the start of the use list: a slot
  uint32_t num_uses = 0;
};
static_assert(sizeof(Value) <= 24);

/// A place where a value is used: argument slot `slot` of node `user`.
struct Use {
  NodeId user;
  uint32_t slot;
};

/// Where a node comes from in its source program.
struct SourceLoc {
  StrId file;
  int32_t line = 0;
  StrId function, code;
  friend bool operator==(const SourceLoc&, const SourceLoc&) = default;
};

/// A program as a list of nodes in execution order, with explicit uses. Bodies of higher-order
/// nodes are graphs of the same module.
///
/// Reading is free for everybody, also concurrently; changing goes through Rewriter. Ids stay valid
/// for the lifetime of the graph and are not reused; `const Node&` and `const Value&` stay valid
/// too.
class Graph {
 public:
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  GraphId id() const { return id_; }
  StrId name() const { return name_; }
  std::string_view name_text() const;
  const Module& module() const { return *module_; }
  Module& module() { return *module_; }
  /// True for a body of a higher-order node, false for a program of its own.
  bool is_body() const { return is_body_; }
  /// True when the graph was read from another program's text: module and phase are then untrusted.
  bool is_foreign() const { return is_foreign_; }

  const Node& node(NodeId id) const { return nodes_[static_cast<uint32_t>(id.index)]; }
  const Value& value(ValueId id) const { return values_[static_cast<uint32_t>(id.index)]; }
  std::string_view op(NodeId id) const;    ///< operator name
  std::string_view name(NodeId id) const;  ///< node name
  /// The name under which the value is printed: of its node, or of its element.
  std::string_view value_name(ValueId id) const;
  /// The same, `split$1` for the second of several results without names of their own: no other
  /// value has this name.
  std::string unique_value_name(ValueId id) const;

  /// Nodes in program order: `for (NodeId id : graph.nodes())`.
  class NodeRange;
  NodeRange nodes() const;
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  /// The kOutput node; none while a graph is being built.
  NodeId output() const { return output_; }
  std::vector<NodeId> placeholders() const;

  /// Positional arguments.
  std::span<const Arg> args(NodeId id) const {
    const Node& n = node(id);
    return pool_.Row(n.args_begin, n.num_args);
  }
  /// Keyword argument `i` of node `id`. REQUIRES: i < num_kwargs.
  NamedArg kwarg(NodeId id, size_t i) const {
    const Node& n = node(id);
    const Arg* pair = &pool_[n.args_begin] + n.num_args + 2 * i;
    return {pair[0].str(), pair[1]};
  }
  /// The keyword argument `name`, or null.
  const Arg* FindKwarg(NodeId id, std::string_view name) const;
  /// Elements of a list, tuple, dict or call argument.
  std::span<const Arg> elements(const Arg& arg) const {
    return pool_.Row(arg.span_begin(), arg.span_size());
  }
  const Arg& slot(uint32_t index) const { return pool_[index]; }

  /// Results of a node, in order.
  ValueId result(NodeId id, size_t index = 0) const {
    return {node(id).first_result.index + static_cast<int32_t>(index)};
  }
  /// Which result of its node a value is.
  uint32_t result_index(ValueId id) const {
    return static_cast<uint32_t>(id.index - node(value(id).def).first_result.index);
  }
  bool HasUses(NodeId id) const;
  /// Uses of a value, oldest first.
  class UseRange;
  UseRange uses(ValueId id) const;
  /// Calls `fn(ValueId)` for every operand of `id` in flattened argument order (positional, then
  /// keyword), with repetitions.
  template <class Fn>
  void ForEachOperand(NodeId id, Fn&& fn) const;
  std::vector<ValueId> operands(NodeId id) const;

  /// Nodes that are not erased, and (as the printed text counts) also the elements read by
  /// position.
  int32_t num_nodes() const { return num_nodes_; }
  int32_t num_printed_nodes() const;
  /// Ids are below these bounds: for vectors indexed by id.
  int32_t node_bound() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t value_bound() const { return static_cast<int32_t>(values_.size()); }

  /// Rare metadata by name ("recompute", "chunk", …), in name order.
  std::span<const std::pair<StrId, StrId>> attributes(NodeId id) const;
  std::string_view attribute(NodeId id, std::string_view key) const;  ///< "" when absent

  class NodeRange {
   public:
    class Iterator {
     public:
      using value_type = NodeId;
      using difference_type = std::ptrdiff_t;
      using iterator_category = std::forward_iterator_tag;
      Iterator() = default;
      Iterator(const Graph* graph, NodeId id) : graph_(graph), id_(id) {}
      NodeId operator*() const { return id_; }
      Iterator& operator++() {
        id_ = graph_->node(id_).next;
        return *this;
      }
      Iterator operator++(int) {
        Iterator old = *this;
        ++*this;
        return old;
      }
      friend bool operator==(const Iterator& a, const Iterator& b) { return a.id_ == b.id_; }

     private:
      const Graph* graph_ = nullptr;
      NodeId id_;
    };
    explicit NodeRange(const Graph* graph) : graph_(graph) {}
    Iterator begin() const { return {graph_, graph_->first_}; }
    Iterator end() const { return {graph_, NodeId{}}; }
    /// A copy of the order, for loops that change the graph.
    std::vector<NodeId> Snapshot() const { return {begin(), end()}; }

   private:
    const Graph* graph_;
  };

  class UseRange {
   public:
    class Iterator {
     public:
      using value_type = Use;
      using difference_type = std::ptrdiff_t;
      using iterator_category = std::forward_iterator_tag;
      Iterator() = default;
      Iterator(const Graph* graph, int32_t slot) : graph_(graph), slot_(slot) {}
      Use operator*() const {
        const auto slot = static_cast<uint32_t>(slot_);
        return {graph_->pool_[slot].user(), slot};
      }
      Iterator& operator++() {
        slot_ = graph_->pool_[static_cast<uint32_t>(slot_)].use_.next;
        return *this;
      }
      Iterator operator++(int) {
        Iterator old = *this;
        ++*this;
        return old;
      }
      friend bool operator==(const Iterator& a, const Iterator& b) { return a.slot_ == b.slot_; }

     private:
      const Graph* graph_ = nullptr;
      int32_t slot_ = -1;
    };
    UseRange(const Graph* graph, int32_t first) : graph_(graph), first_(first) {}
    Iterator begin() const { return {graph_, first_}; }
    Iterator end() const { return {graph_, -1}; }
    bool empty() const { return first_ < 0; }

   private:
    const Graph* graph_;
    int32_t first_;
  };

 private:
  friend class Module;
  friend class Rewriter;

  Graph(Module* module, GraphId id, StrId name, bool is_body)
      : module_(module), id_(id), name_(name), is_body_(is_body) {}
  Node& mutable_node(NodeId id) { return nodes_[static_cast<uint32_t>(id.index)]; }
  Value& mutable_value(ValueId id) { return values_[static_cast<uint32_t>(id.index)]; }
  std::unique_ptr<Graph> CloneInto(Module* module) const;

  template <class Fn>
  void ForEachValue(const Arg& arg, Fn& fn) const {
    if (arg.is_value()) {
      fn(arg.value());
    } else if (arg.is_span()) {
      for (const Arg& element : elements(arg))
        ForEachValue(element, fn);
    }
  }

  Module* module_;
  GraphId id_;
  StrId name_;
  bool is_body_ = false, is_foreign_ = false;
  static constexpr int kBlockBits = 9;
  Arena<Node, kBlockBits> nodes_;
  Arena<Value, kBlockBits> values_;
  Arena<Arg, kBlockBits> pool_;  // the arguments of a node, and a span, are rows
  NodeId first_, last_, output_;
  int32_t num_nodes_ = 0;
  IdVector<NodeId, std::vector<std::pair<StrId, StrId>>> attributes_;  // up to the last with any
  std::unordered_map<int32_t, std::vector<ValueId>>
      aliases_;  // by owner; may hold values that are gone
};

inline Graph::NodeRange Graph::nodes() const {
  return NodeRange(this);
}
inline Graph::UseRange Graph::uses(ValueId id) const {
  return {this, value(id).first_use};
}

template <class Fn>
void Graph::ForEachOperand(NodeId id, Fn&& fn) const {
  for (const Arg& arg : args(id))
    ForEachValue(arg, fn);
  for (size_t i = 0; i < node(id).num_kwargs; ++i)
    ForEachValue(kwarg(id, i).value, fn);
}

/// Position of each node in program order, by node index; erased nodes have -1.
std::vector<int32_t> OrderOf(const Graph& graph);

}  // namespace strata
