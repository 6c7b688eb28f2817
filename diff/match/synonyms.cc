#include "diff/match/synonyms.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "diff/graph/hash.h"

namespace strata {
namespace {

/// An operator of one side alone: its calls by what they say and by what surrounds them.
struct Lonely {
  std::vector<int32_t> calls;
  std::vector<uint64_t> forms, above, below, around;  ///< sorted
  size_t telling = 0;                                 ///< calls with literals

  void Sort() {
    for (std::vector<uint64_t>* hashes : {&forms, &above, &below, &around})
      std::ranges::sort(*hashes);
  }
};

using Operators = std::unordered_set<uint64_t>;

Operators OperatorsOf(const Labels& labels) {
  Operators ops;
  for (int32_t i = 0; i < labels.size(); ++i) {
    if (labels.kind[static_cast<size_t>(i)] == EntityKind::kCompute) {
      ops.insert(labels.op[static_cast<size_t>(i)]);
    }
  }
  return ops;
}

/// What stands above and below a call. Operators of one side alone count as one: what was replaced
/// next to it must not matter.
struct Context {
  uint64_t above, below;
  bool telling = false;  ///< some neighbour is not of one side alone
};

Context ContextOf(const Labels& labels, const Operators& others, int32_t i) {
  constexpr size_t kMaxEdges = 24;
  const uint64_t form = labels.form[static_cast<size_t>(i)];
  Context context{form, form};
  const auto op_of = [&](int32_t j) -> uint64_t {
    const auto index = static_cast<size_t>(j);
    const bool is_call = labels.kind[index] == EntityKind::kCompute;
    if (is_call && !others.contains(labels.op[index])) return 0;
    context.telling = true;
    return is_call ? labels.op[index] : labels.value[index];
  };
  // Operands with as many users as before: a node that was decomposed reads its operands twice.
  for (const Labels::Edge& operand : labels.operands(i)) {
    const uint64_t op = op_of(operand.entity);
    context.above = Mix(context.above, op + labels.users(operand.entity).size());
  }
  uint64_t users = 0;
  if (labels.users(i).size() <= kMaxEdges) {
    for (const Labels::Edge& user : labels.users(i))
      users += Mix(op_of(user.entity), static_cast<uint64_t>(user.slot));
  }
  context.below = Mix(form, users);
  return context;
}

/// By operator, in a stable order.
std::map<uint64_t, Lonely> LonelyOperators(const Labels& labels, const Operators& others) {
  std::map<uint64_t, Lonely> lonely;
  for (int32_t i = 0; i < labels.size(); ++i) {
    const auto index = static_cast<size_t>(i);
    if (labels.kind[index] != EntityKind::kCompute || others.contains(labels.op[index])) continue;
    Lonely& op = lonely[labels.op[index]];
    op.calls.push_back(i);
    op.forms.push_back(labels.form[index]);
    const Context context = ContextOf(labels, others, i);
    if (context.telling) {
      op.above.push_back(context.above);
      op.below.push_back(context.below);
      op.around.push_back(Mix(context.above, context.below));
    }
    op.telling += labels.telling[index] ? 1 : 0;
  }
  for (auto& [hash, op] : lonely)
    op.Sort();
  return lonely;
}

size_t Common(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    common += a[i] == b[j];
    const bool step_a = a[i] <= b[j], step_b = b[j] <= a[i];
    i += step_a;
    j += step_b;
  }
  return common;
}

/// How well two operators stand for each other; 0: they do not.
size_t Likeness(const Lonely& a, const Lonely& b) {
  const size_t fewer = std::min(a.calls.size(), b.calls.size());
  const size_t forms = Common(a.forms, b.forms);
  if (2 * forms < fewer) return 0;
  // A part of a decomposed operator may look like it from above, or from below, but not both.
  const size_t around = Common(a.around, b.around);
  if (4 * around >= fewer) return forms + around;
  const bool telling = 2 * a.telling >= a.calls.size() && 2 * b.telling >= b.calls.size();
  const size_t one_sided = std::min(Common(a.above, b.above), Common(a.below, b.below));
  return telling && 10 * one_sided >= fewer ? forms + around : 0;
}

}  // namespace

SynonymScope::SynonymScope(const Labels& before, Labels& after) : after_(after) {
  const Operators ops_before = OperatorsOf(before), ops_after = OperatorsOf(after);
  const std::map<uint64_t, Lonely> gone = LonelyOperators(before, ops_after);
  if (gone.empty()) return;
  const std::map<uint64_t, Lonely> come = LonelyOperators(after, ops_before);
  for (const auto& [new_op, news] : come) {
    uint64_t best_op = 0;
    size_t best = 0;
    for (const auto& [old_op, olds] : gone) {
      const size_t likeness = Likeness(news, olds);
      if (likeness <= best) continue;
      best = likeness;
      best_op = old_op;
    }
    if (best == 0) continue;
    for (int32_t i : news.calls) {
      renamed_.emplace_back(i, new_op);
      after.SetOp(i, best_op);
    }
  }
}

SynonymScope::~SynonymScope() {
  for (const auto& [i, op] : renamed_)
    after_.SetOp(i, op);
}

}  // namespace strata
