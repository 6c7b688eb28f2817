#include "diff/layers.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "diff/hash.h"
#include "diff/place.h"
#include "ir/module.h"

namespace strata {
namespace {

/// How many labels every part of a stretch has, over all parts: those that occur twice in each
/// count twice.
int32_t CommonLabels(const std::vector<int32_t>& classes, const Repetition& stretch) {
  struct Count {
    int32_t part = -1, here = 0;    // in the part that is being read
    int32_t parts = 0, fewest = 0;  // over the parts read before
  };
  std::unordered_map<int32_t, Count> counts;
  const auto finish = [](Count& count) {
    if (count.part < 0) return;
    count.fewest = count.parts == 0 ? count.here : std::min(count.fewest, count.here);
    ++count.parts;
  };
  const auto num_parts = static_cast<int32_t>(stretch.begins.size());
  for (int32_t part = 0; part < num_parts; ++part) {
    const auto at = static_cast<size_t>(part);
    const int32_t end = part + 1 < num_parts ? stretch.begins[at + 1] : stretch.end;
    for (int32_t i = stretch.begins[at]; i < end; ++i) {
      Count& count = counts[classes[static_cast<size_t>(i)]];
      if (count.part != part) {
        finish(count);
        count.part = part;
        count.here = 0;
      }
      ++count.here;
    }
  }
  int32_t common = 0;
  for (auto& [unused, count] : counts) {
    finish(count);
    if (count.parts == num_parts) common += count.fewest * num_parts;
  }
  return common;
}

/// Moves the beginnings of all parts up as long as the same stands before each of them: an operator
/// that tells the parts apart may be in their middle. `floor`: the end of the stretch before.
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

/// Stretches of as many parts as `anchors` have places, which are in order of the first one. A part
/// begins at the place of an anchor. A wrong anchor costs a look at its whole stretch: `budget`
/// labels may be looked at.
Repetitions StretchesOf(const std::vector<uint64_t>& labels, const std::vector<int32_t>& classes,
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
    const int32_t common = CommonLabels(classes, stretch);
    constexpr int32_t kFewestLabels = 3;
    if (common < kFewestLabels * static_cast<int32_t>(anchor->size()) || 2 * common < covered)
      continue;
    found.stretches.push_back(stretch);
    found.explained += common;
    end = stretch.end;
  }
  return found;
}

/// One step further around: hashes with those of the operands, and what the users are.
std::vector<uint64_t> Widened(const Labels& labels, const std::vector<uint64_t>& hashes,
                              int32_t begin) {
  constexpr size_t kManyEdges = 24;
  const int32_t end = begin + static_cast<int32_t>(hashes.size());
  std::vector<uint64_t> wider(hashes.size());
  for (int32_t i = begin; i < end; ++i) {
    uint64_t hash = hashes[static_cast<size_t>(i - begin)];
    for (const Labels::Edge& operand : labels.operands(i)) {
      const bool inside = operand.entity >= begin && operand.entity < end;
      hash = Mix(hash, inside ? hashes[static_cast<size_t>(operand.entity - begin)] : 0);
    }
    uint64_t users = 0;
    if (labels.users(i).size() <= kManyEdges) {
      for (const Labels::Edge& user : labels.users(i))
        users += Mix(labels.op[static_cast<size_t>(user.entity)], static_cast<uint64_t>(user.slot));
    }
    wider[static_cast<size_t>(i - begin)] = Mix(hash, users);
  }
  return wider;
}

/// Numbers for labels, in order of the first place.
std::vector<int32_t> ClassesOf(const std::vector<uint64_t>& labels) {
  std::unordered_map<uint64_t, int32_t> index;
  std::vector<int32_t> classes;
  classes.reserve(labels.size());
  for (uint64_t label : labels)
    classes.push_back(index.try_emplace(label, static_cast<int32_t>(index.size())).first->second);
  return classes;
}

/// Surroundings tell nodes of one operator apart, but those at the borders of layers differ in the
/// first and the last layer: what explains most by the nodes alone is right.
std::vector<Repetition> FindStretches(const Labels& labels, int32_t begin, int32_t end) {
  const std::vector<uint64_t> types(labels.type.begin() + begin, labels.type.begin() + end);
  const std::vector<int32_t> classes = ClassesOf(types);
  std::vector<uint64_t> hashes = types;
  std::vector<Repetition> best;
  int32_t most = 0;
  for (int radius = 0; radius <= 2; ++radius) {
    if (radius > 0) hashes = Widened(labels, hashes, begin);
    std::vector<Repetition> stretches = FindRepetitions(hashes).stretches;
    int32_t floor = 0, explained = 0;
    for (Repetition& stretch : stretches) {
      MoveBegins(types, floor, stretch);
      floor = stretch.end;
      explained += CommonLabels(classes, stretch);
    }
    if (explained > most) {
      most = explained;
      best = std::move(stretches);
    }
  }
  return best;
}

}  // namespace

