#include "diff/pattern/patterns.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/flat_map.h"
#include "diff/graph/hash.h"
#include "diff/graph/keyed.h"
#include "diff/graph/module_path.h"
#include "diff/pattern/hunks.h"
#include "diff/pattern/layers.h"
#include "diff/pattern/places_text.h"
#include "diff/pattern/symbolic_sizes.h"
#include "diff/pattern/titles.h"
#include "ir/module.h"

namespace strata {
namespace {

using LayerSet = std::set<std::string_view>;

/// Hunks at one role, or at roles that go together.
struct Cluster {
  std::vector<HunkId> hunks;
  LayerSet layers;
  std::map<uint64_t, LayerSet> by_role;
};

/// Makes patterns of hunks.
class PatternFinder {
 public:
  PatternFinder(const Layers& layers, const AllHunkFacts& facts, SymbolicSizes symbolic,
                GraphDiff& diff)
      : layers_(layers),
        facts_(facts),
        symbolic_(std::move(symbolic)),
        diff_(diff),
        titles_(diff),
        way_(facts.hunks().size(), 0) {}

  void Run() {
    if (symbolic_.hunks.size() < 2) symbolic_.hunks.clear();
    std::vector<KeyedBy<HunkId>> by_key;
    for (HunkId hunk : facts_.hunks()) {
      if (!std::ranges::binary_search(symbolic_.hunks, hunk))
        by_key.push_back({facts_[hunk].key, hunk});
    }
    SortKeys(by_key);
    std::vector<Cluster> clusters;
    std::vector<HunkId> hunks;
    for (size_t begin = 0, end = 0; begin < by_key.size(); begin = end) {
      hunks.clear();
      for (; end < by_key.size() && by_key[end].key == by_key[begin].key; ++end)
        hunks.push_back(by_key[end].entity);
      if (hunks.size() == 1) {
        // Like no other. Where it is, is said as for several.
        const auto is_in_layer = [&](size_t way) {
          return !facts_.place(hunks[0], way).layer.empty();
        };
        way_[hunks[0]] = !is_in_layer(0) && is_in_layer(1) ? 1 : 0;
        continue;
      }
      for (Cluster& cluster : ClustersOf(hunks)) {
        if (cluster.hunks.size() > 1) clusters.push_back(std::move(cluster));
      }
    }
    if (!clusters.empty()) {
      FindRoles(clusters);
      NoteHunksOfLayers(clusters);
    }
    for (const Cluster& cluster : clusters)
      diff_.patterns.Add(PatternOf(cluster));
    if (!symbolic_.hunks.empty()) diff_.patterns.Add(SymbolicPattern());
    std::ranges::sort(diff_.patterns, [](const Pattern& a, const Pattern& b) {
      if (a.deviations.empty() != b.deviations.empty()) return b.deviations.empty();
      return a.nodes != b.nodes ? a.nodes > b.nodes : a.hunks[0] < b.hunks[0];
    });
    for (PatternId pattern : IdsOf(diff_.patterns)) {
      for (HunkId hunk : diff_.patterns[pattern].hunks)
        diff_.hunks[hunk].pattern = pattern;
    }
  }

 private:
  /// Changed, inserted and deleted ones.
  int32_t NumNodes(HunkId id) const {
    const Hunk& hunk = diff_.hunks[id];
    return static_cast<int32_t>(hunk.pairs.size() + hunk.inserted.size() + hunk.deleted.size());
  }
  const HunkPlace& PlaceOf(HunkId hunk) const { return facts_.place(hunk, way_[hunk]); }

  /// Hunks of one key, apart by where in a layer they are. Of the two ways to say where, that which
  /// makes fewer clusters of them, in more layers.
  std::vector<Cluster> ClustersOf(const std::vector<HunkId>& hunks) {
    const auto set_way = [&](uint8_t way) {
      for (HunkId hunk : hunks)
        way_[hunk] = way;
    };
    std::vector<Cluster> up = ClustersByRole(hunks);
    const bool one_way = std::ranges::all_of(hunks, [&](HunkId hunk) {
      const HunkPlace &above = facts_.place(hunk, 0), &below = facts_.place(hunk, 1);
      return above.layer == below.layer && above.role == below.role;
    });
    if (one_way) return up;
    set_way(1);
    std::vector<Cluster> down = ClustersByRole(hunks);
    const auto layers = [](const std::vector<Cluster>& clusters) {
      size_t count = 0;
      for (const Cluster& cluster : clusters)
        count += cluster.layers.size();
      return count;
    };
    const bool better =
        down.size() != up.size() ? down.size() < up.size() : layers(down) > layers(up);
    if (better) return down;
    set_way(0);
    return up;
  }

