#include "diff/pattern/repetitions.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/flat_map.h"
#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/large_arrays.h"
#include "diff/match/fetch_ahead.h"

namespace strata {
namespace {

/// How many labels every part of a stretch has, over all parts: those that occur twice in each
/// count twice. May be any smaller number when it is below `wanted`: most candidates are
/// not repetitions, and their first parts show it.
int32_t CommonLabels(const std::vector<int32_t>& classes, const Repetition& stretch,
                     int32_t wanted) {
  struct Count {
    int32_t part = -1, here = 0;  // in the last part that has it
    int32_t fewest = 0;           // over the parts before that one
  };
  FlatMap<uint64_t, Count> counts;  // by class
  const auto num_parts = static_cast<int32_t>(stretch.begins.size());
  int32_t common = 0;  // that the parts so far have
  for (int32_t part = 0; part < num_parts; ++part) {
    common = 0;
    const auto at = static_cast<size_t>(part);
    const int32_t end = part + 1 < num_parts ? stretch.begins[at + 1] : stretch.end;
    for (int32_t i = stretch.begins[at]; i < end; ++i) {
      const auto label = static_cast<uint64_t>(classes[static_cast<size_t>(i)]);
      if (part == 0) {
        Count& count = *counts.Emplace(label, {0, 0, std::numeric_limits<int32_t>::max()}).first;
        ++count.here;
        ++common;
        continue;
      }
      Count* count = counts.Find(label);
      if (count == nullptr || count->part < part - 1) continue;  // some part has none
      if (count->part != part) *count = {part, 0, std::min(count->fewest, count->here)};
      common += ++count->here <= count->fewest ? 1 : 0;
    }
    if (static_cast<int64_t>(common) * num_parts < wanted) return 0;
  }
  return common * num_parts;
}

/// Moves the beginnings of all parts up as long as the same stands before each of them: an operator
/// that distinguishes the parts may be in their middle. `floor`: the end of the stretch before.
void MoveBegins(const std::vector<uint64_t>& labels, int32_t floor, Repetition& stretch) {
  const auto at = [&](int32_t i) { return labels[static_cast<size_t>(i)]; };
  std::vector<int32_t>& begins = stretch.begins;
  int32_t shortest = stretch.end - begins.back();
  for (size_t i = 1; i < begins.size(); ++i)
    shortest = std::min(shortest, begins[i] - begins[i - 1]);
  for (int32_t moved = 0; moved + 1 < shortest && begins[0] > floor; ++moved) {
    const uint64_t label = at(begins[0] - 1);
    const auto agree = std::ranges::count_if(begins, [&](int32_t i) { return at(i - 1) == label; });
    if (static_cast<size_t>(2 * agree) <= begins.size() || agree < 2) break;
    for (int32_t& begin : begins) {
      // A part with something more in it catches up.
      constexpr int32_t kCatchUp = 4;
      int32_t place = begin - 1;
      while (place > begin - kCatchUp && place > floor && at(place) != label)
        --place;
      if (at(place) == label) begin = place;
    }
  }
  const auto size = static_cast<int32_t>(labels.size());
  const size_t last = begins.size() - 1;
  stretch.end = std::min(2 * begins[last] - begins[last - 1], size);
}

/// For each place, how many labels before it occur more than once: no others can be common to
/// parts.
std::vector<int32_t> RepeatedBefore(const std::vector<int32_t>& classes,
                                    const std::vector<int32_t>& counts) {
  std::vector<int32_t> repeated;
  ReserveLarge(repeated, classes.size() + 1);
  repeated.push_back(0);
  for (const int32_t c : classes)
    repeated.push_back(repeated.back() + (counts[static_cast<size_t>(c)] > 1 ? 1 : 0));
  return repeated;
}

/// Stretches of as many parts as `anchors` have places, which are in order of the first one. A part
/// begins at the place of an anchor. A wrong anchor costs a look at its whole stretch: `budget`
/// labels may be looked at.
Repetitions StretchesOf(const std::vector<uint64_t>& labels, const std::vector<int32_t>& classes,
                        const std::vector<int32_t>& repeated_before,
                        const std::vector<const std::vector<int32_t>*>& anchors, size_t& budget) {
  Repetitions found;
  int32_t end = 0;
  for (const std::vector<int32_t>* anchor : anchors) {
    if (anchor->front() < end) continue;
    // The last part is as long as the one before it.
    const size_t last = anchor->size() - 1;
    const int32_t length = (*anchor)[last] - (*anchor)[last - 1];
    const auto size = static_cast<int32_t>(classes.size());
    Repetition stretch{*anchor, std::min((*anchor)[last] + length, size)};
    MoveBegins(labels, end, stretch);
    const int32_t covered = stretch.end - stretch.begins[0];
    if (budget < static_cast<size_t>(covered)) break;
    budget -= static_cast<size_t>(covered);
    constexpr int32_t kFewestLabels = 3;
    const int32_t wanted =
        std::max(kFewestLabels * static_cast<int32_t>(anchor->size()), (covered + 1) / 2);
    const int32_t repeated = repeated_before[static_cast<size_t>(stretch.end)] -
                             repeated_before[static_cast<size_t>(stretch.begins[0])];
    if (repeated < wanted) continue;
    const int32_t common = CommonLabels(classes, stretch, wanted);
    if (common < wanted) continue;
    found.stretches.push_back(stretch);
    found.explained += common;
    end = stretch.end;
  }
  return found;
}

/// One step further around: hashes with those of the operands, and what the users are.
std::vector<uint64_t> Widened(const Labels& labels, const std::vector<EntityId>& sequence,
                              const IdVector<EntityId, int32_t>& place_of,
                              const std::vector<uint64_t>& hashes) {
  constexpr size_t kManyEdges = 24;
  std::vector<uint64_t> wider;
  ReserveLarge(wider, hashes.size());
  for (size_t k = 0; k < sequence.size(); ++k) {
    constexpr auto kNear = static_cast<size_t>(kAhead);
    if (k + 2 * kNear < sequence.size()) {
      FetchAhead(labels.operands(sequence[k + 2 * kNear]),
                 [&](EntityId operand) { return &place_of[operand]; });
    }
    if (k + kNear < sequence.size()) {
      FetchAhead(labels.operands(sequence[k + kNear]),
                 [&](EntityId operand) { return hashes.data() + std::max(place_of[operand], 0); });
      FetchAhead(labels.users(sequence[k + kNear]), [&](EntityId user) {
        labels.Prefetch(user);
        return &labels.kind[user];
      });
    }
    uint64_t hash = hashes[k];
    for (const Labels::Edge& operand : labels.operands(sequence[k])) {
      const int32_t place = place_of[operand.entity];
      hash = Mix(hash, place >= 0 ? hashes[static_cast<size_t>(place)] : 0);
    }
    uint64_t users = 0;
    if (labels.users(sequence[k]).size() <= kManyEdges) {
      for (const Labels::Edge& user : labels.users(sequence[k]))
        users += Mix(labels.op[user.entity], static_cast<uint64_t>(user.slot));
    }
    wider.push_back(Mix(hash, users));
  }
  return wider;
}

/// Numbers for labels, in order of the first place.
std::vector<int32_t> ClassesOf(const std::vector<uint64_t>& labels) {
  FlatMap<uint64_t, int32_t> index;
  std::vector<int32_t> classes;
  ReserveLarge(classes, labels.size());
  for (uint64_t label : labels)
    classes.push_back(*index.Emplace(label, static_cast<int32_t>(index.size())).first);
  return classes;
}

/// How many labels occur more than once, or more.
int32_t MayRepeat(const std::vector<uint64_t>& labels) {
  RepeatFilter repeats(labels.size());
  for (const uint64_t label : labels)
    repeats.Add(label);
  return static_cast<int32_t>(
      std::ranges::count_if(labels, [&](uint64_t label) { return repeats.MayRepeat(label); }));
}

/// Whether `explained` labels in repetitions are enough to call these layers.
bool ExplainEnough(int32_t explained, const std::vector<uint64_t>& labels) {
  return static_cast<size_t>(explained) * 4 >= labels.size();
}

}  // namespace

Repetitions FindRepetitions(const std::vector<uint64_t>& labels) {
  const int32_t may_repeat = MayRepeat(labels);
  if (!ExplainEnough(may_repeat, labels)) return {{}, 0, may_repeat};
  const std::vector<int32_t> classes = ClassesOf(labels);
  std::vector<int32_t> counts;  // by class
  for (int32_t c : classes) {
    if (static_cast<size_t>(c) == counts.size()) counts.push_back(0);
    ++counts[static_cast<size_t>(c)];
  }
  const std::vector<int32_t> repeated_before = RepeatedBefore(classes, counts);
  if (!ExplainEnough(repeated_before.back(), labels)) return {{}, 0, repeated_before.back()};
  std::vector<std::vector<int32_t>> places(counts.size());  // of classes that are there twice
  for (size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > 1) places[c].reserve(static_cast<size_t>(counts[c]));
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto index = static_cast<size_t>(classes[i]);
    if (counts[index] > 1) places[index].push_back(static_cast<int32_t>(i));
  }
  std::map<size_t, std::vector<const std::vector<int32_t>*>> by_count;
  for (const std::vector<int32_t>& c : places) {
    if (c.size() > 1) by_count[c.size()].push_back(&c);
  }
  // What explains most labels, first.
  std::vector<std::vector<const std::vector<int32_t>*>> anchors;
  for (auto& [count, classes_of_count] : by_count) {
    // One operator that occurs often makes no layers.
    if (classes_of_count.size() > 1) anchors.push_back(std::move(classes_of_count));
  }
  std::ranges::stable_sort(anchors, std::greater<>(), [](const auto& of_count) {
    return of_count.size() * of_count[0]->size();
  });
  Repetitions best{{}, 0, repeated_before.back()};
  size_t budget = 16 * labels.size();
  for (const auto& of_count : anchors) {
    Repetitions found = StretchesOf(labels, classes, repeated_before, of_count, budget);
    if (found.explained > best.explained) {
      best.stretches = std::move(found.stretches);
      best.explained = found.explained;
    }
  }
  if (!ExplainEnough(best.explained, labels)) return {{}, 0, best.repeated};
  return best;
}