Repetitions FindRepetitions(const std::vector<uint64_t>& labels) {
  const std::vector<int32_t> classes = ClassesOf(labels);
  std::vector<std::vector<int32_t>> places;  // by class
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto index = static_cast<size_t>(classes[i]);
    if (index == places.size()) places.emplace_back();
    places[index].push_back(static_cast<int32_t>(i));
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
  Repetitions best;
  size_t budget = 16 * labels.size();
  for (const auto& of_count : anchors) {
    Repetitions found = StretchesOf(labels, classes, of_count, budget);
    if (found.explained > best.explained) best = std::move(found);
  }
  if (static_cast<size_t>(best.explained) * 4 < labels.size()) return {};
  return best;
}

Layers::Layers(const Listing& listing, const Labels& labels)
    : paths_{""}, layers_{""}, place_of_(Index(listing.size()), 0), roles_(Index(listing.size())) {
  TakePaths(listing, labels);
  const bool has_layers =
      std::ranges::any_of(layers_, [](std::string_view layer) { return !layer.empty(); });
  if (!has_layers) FindByStructure(listing, labels);
}

void Layers::TakePaths(const Listing& listing, const Labels& labels) {
  const Module& module = listing.root().module();
  std::unordered_map<StrId, size_t> places;
  std::vector<uint64_t> shapes{0};
  for (EntityId id{0}; id.index < listing.size(); ++id.index) {
    const StrId path = listing.graph(id).node(listing[id].node).module;
    size_t place = 0;
    if (path.valid() && !module.str(path).empty()) {
      const auto [found, is_new] = places.try_emplace(path, paths_.size());
      if (is_new) {
        paths_.push_back(module.str(path));
        layers_.push_back(LayerOf(paths_.back()));
        shapes.push_back(HashText(PlaceShape(paths_.back())));
      }
      place = found->second;
    }
    place_of_[Index(id.index)] = place;
    roles_[Index(id.index)] = Mix(shapes[place], labels.op[Index(id.index)]);
  }
}

void Layers::FindByStructure(const Listing& listing, const Labels& labels) {
  const Listing::Scope& scope = listing.scopes()[0];
  // Inputs and constants stand in front of all layers.
  int32_t begin = scope.begin;
  while (begin < scope.end && labels.kind[Index(begin)] != EntityKind::kCompute)
    ++begin;
  const std::vector<Repetition> repetitions = FindStretches(labels, begin, scope.end);
  if (repetitions.empty()) return;
  by_structure_ = true;
  const size_t count = repetitions[0].begins.size();
  found_.reserve(count);
  paths_.assign(1, "");
  layers_.assign(1, "");
  for (size_t i = 0; i < count; ++i) {
    found_.push_back(fmt::format("layers.{}", i));
    paths_.push_back(found_.back());
    layers_.push_back(found_.back());
  }
  std::ranges::fill(place_of_, 0);
  for (size_t r = 0; r < repetitions.size(); ++r) {
    const Repetition& repetition = repetitions[r];
    const auto for_part = [&](size_t part, auto&& fn) {
      const int32_t last = part + 1 < count ? repetition.begins[part + 1] : repetition.end;
      for (int32_t i = begin + repetition.begins[part]; i < std::min(begin + last, scope.end); ++i)
        fn(i);
    };
    // Backward runs through the layers in reverse: a part belongs to the layer whose values it
    // reads.
    int32_t forward = 0, reverse = 0;
    for (size_t part = 0; r > 0 && part < count; ++part) {
      for_part(part, [&](int32_t i) {
        for (const Labels::Edge& operand : labels.operands(i)) {
          const size_t place = place_of_[Index(operand.entity)];
          forward += place == part + 1 ? 1 : 0;
          reverse += place == count - part ? 1 : 0;
        }
      });
    }
    for (size_t part = 0; part < count; ++part) {
      const size_t layer = reverse > forward ? count - 1 - part : part;
      for_part(part, [&](int32_t i) { place_of_[Index(i)] = layer + 1; });
    }
  }
  // The how many-th of its kind in its layer.
  std::unordered_map<uint64_t, uint64_t> seen;
  for (int32_t i = begin; i < scope.end; ++i) {
    const uint64_t label = labels.type[Index(i)];
    roles_[Index(i)] = Mix(label, seen[Mix(place_of_[Index(i)], label)]++);
  }
  for (int32_t i = scope.begin; i < scope.end; ++i) {
    if (labels.kind[Index(i)] == EntityKind::kCompute) continue;
    // A weight is where it is used.
    const auto users = labels.users(i);
    if (users.empty() || labels.kind[Index(users[0].entity)] != EntityKind::kCompute) continue;
    place_of_[Index(i)] = place_of_[Index(users[0].entity)];
    roles_[Index(i)] = Mix(roles_[Index(users[0].entity)], Index(users[0].slot));
  }
}

}  // namespace strata
