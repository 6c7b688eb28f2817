#include "diff/pattern/layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "diff/graph/hash.h"
#include "diff/graph/large_arrays.h"
#include "diff/graph/module_path.h"
#include "diff/pattern/repetitions.h"
#include "ir/module.h"
#include "ir/stated_path.h"

namespace strata {
namespace {

constexpr std::string_view kUnnamed = "place.";

}  // namespace

bool IsUnnamedPlace(std::string_view path) {
  return path.starts_with(kUnnamed);
}

Layers::Layers(const Listing& listing, const Labels& labels)
    : paths_{""},
      layers_{""},
      roles_(MakeLarge<IdVector<EntityId, uint64_t>>(listing.ids().size())),
      is_parameter_(listing.ids().size(), false) {
  AssignLarge(place_of_, listing.ids().size(), 0u);
  TakePaths(listing, labels);
  by_structure_ =
      std::ranges::all_of(layers_, [](std::string_view layer) { return layer.empty(); });
  if (by_structure_) {
    paths_.resize(1);
    layers_.resize(1);
    std::ranges::fill(place_of_, 0);
    TakeParameters(listing, labels);
  }
  std::vector<EntityId> sequence;
  ReserveLarge(sequence, listing.scopes()[Listing::kProgram].ids.size());
  for (EntityId id : listing.scopes()[Listing::kProgram].ids) {
    if (place_of_[id] == 0 && labels.kind[id] == EntityKind::kCompute) sequence.push_back(id);
  }
  FindByStructure(labels, sequence);
  if (by_structure_) PlaceReaders(listing, labels);
  PlaceInputs(listing, labels);
}

void Layers::TakePaths(const Listing& listing, const Labels& labels) {
  const Module& module = listing.root().module();
  std::unordered_map<StrId, uint32_t> places;
  std::vector<uint64_t> shapes{0};
  for (EntityId id : listing.ids()) {
    const StrId path = listing.graph(id).node(listing[id].node).module;
    uint32_t place = 0;
    if (path.valid() && !module.str(path).empty()) {
      const auto [found, is_new] = places.try_emplace(path, static_cast<uint32_t>(paths_.size()));
      if (is_new) {
        paths_.push_back(module.str(path));
        layers_.push_back(LayerOf(paths_.back()));
        shapes.push_back(HashText(ModulePathShape(paths_.back())));
      }
      place = found->second;
    }
    place_of_[id] = place;
    roles_[id] = Mix(shapes[place], labels.op[id]);
  }
}

uint32_t Layers::PlaceOfPath(std::string_view path) {
  if (const auto known = by_path_.find(path); known != by_path_.end()) return known->second;
  paths_.emplace_back(found_.emplace_back(path));
  layers_.push_back(LayerOf(paths_.back()));
  const auto place = static_cast<uint32_t>(paths_.size() - 1);
  by_path_.emplace(paths_.back(), place);
  return place;
}

void Layers::TakeParameters(const Listing& listing, const Labels& labels) {
  for (EntityId id : listing.ids()) {
    const EntityKind kind = labels.kind[id];
    if (kind != EntityKind::kInput && kind != EntityKind::kConstant) continue;
    const std::string path = StatedPath(listing.graph(id), listing[id].node);
    const std::string_view module = ModuleOfPath(path);
    if (module.empty()) continue;
    place_of_[id] = PlaceOfPath(module);
    is_parameter_[id] = true;
    roles_[id] = Mix(HashText(ModulePathShape(path)), labels.op[id]);
    has_named_layers_ |= !layers_[place_of_[id]].empty();
  }
}

void Layers::PlaceReaders(const Listing& listing, const Labels& labels) {
  // What is computed of parameters alone is as good as a parameter: `t(weight)`.
  IdVector<EntityId, bool> is_parameter = is_parameter_;
  for (EntityId id : listing.ids()) {
    if (labels.kind[id] != EntityKind::kCompute) continue;
    EntityId parameter;
    bool is_one = true, only_parameters = !labels.operands(id).empty();
    for (const Labels::Edge& operand : labels.operands(id)) {
      if (!is_parameter[operand.entity]) {
        only_parameters = false;
        continue;
      }
      is_one &= !parameter.valid() || place_of_[parameter] == place_of_[operand.entity];
      if (!parameter.valid()) parameter = operand.entity;
    }
    is_parameter[id] = only_parameters && is_one;
    // A stretch that repeats may begin in the middle of a layer.
    if (!parameter.valid() || !is_one) continue;
    place_of_[id] = place_of_[parameter];
    roles_[id] = Mix(roles_[parameter], labels.op[id]);
  }
}

void Layers::NameNewLayers(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    paths_.emplace_back(found_.emplace_back(fmt::format("{}{}", kUnnamed, i)));
    layers_.push_back(paths_.back());
  }
}

