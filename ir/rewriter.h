#pragma once
#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// Why a node exists: the nodes it was made from. Creating needs one, so provenance cannot be
/// forgotten.
struct From {
  /// From other nodes of the same graph.
  From(std::initializer_list<NodeId> ancestors, Origin how = Origin::kCreated)
      : nodes(ancestors), origin(how) {}
  explicit From(std::span<const NodeId> ancestors, Origin how = Origin::kCreated)
      : nodes(ancestors.begin(), ancestors.end()), origin(how) {}
  /// From nodes of another graph of the same module.
  From(const Graph& other, std::initializer_list<NodeId> ancestors, Origin how = Origin::kCreated)
      : nodes(ancestors), origin(how), graph(&other) {}
  /// From a program or a file: for tracers and importers.
  static From Source() { return From({}, Origin::kTraced); }

  std::vector<NodeId> nodes;
  Origin origin;
  const Graph* graph = nullptr;  ///< of the nodes; null: the graph that is changed
};

/// What to create. Only `op` (or another kind) and arguments are needed.
struct NodeSpec {
  NodeKind kind = NodeKind::kCall;
  std::string_view op = {};
  std::span<const Arg> args = {};
  std::span<const NamedArg> kwargs = {};
  /// Types of the results; none entries are unknown. Empty: one result of unknown type.
  std::span<const TypeId> results = {};
  bool returns_tuple = false;
  std::string_view name = {};            ///< "": made from the operator's name, as FX does
  StrId op_id = {}, name_id = {};        ///< of the module; in place of `op` and `name`
  StableId stable_id = StableId::kNone;  ///< none: a new one. Only loaders give one.
};

/// The only way to change a graph. Keeps use lists, order and provenance true after every call.
///
/// New nodes go to the cursor, which is at the end after construction. They inherit module, phase,
/// stream, location and sequence number from the first node in `From`. REQUIRES: no other Rewriter
/// is alive on the same graph.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  void SetCursorBefore(NodeId node) { cursor_ = node; }
  void SetCursorAfter(NodeId node) { cursor_ = graph_.node(node).next; }
  /// Before the output node if there is one, else at the end.
  void SetCursorToEnd() { cursor_ = graph_.output(); }

  NodeId Create(const NodeSpec& spec, const From& from);
  /// A call with positional arguments and one result of unknown type.
  NodeId Create(std::string_view op, std::initializer_list<Arg> args, const From& from);
  /// A copy of `node` at the cursor: new identity, same operands and metadata.
  NodeId Clone(NodeId node);

  /// A list, tuple, dict or call made of `elements`, for use as an argument of one node of this
  /// graph.
  Arg MakeSpan(ArgKind kind, std::span<const Arg> elements);
  Arg MakeSpan(ArgKind kind, std::initializer_list<Arg> elements) {
    return MakeSpan(kind, std::span<const Arg>(elements.begin(), elements.size()));
  }

  /// Redirects every use of `old_value` to `new_value`, and the views of its storage. Types are not
  /// compared. REQUIRES: `new_value` is defined before each user.
  void ReplaceUses(ValueId old_value, ValueId new_value);
  /// Redirects one use.
  void ReplaceUse(Use use, ValueId new_value);
  /// Replaces the argument in pool slot `slot` of `node` (see Use, or `args_begin + i`).
  void SetSlot(NodeId node, uint32_t slot, Arg arg);
  void SetArgs(NodeId node, std::span<const Arg> args, std::span<const NamedArg> kwargs);
  void SetOp(NodeId node, std::string_view op);
  /// Changes the results' number; existing ones keep their ids and uses.
  /// REQUIRES: results beyond `results.size()` have no uses.
  void SetResults(NodeId node, std::span<const TypeId> results, bool returns_tuple);
  /// Removes a node; values that alias its results have their storage alone.
  /// REQUIRES: none of its results is used.
  void Erase(NodeId node);
  /// Moves `node` before `position`; none: to the end.
  void MoveBefore(NodeId node, NodeId position);

  void SetType(ValueId value, TypeId type);
  /// States that `value` shares the storage of `alias_of`; none: it owns its storage.
  void SetAlias(ValueId value, ValueId alias_of);
  /// Names an element of a tuple; "" removes the name.
  void SetElementName(ValueId value, std::string_view name);
  /// REQUIRES: no other node or element of the graph has that name.
  void SetName(NodeId node, std::string_view name);
  void SetModule(NodeId node, std::string_view module_path);
  void SetModule(NodeId node, StrId module_path) { graph_.mutable_node(node).module = module_path; }
  void SetPhase(NodeId node, Phase phase);
  void SetStream(NodeId node, uint16_t stream);
  void SetSeqNr(NodeId node, int32_t seq_nr);
  void SetLoc(NodeId node, LocId loc);
  void SetTextLine(NodeId node, int32_t line);
  /// "" removes the attribute.
  void SetAttribute(NodeId node, std::string_view key, std::string_view value);

  Graph& graph() { return graph_; }

 private:
  void LinkArgs(NodeId user, uint32_t begin, uint32_t count);
  void UnlinkArgs(uint32_t begin, uint32_t count);
  void Link(NodeId user, uint32_t slot);
  Arg::UseLink& LinkAt(int32_t slot) { return graph_.pool_[static_cast<uint32_t>(slot)].use_; }
  void Unlink(uint32_t slot);
  void InsertAtCursor(NodeId node);
  void Detach(NodeId node);
  /// Gives `node`, which is not linked, new arguments.
  void AddArgs(std::span<const Arg> args, std::span<const NamedArg> kwargs, Node& node);
  StrId UniqueName(std::string_view base);
  void LearnNames();
  bool IsTaken(StrId name) const;
  void SetTaken(StrId name, bool taken);

  Graph& graph_;
  Module& module_;
  NodeId cursor_;
  // Names taken in this graph; filled when the first name must be made.
  bool names_known_ = false;
  std::vector<bool> names_;  // by index of the string
  std::unordered_map<StrId, int32_t> next_suffix_;
};

}  // namespace strata