  /// Roles that change in the same layers belong together: a pass that does one thing everywhere.
  std::vector<Cluster> ClustersByRole(const std::vector<HunkId>& hunks) const {
    struct Role {
      uint64_t role = 0;
      LayerSet layers;
      std::vector<HunkId> hunks;
    };
    std::vector<Role> roles;
    std::unordered_map<uint64_t, size_t> index;
    std::vector<HunkId> nowhere;
    for (HunkId hunk : hunks) {
      const HunkPlace& place = PlaceOf(hunk);
      if (place.layer.empty()) {
        nowhere.push_back(hunk);
        continue;
      }
      const auto [found, is_new] = index.try_emplace(place.role, roles.size());
      if (is_new) roles.push_back({place.role, {}, {}});
      roles[found->second].layers.insert(place.layer);
      roles[found->second].hunks.push_back(hunk);
    }
    std::ranges::stable_sort(roles, std::greater<>(),
                             [](const Role& role) { return role.layers.size(); });
    std::vector<Cluster> clusters;
    for (Role& role : roles) {
      Cluster* home = nullptr;
      // More than a few ways to spread over layers do not count.
      constexpr size_t kMaxClusters = 16;
      for (Cluster& cluster : clusters) {
        const auto common = std::ranges::count_if(
            role.layers, [&](std::string_view layer) { return cluster.layers.contains(layer); });
        if (2 * static_cast<size_t>(common) >= role.layers.size() ||
            clusters.size() >= kMaxClusters) {
          home = &cluster;
          break;
        }
      }
      if (home == nullptr) home = &clusters.emplace_back();
      home->layers.insert(role.layers.begin(), role.layers.end());
      home->by_role.emplace(role.role, std::move(role.layers));
      home->hunks.insert(home->hunks.end(), role.hunks.begin(), role.hunks.end());
    }
    if (clusters.empty()) clusters.emplace_back();
    clusters[0].hunks.insert(clusters[0].hunks.end(), nowhere.begin(), nowhere.end());
    for (Cluster& cluster : clusters)
      std::ranges::sort(cluster.hunks);
    return clusters;
  }

  /// Which layers of the before graph have the roles of the clusters.
  void FindRoles(const std::vector<Cluster>& clusters) {
    FlatMap<uint64_t, bool> wanted;
    for (const Cluster& cluster : clusters) {
      for (const auto& [role, layers] : cluster.by_role)
        wanted.Emplace(role, true);
    }
    // An inserted node with a module path has the path's shape as its role.
    std::vector<bool> is_known(layers_.num_places(), false);
    for (EntityId i : diff_.before.ids()) {
      const std::string_view layer = layers_.layer(i);
      if (layer.empty()) continue;
      if (wanted.Contains(layers_.role(i))) layers_with_role_[layers_.role(i)].insert(layer);
      if (is_known[layers_.place(i)]) continue;
      is_known[layers_.place(i)] = true;
      // A path stands for the modules around it too.
      for (std::string_view path = layers_.path(i); path.size() >= layer.size();
           path = path.substr(0, path.rfind('.'))) {
        const uint64_t role = HashText(ModulePathShape(path));
        if (wanted.Contains(role)) layers_with_role_[role].insert(layer);
        if (path.size() == layer.size()) break;
      }
    }
  }

  void NoteHunksOfLayers(const std::vector<Cluster>& clusters) {
    cluster_size_.assign(facts_.hunks().size(), 1);
    for (const Cluster& cluster : clusters) {
      for (HunkId hunk : cluster.hunks)
        cluster_size_[hunk] = cluster.hunks.size();
    }
    for (HunkId hunk : facts_.hunks()) {
      const HunkPlace& place = PlaceOf(hunk);
      if (!place.layer.empty()) hunks_of_layer_[place.layer].push_back(hunk);
      NoteReach(hunk);
    }
  }