std::vector<size_t> Layers::LayersReadBy(const Labels& labels,
                                         const std::vector<std::vector<EntityId>>& parts) const {
  constexpr size_t kNowhere = 0;
  std::vector<size_t> chosen;
  std::set<std::string_view> taken;
  for (const std::vector<EntityId>& part : parts) {
    std::map<std::string_view, std::pair<int32_t, size_t>> votes;  // count, a place in the layer
    for (EntityId i : part) {
      for (const Labels::Edge& operand : labels.operands(i)) {
        const size_t place = place_of_[operand.entity];
        if (layers_[place].empty()) continue;
        auto& [count, where] = votes[layers_[place]];
        ++count;
        where = place;
      }
    }
    chosen.push_back(kNowhere);
    if (votes.empty()) continue;
    const auto most =
        std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second.first; });
    // Parts of a layer whose name is known are where it is; else they are a layer each.
    if (!taken.insert(most->first).second && !has_named_layers_) return {};
    chosen.back() = most->second.second;
  }
  if (taken.size() < parts.size()) FillInOrder(chosen);
  if (has_named_layers_ && !taken.empty()) return chosen;
  return std::ranges::find(chosen, kNowhere) == chosen.end() ? chosen : std::vector<size_t>();
}

void Layers::FillInOrder(std::vector<size_t>& chosen) const {
  std::vector<size_t> order;  // a place of each layer
  std::map<std::string_view, int64_t> index_of;
  for (size_t place = 1; place < layers_.size(); ++place) {
    if (layers_[place].empty()) continue;
    if (index_of.try_emplace(layers_[place], order.size()).second) order.push_back(place);
  }
  const auto count = static_cast<int64_t>(chosen.size());
  std::vector<int64_t> starts, steps;
  for (const int64_t step : {1, -1}) {
    std::set<int64_t> fits;  // layers of the first part, as the parts that are placed have it
    for (int64_t k = 0; k < count; ++k) {
      const size_t place = chosen[static_cast<size_t>(k)];
      if (place != 0) fits.insert(index_of.at(layers_[place]) - step * k);
    }
    if (fits.size() != 1) continue;
    const int64_t last = *fits.begin() + step * (count - 1);
    if (std::min(*fits.begin(), last) < 0 ||
        std::max(*fits.begin(), last) >= static_cast<int64_t>(order.size()))
      continue;
    starts.push_back(*fits.begin());
    steps.push_back(step);
  }
  if (starts.size() != 1) return;
  for (int64_t k = 0; k < count; ++k) {
    size_t& place = chosen[static_cast<size_t>(k)];
    if (place == 0) place = order[static_cast<size_t>(starts[0] + steps[0] * k)];
  }
}

void Layers::FindByStructure(const Labels& labels, const std::vector<EntityId>& sequence) {
  std::map<std::string_view, size_t> place_of_layer;
  for (const Repetition& stretch : FindStretches(labels, sequence)) {
    std::vector<std::vector<EntityId>> parts;
    for (size_t k = 0; k < stretch.begins.size(); ++k) {
      const bool last = k + 1 == stretch.begins.size();
      const auto begin = sequence.begin() + stretch.begins[k];
      parts.emplace_back(begin, sequence.begin() + (last ? stretch.end : stretch.begins[k + 1]));
    }
    const std::vector<size_t> layers = LayersReadBy(labels, parts);
    // Other layers of a program with known modules get no generated names.
    const bool has_places = has_named_layers_ || found_.size() > by_path_.size();
    if (layers.empty() && (!by_structure_ || has_places)) continue;
    const size_t first_new = paths_.size();
    if (layers.empty()) NameNewLayers(parts.size());
    for (size_t k = 0; k < parts.size(); ++k) {
      size_t place = first_new + k;
      if (!layers.empty() && layers[k] == 0) continue;
      if (!layers.empty()) {
        const auto [known, is_new] = place_of_layer.try_emplace(layers_[layers[k]], paths_.size());
        if (is_new) {
          paths_.push_back(layers_[layers[k]]);
          layers_.push_back(layers_[layers[k]]);
        }
        place = known->second;
      }
      for (EntityId i : parts[k])
        place_of_[i] = static_cast<uint32_t>(place);
    }
  }
  // Its index among the nodes of its kind in its layer.
  FlatMap<uint64_t, uint64_t> seen;
  std::vector<uint64_t> hash_of_layer;  // by place
  for (std::string_view layer : layers_)
    hash_of_layer.push_back(HashText(layer));
  for (EntityId i : sequence) {
    if (place_of_[i] == 0) continue;
    const uint64_t label = labels.type[i];
    const uint64_t layer = hash_of_layer[place_of_[i]];
    roles_[i] = Mix(label, (*seen.Emplace(Mix(layer, label), 0).first)++);
  }
}

void Layers::PlaceInputs(const Listing& listing, const Labels& labels) {
  for (EntityId i : listing.ids()) {
    const auto users = labels.users(i);
    const bool is_input =
        labels.kind[i] == EntityKind::kInput || labels.kind[i] == EntityKind::kConstant;
    if (!is_input || place_of_[i] != 0 || users.empty()) continue;
    const EntityId user = users[0].entity;
    if (labels.kind[user] != EntityKind::kCompute) continue;
    place_of_[i] = place_of_[user];
    roles_[i] = Mix(roles_[user], static_cast<uint64_t>(users[0].slot));
  }
}

}  // namespace strata
