#include "diff/match/synonyms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/flat_map.h"
#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/parallel.h"

namespace strata {
namespace {

/// A sorted set in which elements may be several times. Calls of one operator look alike: so each
/// element with its count.
using Multiset = std::span<const std::pair<uint64_t, uint32_t>>;

/// An operator of one side alone: its calls by what they say and by what surrounds them.
struct Lonely {
  uint64_t op = 0;
  std::span<const EntityId> calls;
  Multiset forms, above, below, around;
  size_t telling = 0;  ///< calls with literals

  /// Equal for operators that Likeness cannot distinguish.
  uint64_t Signature() const {
    uint64_t hash = Mix(calls.size(), telling);
    for (const Multiset* set : {&forms, &above, &below, &around}) {
      for (const auto& [element, count] : *set)
        hash = Mix(hash, element + count);
      hash = Mix(hash, set->size());
    }
    return hash;
  }
};

/// Which calls have an operator that `others` has nowhere.
IdVector<EntityId, bool> LonelyCalls(const Labels& labels, const Labels& others) {
  const auto is_call = [](const Labels& side, EntityId i) {
    return side.kind[i] == EntityKind::kCompute;
  };
  // A graph may have as many operators as calls. Most that are alone are seen to be: only the rest
  // is looked up.
  HashFilter theirs(others.size()), wanted(labels.size());
  for (EntityId i : others.ids()) {
    if (is_call(others, i)) theirs.Add(others.op[i]);
  }
  for (EntityId i : labels.ids()) {
    if (is_call(labels, i) && theirs.MayHave(labels.op[i])) wanted.Add(labels.op[i]);
  }
  FlatMap<uint64_t, bool> ops;
  for (EntityId i : others.ids()) {
    if (is_call(others, i) && wanted.MayHave(others.op[i])) ops.Emplace(others.op[i], true);
  }
  IdVector<EntityId, bool> lonely(labels.size());
  for (EntityId i : labels.ids()) {
    lonely[i] =
        is_call(labels, i) && (!theirs.MayHave(labels.op[i]) || !ops.Contains(labels.op[i]));
  }
  return lonely;
}

/// What stands above and below a call. Operators of one side alone count as one: what was replaced
/// next to it must not matter.
struct Context {
  uint64_t above, below;
  bool telling = false;  ///< some neighbour is not of one side alone
};

Context ContextOf(const Labels& labels, const IdVector<EntityId, bool>& lonely, EntityId i) {
  constexpr size_t kMaxEdges = 24;
  const uint64_t form = labels.form(i);
  Context context{form, form};
  const auto op_of = [&](EntityId j) -> uint64_t {
    if (lonely[j]) return 0;
    context.telling = true;
    const bool is_call = labels.kind[j] == EntityKind::kCompute;
    return is_call ? labels.op[j] : labels.value[j];
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
class LonelyOperators {
 public:
  LonelyOperators(const Labels& labels, const Labels& others) {
    const IdVector<EntityId, bool> is_lonely = LonelyCalls(labels, others);
    // In the order of the graph first: there neighbours are near.
    const auto count = static_cast<size_t>(std::ranges::count(is_lonely, true));
    std::vector<Call> facts;
    std::vector<KeyedBy<int32_t>> by_op;
    facts.reserve(count);
    by_op.reserve(count);
    for (EntityId i : labels.ids()) {
      if (!is_lonely[i]) continue;
      by_op.push_back({labels.op[i], static_cast<int32_t>(facts.size())});
      const Context context = ContextOf(labels, is_lonely, i);
      facts.push_back(
          {i, labels.telling[i], context.telling, labels.form(i), context.above, context.below});
    }
    SortKeys(by_op);
    const auto fact_of = [&](size_t call) -> const Call& {
      return facts[static_cast<size_t>(by_op[call].entity)];
    };
    size_t num_ops = 1;
    for (size_t k = 1; k < by_op.size(); ++k)
      num_ops += by_op[k].key != by_op[k - 1].key ? 1 : 0;
    ops_.reserve(num_ops);
    calls_.reserve(by_op.size());
    elements_.reserve(4 * by_op.size());  // what is not used takes no pages
    std::vector<uint64_t> forms, above, below, around;
    for (size_t begin = 0, end = 0; begin < by_op.size(); begin = end) {
      Stored& op = ops_.emplace_back();
      op.op = by_op[begin].key;
      op.calls = static_cast<uint32_t>(begin);
      for (; end < by_op.size() && by_op[end].key == op.op; ++end) {
        // The facts of one operator are in any part of memory: prefetch later ones.
        constexpr size_t kAhead = 16;
        if (end + kAhead < by_op.size()) __builtin_prefetch(&fact_of(end + kAhead));
        const Call& call = fact_of(end);
        calls_.push_back(call.entity);
        forms.push_back(call.form);
        if (call.has_context) {
          above.push_back(call.above);
          below.push_back(call.below);
          around.push_back(Mix(call.above, call.below));
        }
        op.telling += call.telling ? 1 : 0;
      }
      op.num_calls = static_cast<uint32_t>(end - begin);
      op.sets[0] = static_cast<uint32_t>(elements_.size());
      size_t set = 0;
      for (std::vector<uint64_t>* hashes : {&forms, &above, &below, &around}) {
        AddSet(*hashes);
        op.sets[++set] = static_cast<uint32_t>(elements_.size());
      }
    }
  }

  size_t size() const { return ops_.size(); }
  Lonely operator[](size_t i) const {
    const Stored& op = ops_[i];
    const auto set = [&](size_t k) {
      return std::span(elements_).subspan(op.sets[k], op.sets[k + 1] - op.sets[k]);
    };
    return {op.op,     std::span(calls_).subspan(op.calls, op.num_calls),
            set(0),    set(1),
            set(2),    set(3),
            op.telling};
  }

 private:
  struct Call {
    EntityId entity;
    bool telling, has_context;
    uint64_t form, above, below;
  };

  /// An operator by places in the vectors below: a graph may have one per call.
  struct Stored {
    uint64_t op = 0;
    uint32_t calls = 0, num_calls = 0, telling = 0;
    std::array<uint32_t, 5> sets{};  // where forms, above, below and around begin, and the end
  };

  /// Empties `hashes`.
  void AddSet(std::vector<uint64_t>& hashes) {
    std::ranges::sort(hashes);
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (i == 0 || hashes[i] != hashes[i - 1]) elements_.emplace_back(hashes[i], 0);
      ++elements_.back().second;
    }
    hashes.clear();
  }

  std::vector<EntityId> calls_;  // by operator
  std::vector<std::pair<uint64_t, uint32_t>> elements_;
  std::vector<Stored> ops_;
};

size_t Common(Multiset a, Multiset b) {
  size_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
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

/// Likeness is never more.
size_t MostLikeness(const Lonely& a, const Lonely& b) {
  return 2 * std::min(a.calls.size(), b.calls.size());
}

/// Finds for operators of one side those of the other that they stand for: of those of which a call
/// has the same around it, or above it. A graph may have as many operators as calls, so not every
/// one is compared with all: of those with the same above it with the first kMost.
class SynonymFinder {
 public:
  SynonymFinder(const LonelyOperators& gone, const LonelyOperators& come)
      : gone_(gone), come_(come), best_(come.size()) {
    // Of several that say the same the first is as good as the others.
    std::vector<uint32_t> first_gone, first_come;
    AtOnce(
        gone.size(), [&] { first_gone = FirstAlike(gone); },
        [&] { first_come = FirstAlike(come); });
    const auto is_gone = [&](size_t i) { return first_gone[i] == i; };
    const auto is_come = [&](size_t j) { return first_come[j] == j && !IsFound(j); };
    CompareBy(&Lonely::around, is_gone, is_come);
    // Those that are left have nothing around a call in common.
    knows_around_ = true;
    CompareBy(&Lonely::above, is_gone, is_come);
    for (size_t i = 0; i < come.size(); ++i)
      best_[i] = best_[first_come[i]];
  }

  /// The operator most like the `i`th of those that have come; of equally good ones that with the
  /// smallest hash. 0: there is none.
  uint64_t BestFor(size_t i) const { return best_[i].op; }
  size_t comparisons() const { return comparisons_; }

 private:
  static constexpr size_t kMost = 64;

  struct Best {
    uint64_t op = 0;
    size_t likeness = 0;
    bool compared_all = true;  ///< that have the same around a call
  };

  /// For each the first that says the same.
  static std::vector<uint32_t> FirstAlike(const LonelyOperators& ops) {
    std::vector<uint64_t> signatures(ops.size());
    RepeatFilter repeats(ops.size());
    for (size_t i = 0; i < ops.size(); ++i)
      repeats.Add(signatures[i] = ops[i].Signature());
    FlatMap<uint64_t, uint32_t> known;
    std::vector<uint32_t> first(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto own = static_cast<uint32_t>(i);
      first[i] = repeats.MayRepeat(signatures[i]) ? *known.Emplace(signatures[i], own).first : own;
    }
    return first;
  }

  /// Whether an operator of those that have come needs no look at what is above its calls.
  bool IsFound(size_t j) const {
    return knows_around_ && best_[j].compared_all && best_[j].likeness > come_[j].calls.size();
  }

  /// Compares operators that have an element of a set in common, of those that `is_gone` and
  /// `is_come` choose.
  template <class IsGone, class IsCome>
  void CompareBy(Multiset Lonely::* set, IsGone&& is_gone, IsCome&& is_come) {
    const auto keys = [&](const LonelyOperators& ops, auto&& is_chosen) {
      std::vector<KeyedBy<int32_t>> result;
      for (size_t i = 0; i < ops.size(); ++i) {
        if (!is_chosen(i)) continue;
        const Lonely op = ops[i];
        for (const auto& [element, unused] : op.*set)
          result.push_back({element, static_cast<int32_t>(i)});
      }
      return result;
    };
    std::vector<KeyedBy<int32_t>> come = keys(come_, is_come);
    if (come.empty()) return;
    std::vector<KeyedBy<int32_t>> gone = keys(gone_, is_gone);
    ForEachCommonKey(gone, come, [&](std::span<const int32_t> olds, std::span<const int32_t> news) {
      const bool all = olds.size() <= kMost;
      for (const int32_t place : news) {
        const auto j = static_cast<size_t>(place);
        if (IsFound(j)) continue;
        best_[j].compared_all &= all;
        for (const int32_t i : all ? olds : olds.first(kMost))
          Compare(gone_[static_cast<size_t>(i)], j);
      }
    });
  }

  void Compare(const Lonely& old, size_t j) {
    Best& best = best_[j];
    const auto is_better = [&](size_t likeness) {
      return likeness > best.likeness ||
             (likeness == best.likeness && likeness > 0 && old.op < best.op);
    };
    if (!is_better(MostLikeness(come_[j], old))) return;
    ++comparisons_;
    const size_t likeness = Likeness(come_[j], old);
    if (is_better(likeness)) {
      best.op = old.op;
      best.likeness = likeness;
    }
  }

  const LonelyOperators& gone_;
  const LonelyOperators& come_;
  std::vector<Best> best_;  // by place in come_
  bool knows_around_ = false;
  size_t comparisons_ = 0;
};

/// The operators of one side by their names without library and overload; of several that which is
/// called most. Some have no such name.
FlatMap<uint64_t, uint32_t> ByName(const LonelyOperators& ops, const Labels& labels) {
  FlatMap<uint64_t, uint32_t> by_name(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const uint64_t name = labels.name[ops[i].calls[0]];
    if (name == 0) continue;
    uint32_t& known = *by_name.Emplace(name, static_cast<uint32_t>(i)).first;
    if (ops[i].calls.size() > ops[known].calls.size()) known = static_cast<uint32_t>(i);
  }
  return by_name;
}

}  // namespace

SynonymScope::SynonymScope(const Labels& before, Labels& after) : after_(after) {
  std::optional<LonelyOperators> gone, come;
  AtOnce(before.size(), [&] { gone.emplace(before, after); }, [&] { come.emplace(after, before); });
  const SynonymFinder finder(*gone, *come);
  comparisons_ = finder.comparisons();
  const FlatMap<uint64_t, uint32_t> by_name = ByName(*gone, before);
  std::vector<std::pair<EntityId, uint64_t>> calls;  // with the operators that they get
  for (size_t j = 0; j < come->size(); ++j) {
    const Lonely news = (*come)[j];
    const uint32_t* namesake = by_name.Find(after.name[news.calls[0]]);
    const uint64_t old_op = namesake != nullptr ? (*gone)[*namesake].op : finder.BestFor(j);
    if (old_op == 0) continue;
    for (const EntityId call : news.calls)
      calls.emplace_back(call, old_op);
  }
  // In the order of the labels in memory.
  std::ranges::sort(calls);
  IdVector<LabelId, bool> is_renamed(after.num_labels());
  for (const auto& [call, op] : calls) {
    const LabelId label = after.label(call);
    if (is_renamed[label]) continue;
    is_renamed[label] = true;
    renamed_.emplace_back(label, after.op_of(label));
    after.SetOp(label, op);
  }
}

SynonymScope::~SynonymScope() {
  for (const auto& [label, op] : renamed_)
    after_.SetOp(label, op);
}

}  // namespace strata
