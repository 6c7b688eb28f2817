#include "ir/rewriter.h"

#include <algorithm>
#include <vector>

#include "ir/ops.h"

namespace strata {
namespace {

std::string_view BaseNameFor(const NodeSpec& spec) {
  switch (spec.kind) {
    case NodeKind::kPlaceholder:
      return "arg";
    case NodeKind::kOutput:
      return "output";
    case NodeKind::kGetAttr:
    case NodeKind::kCallModule:
    case NodeKind::kCallMethod:
      return spec.op;
    default:
      return BaseName(spec.op);
  }
}

/// What a node takes over of the one that it is made from.
void InheritPlace(const Node& parent, Node& node) {
  node.module = parent.module;
  node.phase = parent.phase;
  node.stream = parent.stream;
  node.loc = parent.loc;
  node.seq_nr = parent.seq_nr;
}

}  // namespace

Rewriter::Rewriter(Graph& graph) : graph_(graph), module_(graph.module()) {
  SetCursorToEnd();
}

NodeId Rewriter::Create(const NodeSpec& spec, const From& from) {
  STRATA_CHECK(spec.kind != NodeKind::kOutput || !graph_.output_.valid(), "a graph has one output");
  Node node;
  node.kind = spec.kind;
  node.op = spec.op.empty() ? spec.op_id : module_.Intern(spec.op);
  node.stable_id = spec.stable_id == StableId::kNone ? module_.NewStableId() : spec.stable_id;
  node.returns_tuple = spec.returns_tuple;
  if (spec.name.empty() && !spec.name_id.valid()) {
    node.name = UniqueName(BaseNameFor(spec));
  } else {
    node.name = spec.name_id.valid() ? spec.name_id : module_.Intern(spec.name);
    if (names_known_) SetTaken(node.name, true);
  }

  AddArgs(spec.args, spec.kwargs, node);
  const bool has_results = spec.kind != NodeKind::kOutput;
  const size_t results =
      spec.results.empty() ? (has_results && !spec.returns_tuple ? 1 : 0) : spec.results.size();
  node.num_results = static_cast<uint16_t>(results);
  node.first_result = {graph_.value_bound()};
  const NodeId id{graph_.node_bound()};
  STRATA_CHECK(id.index >> Arg::kUserBits == 0, "a graph is full");
  for (size_t i = 0; i < results; ++i) {
    Value value;
    value.def = id;
    if (i < spec.results.size()) value.type = spec.results[i];
    graph_.values_.Add(value);
  }

  if (!from.nodes.empty()) {
    const Graph& source = from.graph != nullptr ? *from.graph : graph_;
    const Node& parent = source.node(from.nodes.front());
    InheritPlace(parent, node);
    Provenance birth{node.stable_id, from.origin, {}};
    for (NodeId ancestor : from.nodes)
      birth.from.push_back(source.node(ancestor).stable_id);
    module_.provenance_.push_back(std::move(birth));
  }
  graph_.nodes_.Add(node);
  LinkArgs(id, node.args_begin, node.num_args + 2u * node.num_kwargs);
  InsertAtCursor(id);
  ++graph_.num_nodes_;
  if (spec.kind == NodeKind::kOutput) {
    graph_.output_ = id;
    SetCursorToEnd();
  }
  return id;
}

NodeId Rewriter::Create(std::string_view op, std::initializer_list<Arg> args, const From& from) {
  NodeSpec spec;
  spec.op = op;
  spec.args = {args.begin(), args.size()};
  return Create(spec, from);
}

NodeId Rewriter::Clone(NodeId original) {
  // Nested spans are copied too: a slot has one user.
  const auto copy = [&](const auto& self, const Arg& arg) -> Arg {
    if (!arg.is_span()) return arg;
    std::vector<Arg> elements;
    for (const Arg& element : graph_.elements(arg))
      elements.push_back(element);
    for (Arg& element : elements)
      element = self(self, element);
    return MakeSpan(arg.kind(), elements);
  };
  std::vector<Arg> args;
  std::vector<NamedArg> kwargs;
  for (size_t i = 0; i < graph_.node(original).num_args; ++i) {
    args.push_back(copy(copy, graph_.args(original)[i]));
  }
  for (size_t i = 0; i < graph_.node(original).num_kwargs; ++i) {
    const NamedArg kwarg = graph_.kwarg(original, i);
    kwargs.push_back({kwarg.name, copy(copy, kwarg.value)});
  }
  std::vector<TypeId> results;
  for (size_t i = 0; i < graph_.node(original).num_results; ++i) {
    results.push_back(graph_.value(graph_.result(original, i)).type);
  }
  const Node& source = graph_.node(original);
  NodeSpec spec;
  spec.kind = source.kind;
  spec.op = module_.str(source.op);
  spec.args = args;
  spec.kwargs = kwargs;
  spec.results = results;
  spec.returns_tuple = source.returns_tuple;
  const NodeId id = Create(spec, From({original}, Origin::kCloned));
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& from = graph_.value(graph_.result(original, i));
    if (from.alias_of.valid()) SetAlias(graph_.result(id, i), from.alias_of);
    if (from.name.valid()) {
      graph_.mutable_value(graph_.result(id, i)).name = UniqueName(module_.str(from.name));
    }
  }
  for (const auto& [key, value] : graph_.attributes(original)) {
    SetAttribute(id, module_.str(key), module_.str(value));
  }
  return id;
}