  /// A hunk has one place, or none, and may reach into others.
  void NoteReach(HunkId hunk) {
    const auto note = [&](EntityId before) {
      const std::string_view layer = layers_.layer(before);
      if (!layer.empty()) reaching_into_[layer].insert({layers_.role(before), hunk});
    };
    for (EntityId id : diff_.hunks[hunk].deleted)
      note(id);
    for (PairId pair : diff_.hunks[hunk].pairs)
      note(diff_.pairs[pair].before);
  }

  Pattern PatternOf(const Cluster& cluster) {
    Pattern pattern;
    pattern.hunks = cluster.hunks;
    pattern.title = TitleOf(cluster);
    std::vector<std::string> paths;
    std::set<std::string> shapes;
    size_t elsewhere = 0;
    for (HunkId hunk : cluster.hunks) {
      pattern.nodes += NumNodes(hunk);
      const std::string_view path = PlaceOf(hunk).path;
      if (path.empty()) {
        ++elsewhere;
        continue;
      }
      paths.emplace_back(path);
      shapes.insert(ModulePathShape(path));
    }
    // Many places in each layer: the layers say enough.
    constexpr size_t kManyShapes = 3;
    const bool whole_layers = shapes.size() > kManyShapes;
    if (whole_layers) {
      paths.assign(cluster.layers.begin(), cluster.layers.end());
      for (HunkId hunk : cluster.hunks) {
        if (PlaceOf(hunk).layer.empty() && !PlaceOf(hunk).path.empty())
          paths.emplace_back(PlaceOf(hunk).path);
      }
    }
    AddDeviations(cluster, whole_layers, pattern);
    for (const Deviation& deviation : pattern.deviations) {
      pattern.except.push_back(deviation.where);
      const bool is_inside = std::ranges::any_of(cluster.layers, [&](std::string_view layer) {
        return LayerOf(deviation.where) == layer && deviation.where.size() > layer.size();
      });
      if (!whole_layers || !is_inside) paths.push_back(deviation.where);
    }
    pattern.where = PlacesText(paths, elsewhere);
    return pattern;
  }

  Pattern SymbolicPattern() const {
    Pattern pattern;
    pattern.title = symbolic_.title;
    pattern.hunks = symbolic_.hunks;
    std::set<std::string> layers;
    for (HunkId hunk : symbolic_.hunks) {
      pattern.nodes += NumNodes(hunk);
      const std::string_view layer = PlaceOf(hunk).layer;
      if (!layer.empty()) layers.emplace(layer);
    }
    pattern.where = PlacesText({layers.begin(), layers.end()}, 0);
    return pattern;
  }

  /// With values if all hunks agree on them.
  std::string TitleOf(const Cluster& cluster) const {
    const auto title = [&](HunkId hunk, bool values) {
      return titles_.OfHunk(diff_.hunks[hunk], values);
    };
    // Consumers may differ from place to place: the most frequent title is the pattern's.
    std::map<std::string, int32_t> titles;
    for (HunkId hunk : cluster.hunks)
      ++titles[title(hunk, true)];
    const auto frequent = [&] {
      return std::ranges::max_element(titles, {}, [](const auto& entry) { return entry.second; })
          ->first;
    };
    std::string with_values = frequent();
    if (titles.size() == 1) return with_values;
    const auto most = static_cast<size_t>(titles.at(with_values));
    if (2 * most > cluster.hunks.size()) return with_values;
    titles.clear();
    for (HunkId hunk : cluster.hunks)
      ++titles[title(hunk, false)];
    return frequent();
  }

