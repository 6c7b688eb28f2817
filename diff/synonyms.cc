#include "diff/synonyms.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "diff/hash.h"

namespace strata {
namespace {

/// An operator of one side alone: its calls by what they say and by what surrounds them.
struct Lonely {
  std::vector<int32_t> calls;
  std::vector<uint64_t> forms, contexts;  ///< sorted
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

/// The call with its operands and users. Operators of one side alone count as one: what was
/// replaced next to it must not matter.
uint64_t ContextOf(const Labels& labels, const Operators& others, int32_t i) {
  constexpr size_t kMaxEdges = 24;
  const auto op_of = [&](int32_t j) {
    const auto index = static_cast<size_t>(j);
    if (labels.kind[index] != EntityKind::kCompute) return labels.value[index];
    return others.contains(labels.op[index]) ? labels.op[index] : 0;
  };
  uint64_t hash = labels.form[static_cast<size_t>(i)];
  // Operands with as many users as before: a node that was decomposed reads its operands twice.
  for (const Labels::Edge& operand : labels.operands(i))
    hash = Mix(hash, op_of(operand.entity) + labels.users(operand.entity).size());
  uint64_t users = 0;
  if (labels.users(i).size() <= kMaxEdges) {
    for (const Labels::Edge& user : labels.users(i))
      users += Mix(op_of(user.entity), static_cast<uint64_t>(user.slot));
  }
  return Mix(hash, users);
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
    op.contexts.push_back(ContextOf(labels, others, i));
  }
  for (auto& [hash, op] : lonely) {
    std::ranges::sort(op.forms);
    std::ranges::sort(op.contexts);
  }
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

}  // namespace

SynonymScope::SynonymScope(const Labels& before, Labels& after) : after_(after) {
  const Operators ops_before = OperatorsOf(before), ops_after = OperatorsOf(after);
  const std::map<uint64_t, Lonely> gone = LonelyOperators(before, ops_after);
  if (gone.empty()) return;
  const std::map<uint64_t, Lonely> come = LonelyOperators(after, ops_before);
  for (const auto& [new_op, news] : come) {
    const Lonely* best = nullptr;
    uint64_t best_op = 0;
    size_t best_common = 0;
    for (const auto& [old_op, olds] : gone) {
      const size_t fewer = std::min(news.calls.size(), olds.calls.size());
      const size_t contexts = Common(news.contexts, olds.contexts);
      if (2 * Common(news.forms, olds.forms) < fewer || 4 * contexts < fewer) continue;
      if (contexts <= best_common) continue;
      best = &olds;
      best_op = old_op;
      best_common = contexts;
    }
    if (best == nullptr) continue;
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