void Rewriter::InsertAtCursor(NodeId id) {
  Node& node = graph_.mutable_node(id);
  node.next = cursor_;
  node.prev = cursor_.valid() ? graph_.node(cursor_).prev : graph_.last_;
  (node.prev.valid() ? graph_.mutable_node(node.prev).next : graph_.first_) = id;
  (node.next.valid() ? graph_.mutable_node(node.next).prev : graph_.last_) = id;
}

void Rewriter::Detach(NodeId id) {
  Node& node = graph_.mutable_node(id);
  (node.prev.valid() ? graph_.mutable_node(node.prev).next : graph_.first_) = node.next;
  (node.next.valid() ? graph_.mutable_node(node.next).prev : graph_.last_) = node.prev;
  if (cursor_ == id) cursor_ = node.next;
}

void Rewriter::SetOp(NodeId node, std::string_view op) {
  graph_.mutable_node(node).op = module_.Intern(op);
}

void Rewriter::SetResults(NodeId id, std::span<const TypeId> results, bool returns_tuple) {
  Node& node = graph_.mutable_node(id);
  node.returns_tuple = returns_tuple;
  const size_t kept = std::min<size_t>(node.num_results, results.size());
  for (size_t i = kept; i < node.num_results; ++i) {
    STRATA_CHECK(graph_.value(graph_.result(id, i)).num_uses == 0, "a dropped result is in use");
  }
  if (results.size() > node.num_results) {
    // Results of a node are neighbours, so a longer row is laid anew and uses follow.
    const ValueId old_first = node.first_result;
    const ValueId new_first{graph_.value_bound()};
    for (size_t i = 0; i < results.size(); ++i) {
      Value value;
      if (i < kept) value = graph_.value({old_first.index + static_cast<int32_t>(i)});
      value.def = id;
      value.first_use = -1;
      value.num_uses = 0;
      graph_.values_.Add(value);
    }
    for (size_t i = 0; i < kept; ++i) {
      const auto offset = static_cast<int32_t>(i);
      ReplaceUses({old_first.index + offset}, {new_first.index + offset});
    }
    node.first_result = new_first;
  }
  node.num_results = static_cast<uint16_t>(results.size());
  for (size_t i = 0; i < results.size(); ++i)
    SetType(graph_.result(id, i), results[i]);
}