  /// Layers that have the place of the pattern and lack the change: if few, it is meant for all.
  void AddDeviations(const Cluster& cluster, bool whole_layers, Pattern& pattern) const {
    std::map<std::string_view, std::set<std::string>> missing;  // by layer: the rest of the path
    LayerSet all;
    std::map<uint64_t, std::vector<std::string_view>> lacks;
    for (const auto& [role, layers] : cluster.by_role) {
      const auto found = layers_with_role_.find(role);
      if (found == layers_with_role_.end()) continue;
      all.insert(found->second.begin(), found->second.end());
      std::vector<std::string_view>& without = lacks[role];
      std::ranges::set_difference(found->second, layers, std::back_inserter(without));
      if (3 * without.size() > found->second.size()) without.clear();
    }
    const size_t uncovered = static_cast<size_t>(std::ranges::count_if(
        all, [&](std::string_view layer) { return !cluster.layers.contains(layer); }));
    if (3 * uncovered > all.size()) return;
    std::unordered_map<uint64_t, std::string> suffixes;
    for (HunkId hunk : cluster.hunks) {
      const HunkPlace& place = PlaceOf(hunk);
      if (!place.layer.empty())
        suffixes.try_emplace(place.role,
                             place.path.substr(std::min(place.path.size(), place.layer.size())));
    }
    for (const auto& [role, layers] : lacks) {
      for (std::string_view layer : layers) {
        // A layer that lacks everything is named as a whole when the pattern is.
        const bool whole = whole_layers && !cluster.layers.contains(layer);
        missing[layer].insert(whole ? "" : suffixes[role]);
      }
    }
    std::set<std::string_view> places;
    for (HunkId hunk : cluster.hunks)
      places.insert(PlaceOf(hunk).path);
    for (const auto& [layer, rests] : missing) {
      for (const std::string& rest : rests) {
        std::string where = std::string(layer) + rest;
        if (places.contains(where)) continue;  // one of several nodes there lacks it
        pattern.deviations.push_back(DeviationAt(cluster, layer, std::move(where)));
      }
    }
    SortByNumber(pattern.deviations);
  }

  static void SortByNumber(std::vector<Deviation>& deviations) {
    std::ranges::stable_sort(deviations, [](const Deviation& a, const Deviation& b) {
      return CompareModulePaths(a.where, b.where) < 0;
    });
  }

  /// What happened at a place instead: what is there at the same role, or reaches there, else what
  /// is peculiar to the layer.
  Deviation DeviationAt(const Cluster& cluster, std::string_view layer, std::string where) const {
    Deviation deviation{std::move(where), "", {}};
    std::vector<HunkId> peculiar;
    if (const auto found = hunks_of_layer_.find(layer); found != hunks_of_layer_.end()) {
      for (HunkId hunk : found->second) {
        if (std::ranges::binary_search(cluster.hunks, hunk)) continue;
        if (cluster.by_role.contains(PlaceOf(hunk).role)) deviation.hunks.push_back(hunk);
        if (2 * cluster_size_[hunk] < cluster.hunks.size()) peculiar.push_back(hunk);
      }
    }
    if (const auto found = reaching_into_.find(layer);
        deviation.hunks.empty() && found != reaching_into_.end()) {
      std::set<HunkId> hunks;
      for (const auto& [role, hunk] : found->second) {
        if (cluster.by_role.contains(role) && !std::ranges::binary_search(cluster.hunks, hunk))
          hunks.insert(hunk);
      }
      deviation.hunks.assign(hunks.begin(), hunks.end());
    }
    if (deviation.hunks.empty()) deviation.hunks = std::move(peculiar);
    constexpr size_t kShown = 2;
    for (size_t i = 0; i < std::min(deviation.hunks.size(), kShown); ++i) {
      if (i > 0) deviation.what += "; ";
      deviation.what += titles_.OfHunk(diff_.hunks[deviation.hunks[i]]);
    }
    if (deviation.hunks.size() > kShown)
      deviation.what += fmt::format("; and {} more", deviation.hunks.size() - kShown);
    return deviation;
  }

  const Layers& layers_;
  const AllHunkFacts& facts_;
  SymbolicSizes symbolic_;
  GraphDiff& diff_;
  const Titles titles_;
  IdVector<HunkId, uint8_t> way_;  // which of its places counts
  IdVector<HunkId, size_t> cluster_size_;
  std::unordered_map<uint64_t, LayerSet> layers_with_role_;
  std::map<std::string_view, std::vector<HunkId>> hunks_of_layer_;
  std::map<std::string_view, std::set<std::pair<uint64_t, HunkId>>> reaching_into_;  // role, hunk
};

}  // namespace

void FindPatterns(const Matching& matching, LabelledSides* spent, GraphDiff& diff) {
  const bool any = !diff.inserted.empty() || !diff.deleted.empty() ||
                   std::ranges::any_of(diff.pairs, [](const Pair& pair) {
                     return pair.status.changed || pair.status.moved;
                   });
  if (!any) return;
  const Layers layers(diff.before, matching.labels(kBefore));
  if (spent != nullptr) {
    spent->before.ForgetTypes();
    spent->after.ForgetTypes();
  }
  const AllHunkFacts facts = FindHunks(matching, layers, spent, diff);
  PatternFinder(layers, facts, FindSymbolicSizes(diff, matching), diff).Run();
}

}  // namespace strata