std::vector<Repetition> FindStretches(const Labels& labels, const std::vector<EntityId>& sequence) {
  IdVector<EntityId, int32_t> place_of;
  AssignLarge(place_of, labels.size(), -1);
  std::vector<uint64_t> types;
  ReserveLarge(types, sequence.size());
  for (size_t k = 0; k < sequence.size(); ++k) {
    place_of[sequence[k]] = static_cast<int32_t>(k);
    types.push_back(labels.type[sequence[k]]);
  }
  std::vector<uint64_t> hashes = types;
  std::vector<Repetition> best;
  int32_t most = 0;
  // Surroundings distinguish nodes of one operator, but those at the borders of layers differ in
  // the first and the last layer: what explains most by the nodes alone is right.
  for (int radius = 0; radius <= 2; ++radius) {
    if (radius > 0) hashes = Widened(labels, sequence, place_of, hashes);
    auto [stretches, unused, repeated] = FindRepetitions(hashes);
    // With more around them, fewer nodes are alike.
    if (!ExplainEnough(repeated, hashes)) break;
    if (stretches.empty()) continue;
    const std::vector<int32_t> classes = ClassesOf(types);
    int32_t floor = 0, explained = 0;
    for (Repetition& stretch : stretches) {
      MoveBegins(types, floor, stretch);
      floor = stretch.end;
      explained += CommonLabels(classes, stretch, 0);
    }
    if (explained > most) {
      most = explained;
      best = std::move(stretches);
    }
  }
  return best;
}

}  // namespace strata