void Rewriter::Erase(NodeId id) {
  STRATA_CHECK(!graph_.HasUses(id), "node '{}' is still used", graph_.name(id));
  Node& node = graph_.mutable_node(id);
  UnlinkArgs(node.args_begin, node.num_args + 2u * node.num_kwargs);
  Detach(id);
  // Who shared the storage with a result that is gone has it alone.
  for (size_t i = 0; i < node.num_results; ++i) {
    auto views = graph_.aliases_.extract(graph_.result(id, i).index);
    if (!views) continue;
    for (ValueId view : views.mapped()) {
      if (graph_.value(view).alias_of == graph_.result(id, i)) SetAlias(view, {});
    }
  }
  if (names_known_) {
    SetTaken(node.name, false);
    for (size_t i = 0; i < node.num_results; ++i) {
      SetTaken(graph_.value(graph_.result(id, i)).name, false);
    }
  }
  if (graph_.output_ == id) graph_.output_ = {};
  if (id < graph_.attributes_.end_id()) graph_.attributes_[id] = {};
  node.kind = NodeKind::kErased;
  --graph_.num_nodes_;
}

void Rewriter::MoveBefore(NodeId node, NodeId position) {
  if (node == position) return;
  Detach(node);
  const NodeId cursor = cursor_;
  cursor_ = position;
  InsertAtCursor(node);
  cursor_ = cursor;
}

void Rewriter::SetType(ValueId value, TypeId type) {
  graph_.mutable_value(value).type = type;
}

void Rewriter::SetAlias(ValueId value, ValueId alias_of) {
  if (alias_of.valid() && graph_.value(alias_of).alias_of.valid()) {
    alias_of = graph_.value(alias_of).alias_of;
  }
  graph_.mutable_value(value).alias_of = alias_of;
  if (!alias_of.valid()) return;
  graph_.aliases_[alias_of.index].push_back(value);
  // Whatever aliased this value has the same owner now.
  if (auto views = graph_.aliases_.extract(value.index)) {
    for (ValueId view : views.mapped()) {
      if (graph_.value(view).alias_of == value) SetAlias(view, alias_of);
    }
  }
}

void Rewriter::SetElementName(ValueId value, std::string_view name) {
  Value& v = graph_.mutable_value(value);
  if (names_known_) SetTaken(v.name, false);
  v.name = name.empty() ? StrId{} : module_.Intern(name);
  if (names_known_) SetTaken(v.name, true);
}

void Rewriter::SetName(NodeId node, std::string_view name) {
  Node& n = graph_.mutable_node(node);
  if (names_known_) SetTaken(n.name, false);
  n.name = module_.Intern(name);
  if (names_known_) SetTaken(n.name, true);
}

void Rewriter::SetModule(NodeId node, std::string_view module_path) {
  graph_.mutable_node(node).module = module_path.empty() ? StrId{} : module_.Intern(module_path);
}
void Rewriter::SetPhase(NodeId node, Phase phase) {
  graph_.mutable_node(node).phase = phase;
}
void Rewriter::SetStream(NodeId node, uint16_t stream) {
  graph_.mutable_node(node).stream = stream;
}
void Rewriter::SetSeqNr(NodeId node, int32_t seq_nr) {
  graph_.mutable_node(node).seq_nr = seq_nr;
}
void Rewriter::SetLoc(NodeId node, LocId loc) {
  graph_.mutable_node(node).loc = loc;
}
void Rewriter::SetTextLine(NodeId node, int32_t line) {
  graph_.mutable_node(node).text_line = line;
}

void Rewriter::SetAttribute(NodeId node, std::string_view key, std::string_view value) {
  const StrId name = module_.Intern(key);
  if (node >= graph_.attributes_.end_id()) {
    if (value.empty()) return;
    graph_.attributes_.resize(static_cast<size_t>(node.index) + 1);
  }
  auto& list = graph_.attributes_[node];
  const auto place = std::ranges::lower_bound(
      list, key, {}, [&](const auto& entry) { return module_.str(entry.first); });
  const bool found = place != list.end() && place->first == name;
  if (!value.empty()) {
    const StrId text = module_.Intern(value);
    if (found) {
      place->second = text;
    } else {
      list.insert(place, {name, text});
    }
  } else if (found) {
    list.erase(place);
  }
}

}  // namespace strata
