// The arguments of nodes and the lists of uses that belong to them.

#include <algorithm>
#include <utility>

#include "ir/rewriter.h"

namespace strata {

Arg Rewriter::MakeSpan(ArgKind kind, std::span<const Arg> elements) {
  const uint32_t begin = graph_.AddSlots(elements.size());
  std::ranges::copy(elements, graph_.pool_.Row(begin, elements.size()).begin());
  return Arg::Span(kind, begin, static_cast<uint32_t>(elements.size()));
}

void Rewriter::AddArgs(std::span<const Arg> args, std::span<const NamedArg> kwargs, Node& node) {
  const size_t count = args.size() + 2 * kwargs.size();
  node.args_begin = graph_.AddSlots(count);
  node.num_args = static_cast<uint32_t>(args.size());
  node.num_kwargs = static_cast<uint16_t>(kwargs.size());
  auto next = std::ranges::copy(args, graph_.pool_.Row(node.args_begin, count).begin()).out;
  for (const NamedArg& kwarg : kwargs) {
    *next++ = Arg::String(kwarg.name);
    *next++ = kwarg.value;
  }
}

void Rewriter::Link(NodeId user, uint32_t slot) {
  Value& v = graph_.mutable_value(graph_.pool_[slot].value());
  const auto place = static_cast<int32_t>(slot);
  graph_.links_[slot] = {user, v.last_use, -1};
  (v.last_use >= 0 ? graph_.links_[static_cast<uint32_t>(v.last_use)].next : v.first_use) = place;
  v.last_use = place;
  ++v.num_uses;
}

void Rewriter::Unlink(uint32_t slot) {
  Value& v = graph_.mutable_value(graph_.pool_[slot].value());
  const Graph::UseLink link = std::exchange(graph_.links_[slot], {});
  const auto link_at = [&](int32_t place) -> Graph::UseLink& {
    return graph_.links_[static_cast<uint32_t>(place)];
  };
  (link.prev >= 0 ? link_at(link.prev).next : v.first_use) = link.next;
  (link.next >= 0 ? link_at(link.next).prev : v.last_use) = link.prev;
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
  Node& node = graph_.mutable_node(id);
  UnlinkArgs(node.args_begin, node.num_args + 2u * node.num_kwargs);
  AddArgs(args, kwargs, node);
  LinkArgs(id, node.args_begin, node.num_args + 2u * node.num_kwargs);
}

}  // namespace strata
