#include "diff/match/synonyms.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "diff/graph/hash.h"

namespace strata {
namespace {

/// A sorted set in which elements may be several times. Calls of one operator look alike: so each
/// element with its count.
class Multiset {
 public:
  void Add(uint64_t element) { counts_.emplace_back(element, 1); }
  void Sort() {
    std::ranges::sort(counts_);
    size_t last = 0;
    for (size_t i = 1; i < counts_.size(); ++i) {
      if (counts_[i].first == counts_[last].first) {
        ++counts_[last].second;
      } else {
        counts_[++last] = counts_[i];
      }
    }
    if (!counts_.empty()) counts_.resize(last + 1);
    counts_.shrink_to_fit();
  }
  const std::vector<std::pair<uint64_t, uint32_t>>& counts() const { return counts_; }

 private:
  std::vector<std::pair<uint64_t, uint32_t>> counts_;
};

/// An operator of one side alone: its calls by what they say and by what surrounds them.
struct Lonely {
  std::vector<int32_t> calls;
  Multiset forms, above, below, around;
  size_t telling = 0;  ///< calls with literals

  void Sort() {
    for (Multiset* hashes : {&forms, &above, &below, &around})
      hashes->Sort();
  }
  /// Equal for operators that Likeness cannot tell apart.
  uint64_t Signature() const {
    uint64_t hash = Mix(calls.size(), telling);
    for (const Multiset* hashes : {&forms, &above, &below, &around}) {
      for (const auto& [element, count] : hashes->counts())
        hash = Mix(hash, element + count);
      hash = Mix(hash, hashes->counts().size());
    }
    return hash;
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
    op.forms.Add(labels.form[index]);
    const Context context = ContextOf(labels, others, i);
    if (context.telling) {
      op.above.Add(context.above);
      op.below.Add(context.below);
      op.around.Add(Mix(context.above, context.below));
    }
    op.telling += labels.telling[index] ? 1 : 0;
  }
  for (auto& [hash, op] : lonely)
    op.Sort();
  return lonely;
}

size_t Common(const Multiset& a, const Multiset& b) {
  size_t common = 0;
  for (auto i = a.counts().begin(), j = b.counts().begin();
       i != a.counts().end() && j != b.counts().end();) {
    if (i->first == j->first) common += std::min(i->second, j->second);
    const bool step_a = i->first <= j->first, step_b = j->first <= i->first;
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

/// The operators of one side that may stand for one of the other: those of which a call has the
/// same above it. A graph may have as many operators as calls, so not every one is compared with
/// all.
class Candidates {
 public:
  explicit Candidates(const std::map<uint64_t, Lonely>& ops) {
    std::unordered_set<uint64_t> known;
    for (const auto& entry : ops) {
      // Of several that say the same the first is as good as the others.
      if (!known.insert(entry.second.Signature()).second) continue;
      for (const auto& [above, unused] : entry.second.above.counts())
        by_above_[above].push_back(&entry);
    }
  }

  /// The operator most like `op`; of equally good ones that with the smallest hash. 0: there is
  /// none.
  uint64_t BestFor(const Lonely& op) {
    const auto [best, is_new] = best_.try_emplace(op.Signature(), 0);
    if (is_new) best->second = FindBest(op);
    return best->second;
  }

 private:
  using Entry = std::pair<const uint64_t, Lonely>;

  uint64_t FindBest(const Lonely& op) const {
    uint64_t best = 0;
    size_t most = 0;
    for (const auto& [above, unused] : op.above.counts()) {
      const auto found = by_above_.find(above);
      if (found == by_above_.end()) continue;
      for (const Entry* entry : found->second) {
        const size_t likeness = Likeness(op, entry->second);
        const bool better = likeness > most || (likeness == most && entry->first < best);
        if (likeness == 0 || !better) continue;
        most = likeness;
        best = entry->first;
      }
    }
    return best;
  }

  std::unordered_map<uint64_t, std::vector<const Entry*>> by_above_;
  std::unordered_map<uint64_t, uint64_t> best_;  // by signature
};

}  // namespace

SynonymScope::SynonymScope(const Labels& before, Labels& after) : after_(after) {
  const Operators ops_before = OperatorsOf(before), ops_after = OperatorsOf(after);
  const std::map<uint64_t, Lonely> gone = LonelyOperators(before, ops_after);
  if (gone.empty()) return;
  const std::map<uint64_t, Lonely> come = LonelyOperators(after, ops_before);
  Candidates candidates(gone);
  for (const auto& [new_op, news] : come) {
    const uint64_t old_op = candidates.BestFor(news);
    if (old_op == 0) continue;
    for (int32_t i : news.calls) {
      renamed_.emplace_back(i, new_op);
      after.SetOp(i, old_op);
    }
  }
}

SynonymScope::~SynonymScope() {
  for (const auto& [i, op] : renamed_)
    after_.SetOp(i, op);
}

}  // namespace strata
