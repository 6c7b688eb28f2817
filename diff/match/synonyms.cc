#include "diff/match/synonyms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/flat_map.h"
#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/large_arrays.h"
#include "diff/graph/parallel.h"
#include "diff/match/fetch_ahead.h"

namespace strata {
namespace {

/// What calls are compared by.
enum Feature : uint8_t { kForm, kAbove, kBelow, kAround };
constexpr size_t kNumFeatures = 4;

/// A hash, and how often it is there. Calls of one operator look alike.
using Counted = std::pair<uint64_t, uint32_t>;
/// A sorted set in which elements may be several times.
using Multiset = std::span<const Counted>;

/// An operator of one side alone: its calls by what they say and by what surrounds them.
struct Lonely {
  size_t num_calls = 0;
  size_t telling = 0;                               ///< calls with literals
  std::array<Multiset, kNumFeatures> of_several{};  ///< if there are several calls
  std::array<Counted, kNumFeatures> of_one{};       ///< else; 0 times: it is not there

  Multiset set(size_t feature) const {
    if (num_calls > 1) return of_several[feature];
    return Multiset(&of_one[feature], of_one[feature].second);
  }

  /// Equal for operators that Likeness cannot distinguish.
  uint64_t Signature() const {
    uint64_t hash = Mix(num_calls, telling);
    for (size_t feature = 0; feature < kNumFeatures; ++feature) {
      for (const auto& [element, count] : set(feature))
        hash = Mix(hash, element + count);
      hash = Mix(hash, set(feature).size());
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

/// Of the users of a node with more of them nothing is said.
constexpr size_t kMaxEdges = 24;

/// What stands above and below a call. Operators of one side alone count as one: what was replaced
/// next to it must not matter.
struct Context {
  uint64_t above, below;
  bool telling = false;  ///< some neighbour is not of one side alone
};

Context ContextOf(const Labels& labels, const IdVector<EntityId, bool>& lonely, EntityId i) {
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

/// The operators of `labels` that `others` has nowhere, ascending by hash.
///
/// A graph may have one per call. So nothing is kept of an operator that is called once: what is
/// asked about it is found from the call, in the order of the graph, where neighbours are near.
class LonelyOperators {
 public:
  /// REQUIRES: `labels` outlives it.
  LonelyOperators(const Labels& labels, const Labels& others)
      : labels_(labels), is_lonely_(LonelyCalls(labels, others)) {
    FindOperators();
    DescribeThoseOfSeveral();
  }

  size_t size() const { return ops_.size(); }
  uint64_t hash(size_t op) const { return ops_[op].hash; }
  size_t num_calls(size_t op) const { return is_single_[op] ? 1 : SetsOf(op).num_calls; }
  bool is_single(size_t op) const { return is_single_[op]; }
  bool IsFirst(size_t op, EntityId call) const {
    return is_single_[op] || SetsOf(op).first_call == call;
  }
  /// In the order of the graph.
  EntityId first_call(size_t op) const {
    const uint32_t only_call = ops_[op].call_or_sets;
    return is_single_[op] ? EntityId{static_cast<int32_t>(only_call)} : SetsOf(op).first_call;
  }

  Lonely operator[](size_t op) const {
    if (is_single_[op]) return OfCall(first_call(op));
    const Sets& sets = SetsOf(op);
    Lonely lonely{.num_calls = sets.num_calls, .telling = sets.telling};
    for (size_t k = 0; k < kNumFeatures; ++k) {
      lonely.of_several[k] =
          std::span(elements_).subspan(sets.begin[k], sets.begin[k + 1] - sets.begin[k]);
    }
    return lonely;
  }

  /// Calls `fn(op, call)` for each call, in the order of the graph.
  template <class Fn>
  void ForEachCall(Fn&& fn) const {
    for (size_t k = 0; k < calls_.size(); ++k) {
      if (const size_t later = k + static_cast<size_t>(kAhead); later < calls_.size()) {
        const auto operands = labels_.operands(calls_[later]);
        for (const Labels::Edge& operand : operands.first(std::min(operands.size(), kMaxEdges)))
          labels_.Prefetch(operand.entity);
      }
      fn(static_cast<size_t>(op_of_call_[k]), calls_[k]);
    }
  }

  /// Calls `fn(op, lonely)` for each operator that `is_wanted(op)`: those of one call in the order
  /// of the graph, then the others.
  template <class IsWanted, class Fn>
  void ForEach(IsWanted&& is_wanted, Fn&& fn) const {
    ForEachCall([&](size_t op, EntityId call) {
      if (is_single_[op] && is_wanted(op)) fn(op, OfCall(call));
    });
    for (size_t op = 0; op < size(); ++op) {
      if (!is_single_[op] && is_wanted(op)) fn(op, (*this)[op]);
    }
  }

 private:
  struct Operator {
    uint64_t hash = 0;
    uint32_t call_or_sets = 0;  ///< the only call; or where in sets_, if there are several
  };
  /// Of an operator that is called several times.
  struct Sets {
    EntityId first_call;
    uint32_t num_calls = 0, telling = 0;
    std::array<uint32_t, kNumFeatures + 1> begin{};  ///< in elements_, and the end
  };
  /// One of several calls.
  struct Call {
    std::array<uint64_t, kNumFeatures> hashes;
    bool telling, has_context;
  };

  const Sets& SetsOf(size_t op) const { return sets_[ops_[op].call_or_sets]; }

  void FindOperators() {
    const auto num_calls = static_cast<size_t>(std::ranges::count(is_lonely_, true));
    std::vector<KeyedBy<int32_t>> by_op;
    ReserveLarge(by_op, num_calls);
    ReserveLarge(calls_, num_calls);
    for (EntityId i : labels_.ids()) {
      if (!is_lonely_[i]) continue;
      by_op.push_back({labels_.op[i], static_cast<int32_t>(calls_.size())});
      calls_.push_back(i);
    }
    SortKeys(by_op);
    size_t num_ops = 0;
    for (size_t k = 0; k < by_op.size(); ++k)
      num_ops += k == 0 || by_op[k].key != by_op[k - 1].key ? 1 : 0;
    ReserveLarge(ops_, num_ops);
    AssignLarge(op_of_call_, num_calls, 0);
    is_single_.reserve(num_ops);
    for (size_t begin = 0, end = 0; begin < by_op.size(); begin = end) {
      const auto op = static_cast<int32_t>(ops_.size());
      for (; end < by_op.size() && by_op[end].key == by_op[begin].key; ++end)
        op_of_call_[static_cast<size_t>(by_op[end].entity)] = op;
      const bool is_single = end - begin == 1;
      const EntityId first = calls_[static_cast<size_t>(by_op[begin].entity)];
      const auto next_sets = static_cast<uint32_t>(sets_.size());
      ops_.push_back(
          {by_op[begin].key, is_single ? static_cast<uint32_t>(first.index) : next_sets});
      is_single_.push_back(is_single);
      if (!is_single) sets_.push_back({first, static_cast<uint32_t>(end - begin)});
    }
  }

  void DescribeThoseOfSeveral() {
    if (sets_.empty()) return;
    // In the order of the graph first.
    std::vector<uint32_t> next;  // of the calls of each
    next.reserve(sets_.size());
    uint32_t num_calls = 0;
    for (const Sets& sets : sets_) {
      next.push_back(num_calls);
      num_calls += sets.num_calls;
    }
    std::vector<Call> calls(num_calls);
    ForEachCall([&](size_t op, EntityId i) {
      if (!is_single_[op]) calls[next[ops_[op].call_or_sets]++] = CallOf(i);
    });
    elements_.reserve(kNumFeatures * calls.size());  // what is not used takes no pages
    std::vector<uint64_t> hashes;
    auto first = calls.begin();
    for (Sets& sets : sets_) {
      const std::span<const Call> own(first, sets.num_calls);
      first += sets.num_calls;
      sets.telling = static_cast<uint32_t>(std::ranges::count(own, true, &Call::telling));
      for (size_t feature = 0; feature < kNumFeatures; ++feature) {
        hashes.clear();
        for (const Call& call : own) {
          if (feature == kForm || call.has_context) hashes.push_back(call.hashes[feature]);
        }
        sets.begin[feature] = static_cast<uint32_t>(elements_.size());
        AddSet(hashes);
      }
      sets.begin[kNumFeatures] = static_cast<uint32_t>(elements_.size());
    }
  }

  Call CallOf(EntityId i) const {
    const Context context = ContextOf(labels_, is_lonely_, i);
    return {{labels_.form(i), context.above, context.below, Mix(context.above, context.below)},
            labels_.telling[i],
            context.telling};
  }

  Lonely OfCall(EntityId i) const {
    const Call call = CallOf(i);
    Lonely lonely{.num_calls = 1, .telling = call.telling ? 1u : 0u};
    for (size_t feature = 0; feature < kNumFeatures; ++feature) {
      const bool is_there = feature == kForm || call.has_context;
      lonely.of_one[feature] = {call.hashes[feature], is_there ? 1 : 0};
    }
    return lonely;
  }

  void AddSet(std::vector<uint64_t>& hashes) {
    std::ranges::sort(hashes);
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (i == 0 || hashes[i] != hashes[i - 1]) elements_.emplace_back(hashes[i], 0);
      ++elements_.back().second;
    }
  }

  const Labels& labels_;
  IdVector<EntityId, bool> is_lonely_;
  std::vector<EntityId> calls_;  // in the order of the graph
  std::vector<int32_t> op_of_call_;
  std::vector<Operator> ops_;
  std::vector<bool> is_single_;  // by operator
  std::vector<Sets> sets_;
  std::vector<Counted> elements_;
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
  const auto common = [&](Feature feature) { return Common(a.set(feature), b.set(feature)); };
  const size_t fewer = std::min(a.num_calls, b.num_calls);
  const size_t forms = common(kForm);
  if (2 * forms < fewer) return 0;
  // A part of a decomposed operator may look like it from above, or from below, but not both.
  const size_t around = common(kAround);
  if (4 * around >= fewer) return forms + around;
  const bool telling = 2 * a.telling >= a.num_calls && 2 * b.telling >= b.num_calls;
  const size_t one_sided = std::min(common(kAbove), common(kBelow));
  return telling && 10 * one_sided >= fewer ? forms + around : 0;
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
    CompareBy(kAround, is_gone, is_come);
    // Those that are left have nothing around a call in common.
    knows_around_ = true;
    CompareBy(kAbove, is_gone, is_come);
    for (size_t i = 0; i < come.size(); ++i)
      best_[i] = best_[first_come[i]];
  }

  /// The operator most like the `i`th of those that have come; of equally good ones the first. -1:
  /// there is none.
  int32_t BestFor(size_t i) const { return best_[i].op; }
  size_t comparisons() const { return comparisons_; }

 private:
  static constexpr size_t kMost = 64;

  struct Best {
    int32_t op = -1;  ///< by place in gone_
    uint32_t likeness = 0;
    bool compared_all = true;  ///< that have the same around a call
  };

  /// For each the first that says the same.
  static std::vector<uint32_t> FirstAlike(const LonelyOperators& ops) {
    auto signatures = MakeLarge<std::vector<uint64_t>>(ops.size());
    RepeatFilter repeats(ops.size());
    ops.ForEach(
        [](size_t) { return true; },
        [&](size_t op, const Lonely& lonely) { repeats.Add(signatures[op] = lonely.Signature()); });
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
    return knows_around_ && best_[j].compared_all && best_[j].likeness > come_.num_calls(j);
  }

  /// Compares operators that have an element of a set in common, of those that `is_gone` and
  /// `is_come` choose.
  template <class IsGone, class IsCome>
  void CompareBy(Feature feature, IsGone&& is_gone, IsCome&& is_come) {
    const auto keys = [&](const LonelyOperators& ops, auto&& is_chosen) {
      std::vector<KeyedBy<int32_t>> result;
      ops.ForEach(is_chosen, [&](size_t op, const Lonely& lonely) {
        for (const auto& [element, unused] : lonely.set(feature))
          result.push_back({element, static_cast<int32_t>(op)});
      });
      return result;
    };
    std::vector<KeyedBy<int32_t>> come = keys(come_, is_come);
    if (come.empty()) return;
    std::vector<KeyedBy<int32_t>> gone = keys(gone_, is_gone);
    ForEachCommonKey(gone, come, [&](std::span<const int32_t> olds, std::span<const int32_t> news) {
      const bool all = olds.size() <= kMost;
      if (!all) olds = olds.first(kMost);
      looked_up_.clear();
      for (const int32_t place : news) {
        const auto j = static_cast<size_t>(place);
        if (IsFound(j)) continue;
        best_[j].compared_all &= all;
        Compare(feature, olds, j);
      }
    });
  }

  /// Compares one that has come with those of `olds`, which have an element of `feature` in common
  /// with it.
  void Compare(Feature feature, std::span<const int32_t> olds, size_t j) {
    Best& best = best_[j];
    std::optional<Lonely> own;
    for (size_t k = 0; k < olds.size(); ++k) {
      const auto i = static_cast<size_t>(olds[k]);
      const auto is_better = [&](size_t likeness) {
        return likeness > best.likeness ||
               (likeness == best.likeness && likeness > 0 && olds[k] < best.op);
      };
      const size_t fewer = std::min(come_.num_calls(j), gone_.num_calls(i));
      if (!is_better(2 * fewer)) continue;  // Likeness is never more.
      ++comparisons_;
      size_t likeness = 2;
      // What is around a call has its form: two calls that have that in common have all.
      const bool are_equal = feature == kAround && come_.is_single(j) && gone_.is_single(i);
      if (!are_equal) {
        if (!own) own = come_[j];
        likeness = Likeness(*own, Old(olds, k));
      }
      if (!is_better(likeness)) continue;
      best.op = olds[k];
      best.likeness = static_cast<uint32_t>(likeness);
    }
  }

  /// The `k`th of `olds`, looked up once for all that are compared with these.
  const Lonely& Old(std::span<const int32_t> olds, size_t k) {
    if (looked_up_.empty()) looked_up_.resize(olds.size());
    if (!looked_up_[k]) looked_up_[k] = gone_[static_cast<size_t>(olds[k])];
    return *looked_up_[k];
  }

  const LonelyOperators& gone_;
  const LonelyOperators& come_;
  std::vector<Best> best_;  // by place in come_
  bool knows_around_ = false;
  size_t comparisons_ = 0;
  std::vector<std::optional<Lonely>> looked_up_;
};

/// The operators of `gone` by their names without library and overload, as far as `come` has one
/// of that name; of several that which is called most, or the first. Some have no such name.
FlatMap<uint64_t, uint32_t> ByName(const LonelyOperators& gone, const Labels& before,
                                   const LonelyOperators& come, const Labels& after) {
  HashFilter wanted(come.size());
  come.ForEachCall([&](size_t op, EntityId call) {
    if (come.IsFirst(op, call)) wanted.Add(after.name[call]);
  });
  FlatMap<uint64_t, uint32_t> by_name;
  gone.ForEachCall([&](size_t op, EntityId call) {
    if (!gone.IsFirst(op, call)) return;
    const uint64_t name = before.name[call];
    if (name == 0 || !wanted.MayHave(name)) return;
    const auto own = static_cast<uint32_t>(op);
    uint32_t& known = *by_name.Emplace(name, own).first;
    const size_t calls = gone.num_calls(op), calls_of_known = gone.num_calls(known);
    if (calls > calls_of_known || (calls == calls_of_known && own < known)) known = own;
  });
  return by_name;
}

}  // namespace

SynonymScope::SynonymScope(const Labels& before, Labels& after) : after_(after) {
  std::optional<LonelyOperators> gone, come;
  AtOnce(before.size(), [&] { gone.emplace(before, after); }, [&] { come.emplace(after, before); });
  const SynonymFinder finder(*gone, *come);
  comparisons_ = finder.comparisons();
  const FlatMap<uint64_t, uint32_t> by_name = ByName(*gone, before, *come, after);
  if (come->size() > 0) AssignLarge(own_ops_, after.num_labels(), uint64_t{0});
  come->ForEachCall([&](size_t op, EntityId call) {
    const LabelId label = after.label(call);
    if (own_ops_[label] != 0) return;
    const EntityId first = come->is_single(op) ? call : come->first_call(op);
    const uint32_t* namesake = by_name.Find(after.name[first]);
    const int32_t old = namesake != nullptr ? static_cast<int32_t>(*namesake) : finder.BestFor(op);
    if (old < 0) return;
    own_ops_[label] = after.op_of(label);
    after.SetOp(label, gone->hash(static_cast<size_t>(old)));
  });
}

SynonymScope::~SynonymScope() {
  for (const LabelId label : IdsOf(own_ops_)) {
    if (own_ops_[label] != 0) after_.SetOp(label, own_ops_[label]);
  }
}

}  // namespace strata
