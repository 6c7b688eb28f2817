// The arguments of nodes and the lists of uses that belong to them.

#include <algorithm>

#include "ir/rewriter.h"

namespace strata {

Arg Rewriter::MakeSpan(ArgKind kind, std::span<const Arg> elements) {
  const uint32_t begin = graph_.pool_.AddRow(elements.size());
  std::ranges::copy(elements, graph_.pool_.Row(begin, elements.size()).begin());
  return Arg::Span(kind, begin, static_cast<uint32_t>(elements.size()));
}

void Rewriter::AddArgs(std::span<const Arg> args, std::span<const NamedArg> kwargs, Node& node) {
  const size_t count = args.size() + 2 * kwargs.size();
  node.args_begin = graph_.pool_.AddRow(count);
  node.num_args = static_cast<uint32_t>(args.size());
  node.num_kwargs = static_cast<uint16_t>(kwargs.size());
  auto next = std::ranges::copy(args, graph_.pool_.Row(node.args_begin, count).begin()).out;
  for (const NamedArg& kwarg : kwargs) {
    *next++ = Arg::String(kwarg.name);
    *next++ = kwarg.value;
  }
}

void Rewriter::Link(NodeId user, uint32_t slot) {
  Arg& arg = graph_.pool_[slot];
  Value& v = graph_.mutable_value(arg.value());
  const auto place = static_cast<int32_t>(slot);
  arg.SetUser(user);
  if (v.first_use < 0) {
    arg.use_ = {place, -1};
    v.first_use = place;
  } else {
    int32_t& last = LinkAt(v.first_use).prev;
    arg.use_ = {last, -1};
    LinkAt(last).next = place;
    last = place;
  }
  ++v.num_uses;
}

void Rewriter::Unlink(uint32_t slot) {
  const Arg& arg = graph_.pool_[slot];
  Value& v = graph_.mutable_value(arg.value());
  const auto [prev, next] = arg.use_;
  const bool is_first = v.first_use == static_cast<int32_t>(slot);
  (is_first ? v.first_use : LinkAt(prev).next) = next;
  // Behind the last stands the first, which knows it.
  if (const int32_t follower = next >= 0 ? next : v.first_use; follower >= 0)
    LinkAt(follower).prev = prev;
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
    ReplaceUse({graph_.pool_[slot].user(), slot}, new_value);
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
