#include "diff/match/synonyms.h"

#include <algorithm>
#include <unordered_map>

#include "diff/graph/flat_map.h"
#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/parallel.h"

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
  uint64_t op = 0;
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

/// Which calls have an operator that `others` has nowhere, by entity.
std::vector<bool> LonelyCalls(const Labels& labels, const Labels& others) {
  FlatMap<bool> ops;
  for (int32_t i = 0; i < others.size(); ++i) {
    const auto index = static_cast<size_t>(i);
    if (others.kind[index] == EntityKind::kCompute) ops.Emplace(others.op[index], true);
  }
  std::vector<bool> lonely(static_cast<size_t>(labels.size()));
  for (size_t i = 0; i < lonely.size(); ++i)
    lonely[i] = labels.kind[i] == EntityKind::kCompute && !ops.Contains(labels.op[i]);
  return lonely;
}

/// What stands above and below a call. Operators of one side alone count as one: what was replaced
/// next to it must not matter.
struct Context {
  uint64_t above, below;
  bool telling = false;  ///< some neighbour is not of one side alone
};

Context ContextOf(const Labels& labels, const std::vector<bool>& lonely, int32_t i) {
  constexpr size_t kMaxEdges = 24;
  const uint64_t form = labels.form[static_cast<size_t>(i)];
  Context context{form, form};
  const auto op_of = [&](int32_t j) -> uint64_t {
    const auto index = static_cast<size_t>(j);
    if (lonely[index]) return 0;
    context.telling = true;
    const bool is_call = labels.kind[index] == EntityKind::kCompute;
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

/// The operators of `labels` that `others` has nowhere, in a stable order.
std::vector<Lonely> LonelyOperators(const Labels& labels, const Labels& others) {
  const std::vector<bool> is_lonely = LonelyCalls(labels, others);
  std::vector<Keyed> calls;
  for (int32_t i = 0; i < labels.size(); ++i) {
    const auto index = static_cast<size_t>(i);
    if (is_lonely[index]) calls.push_back({labels.op[index], i});
  }
  SortKeys(calls);
  std::vector<Lonely> lonely;
  for (const auto& [hash, i] : calls) {
    if (lonely.empty() || lonely.back().op != hash) lonely.emplace_back().op = hash;
    Lonely& op = lonely.back();
    op.calls.push_back(i);
    op.forms.Add(labels.form[static_cast<size_t>(i)]);
    const Context context = ContextOf(labels, is_lonely, i);
    if (context.telling) {
      op.above.Add(context.above);
      op.below.Add(context.below);
      op.around.Add(Mix(context.above, context.below));
    }
    op.telling += labels.telling[static_cast<size_t>(i)] ? 1 : 0;
  }
  for (Lonely& op : lonely)
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
/// same around it, or above it. A graph may have as many operators as calls, so not every one is
/// compared with all: of those with the same above it with the first kMost.
class Candidates {
 public:
  explicit Candidates(const std::vector<Lonely>& ops) {
    FlatMap<bool> known;
    for (const Lonely& op : ops) {
      // Of several that say the same the first is as good as the others.
      if (!known.Emplace(op.Signature(), true).second) continue;
      by_around_.Add(op, op.around);
      by_above_.Add(op, op.above);
    }
  }

  /// The operator most like `op`; of equally good ones that with the smallest hash. 0: there is
  /// none.
  uint64_t BestFor(const Lonely& op) {
    const auto [best, is_new] = best_.Emplace(op.Signature(), 0);
    if (is_new) *best = FindBest(op);
    return *best;
  }

  size_t comparisons() const { return comparisons_; }

 private:
  static constexpr size_t kMost = 64;

  /// Up to kMost operators by each element of one of their sets.
  class Index {
   public:
    void Add(const Lonely& op, const Multiset& set) {
      for (const auto& [element, unused] : set.counts()) {
        std::vector<const Lonely*>& ops = ops_[element];
        if (ops.size() < kMost) ops.push_back(&op);
      }
    }
    template <class Fn>
    void ForEach(const Multiset& set, Fn&& fn) const {
      for (const auto& [element, unused] : set.counts()) {
        const auto found = ops_.find(element);
        if (found != ops_.end()) std::ranges::for_each(found->second, fn);
      }
    }

   private:
    std::unordered_map<uint64_t, std::vector<const Lonely*>> ops_;
  };

  uint64_t FindBest(const Lonely& op) {
    uint64_t best = 0;
    size_t most = 0;
    const auto compare = [&](const Lonely* candidate) {
      ++comparisons_;
      const size_t likeness = Likeness(op, *candidate);
      const bool better = likeness > most || (likeness == most && candidate->op < best);
      if (likeness == 0 || !better) return;
      most = likeness;
      best = candidate->op;
    };
    by_around_.ForEach(op.around, compare);
    by_above_.ForEach(op.above, compare);
    return best;
  }

  Index by_around_, by_above_;
  FlatMap<uint64_t> best_;  // by signature
  size_t comparisons_ = 0;
};

/// The operators of one side by their names without library and overload; of several that which is
/// called most.
std::unordered_map<uint64_t, const Lonely*> ByName(const std::vector<Lonely>& ops,
                                                   const Labels& labels) {
  std::unordered_map<uint64_t, const Lonely*> by_name;
  for (const Lonely& op : ops) {
    const Lonely*& known = by_name[labels.name[static_cast<size_t>(op.calls[0])]];
    if (known == nullptr || op.calls.size() > known->calls.size()) known = &op;
  }
  by_name.erase(0);
  return by_name;
}

}  // namespace

SynonymScope::SynonymScope(const Labels& before, Labels& after) : after_(after) {
  std::vector<Lonely> gone, come;
  AtOnce(
      static_cast<size_t>(before.size()), [&] { gone = LonelyOperators(before, after); },
      [&] { come = LonelyOperators(after, before); });
  if (gone.empty() || come.empty()) return;
  Candidates candidates(gone);
  const auto by_name = ByName(gone, before);
  for (const Lonely& news : come) {
    const auto namesake = by_name.find(after.name[static_cast<size_t>(news.calls[0])]);
    const uint64_t old_op =
        namesake != by_name.end() ? namesake->second->op : candidates.BestFor(news);
    if (old_op == 0) continue;
    for (int32_t i : news.calls) {
      renamed_.emplace_back(i, news.op);
      after.SetOp(i, old_op);
    }
  }
  comparisons_ = candidates.comparisons();
}

SynonymScope::~SynonymScope() {
  for (const auto& [i, op] : renamed_)
    after_.SetOp(i, op);
}

}  // namespace strata
