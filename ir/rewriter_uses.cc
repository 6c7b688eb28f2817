// The arguments of nodes and the lists of uses that belong to them.

#include <vector>

#include "ir/rewriter.h"

namespace strata {

Arg Rewriter::MakeSpan(ArgKind kind, std::span<const Arg> elements) {
  const auto begin = static_cast<uint32_t>(graph_.pool_.size());
  AppendToPool(elements);
  graph_.links_.resize(graph_.pool_.size());
  return Arg::Span(kind, begin, static_cast<uint32_t>(elements.size()));
}

void Rewriter::AppendToPool(std::span<const Arg> args) {
  std::vector<Arg>& pool = graph_.pool_;
  const Arg* begin = pool.data();
  if (args.data() >= begin && args.data() < begin + pool.size()) {
    const std::vector<Arg> copy(args.begin(), args.end());  // growth would move what we read
    pool.insert(pool.end(), copy.begin(), copy.end());
  } else {
    pool.insert(pool.end(), args.begin(), args.end());
  }
}

void Rewriter::Link(NodeId user, uint32_t slot) {
  const ValueId value = graph_.pool_[slot].value();
  Value& v = graph_.values_[value.index];
  int32_t& tail = graph_.last_use_[static_cast<size_t>(value.index)];
  const auto place = static_cast<int32_t>(slot);
  graph_.links_[slot] = {user, tail, -1};
  if (tail >= 0) {
    graph_.links_[static_cast<size_t>(tail)].next = place;
  } else {
    v.first_use = place;
  }
  tail = place;
  ++v.num_uses;
}

void Rewriter::Unlink(uint32_t slot) {
  const ValueId value = graph_.pool_[slot].value();
  Value& v = graph_.values_[value.index];
  const Graph::UseLink link = graph_.links_[slot];
  if (link.prev >= 0) {
    graph_.links_[static_cast<size_t>(link.prev)].next = link.next;
  } else {
    v.first_use = link.next;
  }
  if (link.next >= 0) {
    graph_.links_[static_cast<size_t>(link.next)].prev = link.prev;
  } else {
    graph_.last_use_[static_cast<size_t>(value.index)] = link.prev;
  }
  graph_.links_[slot] = {};
  --v.num_uses;
}

void Rewriter::LinkArgs(NodeId user, uint32_t begin, uint32_t count) {
  for (uint32_t slot = begin; slot < begin + count; ++slot) {
    const Arg arg = graph_.pool_[slot];
    if (arg.is_value()) {
      Link(user, slot);
    } else if (arg.is_span()) {
      LinkArgs(user, arg.span_begin(), arg.span_size());
    }
  }
}

void Rewriter::UnlinkArgs(uint32_t begin, uint32_t count) {
  for (uint32_t slot = begin; slot < begin + count; ++slot) {
    const Arg arg = graph_.pool_[slot];
    if (arg.is_value()) {
      Unlink(slot);
    } else if (arg.is_span()) {
      UnlinkArgs(arg.span_begin(), arg.span_size());
    }
  }
}

void Rewriter::ReplaceUses(ValueId old_value, ValueId new_value) {
  if (old_value == new_value) return;
  // Views that read the old value now read the new one.
  if (auto views = graph_.aliases_.extract(old_value.index)) {
    for (ValueId view : views.mapped()) {
      if (graph_.value(view).alias_of == old_value && view != new_value) SetAlias(view, new_value);
    }
  }
  while (graph_.value(old_value).first_use >= 0) {
    const auto slot = static_cast<uint32_t>(graph_.value(old_value).first_use);
    ReplaceUse({graph_.links_[slot].user, slot}, new_value);
  }
}

void Rewriter::ReplaceUse(Use use, ValueId new_value) {
  SetSlot(use.user, use.slot, new_value);
}

void Rewriter::SetSlot(NodeId node, uint32_t slot, Arg arg) {
  UnlinkArgs(slot, 1);
  graph_.pool_[slot] = arg;
  LinkArgs(node, slot, 1);
}

void Rewriter::SetArgs(NodeId id, std::span<const Arg> args, std::span<const NamedArg> kwargs) {
  Node& node = graph_.nodes_[id.index];
  // The new arguments may be views of the pool, which grows.
  const std::vector<Arg> positional(args.begin(), args.end());
  const std::vector<NamedArg> named(kwargs.begin(), kwargs.end());
  UnlinkArgs(node.args_begin, node.num_args + 2u * node.num_kwargs);
  node.args_begin = static_cast<uint32_t>(graph_.pool_.size());
  node.num_args = static_cast<uint32_t>(positional.size());
  node.num_kwargs = static_cast<uint16_t>(named.size());
  graph_.pool_.insert(graph_.pool_.end(), positional.begin(), positional.end());
  for (const NamedArg& kwarg : named) {
    graph_.pool_.push_back(Arg::String(kwarg.name));
    graph_.pool_.push_back(kwarg.value);
  }
  graph_.links_.resize(graph_.pool_.size());
  LinkArgs(id, node.args_begin, node.num_args + 2u * node.num_kwargs);
}

}  // namespace strata
