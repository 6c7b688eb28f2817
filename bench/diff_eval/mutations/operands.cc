#include <algorithm>

#include "bench/diff_eval/mutations/mutator.h"

namespace strata::bench {
namespace {

/// How far back, or ahead, a value or a node is looked for.
constexpr int kReach = 200;

}  // namespace

/// An operand at the end comes or goes: a bias, a mask.
bool Mutator::Optional(NodeId id) {
  const std::vector<Arg> args(graph_.args(id).begin(), graph_.args(id).end());
  if (args.empty() || !args[0].is_value() || graph_.node(id).num_kwargs > 0) return false;
  if (Random(2) == 0) {
    const auto values = std::ranges::count_if(args, [](const Arg& arg) { return arg.is_value(); });
    if (values < 2 || !args.back().is_value()) return false;
    Begin();
    Mark(id);
    rewriter_.SetSlot(id, graph_.node(id).args_begin + static_cast<uint32_t>(args.size()) - 1,
                      Arg::None());
    return true;
  }
  NodeId source = graph_.node(id).prev;
  for (size_t skip = Random(20), steps = 0; steps < kReach && source.valid(); ++steps) {
    if (IsPlainCall(source) && TensorOf(graph_.result(source)) && skip-- == 0) break;
    source = graph_.node(source).prev;
  }
  if (!source.valid() || !IsPlainCall(source)) return false;
  std::vector<Arg> more;
  for (const Arg& arg : args) {
    if (arg.is_span()) return false;
    more.push_back(arg);
  }
  more.emplace_back(graph_.result(source));
  Begin();
  Mark(id);
  rewriter_.SetArgs(id, more, {});
  return true;
}

/// Two nodes of one label exchange what reads them.
bool Mutator::SwapEquals(NodeId id) {
  const auto alike = [&](NodeId other) {
    if (!IsPlainCall(other) || !IsFree(other) || graph_.op(other) != graph_.op(id) ||
        TypeIdOf(other) != TypeIdOf(id) || graph_.node(other).num_kwargs > 0) {
      return false;
    }
    return std::ranges::equal(graph_.args(id), graph_.args(other), [](const Arg& x, const Arg& y) {
      return x.kind() == y.kind() &&
             (x.is_value() || x.is_none() ||
              (x.kind() == ArgKind::kInt && x.as_int() == y.as_int()) ||
              (x.kind() == ArgKind::kFloat && x.as_float() == y.as_float()) ||
              (x.kind() == ArgKind::kBool && x.as_bool() == y.as_bool()));
    });
  };
  const std::vector<Use> uses = UsesOf(graph_.result(id));
  if (uses.empty() || graph_.node(id).num_kwargs > 0 || graph_.operands(id).empty()) return false;
  NodeId other = graph_.node(id).next;
  for (int steps = 0; steps < kReach && other.valid(); ++steps, other = graph_.node(other).next) {
    // Both must be there before the first of their users.
    if (std::ranges::any_of(uses, [&](Use use) { return use.user == other; })) return false;
    if (!alike(other) || graph_.operands(other) == graph_.operands(id)) continue;
    const std::vector<Use> others = UsesOf(graph_.result(other));
    if (others.empty()) continue;
    Begin();
    Mark(id);
    Mark(other);
    for (Use use : uses) {
      Mark(use.user);
      rewriter_.ReplaceUse(use, graph_.result(other));
    }
    for (Use use : others) {
      Mark(use.user);
      rewriter_.ReplaceUse(use, graph_.result(id));
    }
    return true;
  }
  return false;
}

}  // namespace strata::bench
