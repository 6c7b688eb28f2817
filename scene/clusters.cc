#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scene/parts.h"
#include "scene/paths.h"

namespace strata {
namespace internal {
namespace {

/// A cluster while it is being built.
struct Draft {
  SceneCluster cluster;
  std::map<std::string, int32_t, std::less<>> by_label;
  std::vector<int32_t> children;
  std::vector<int32_t> nodes;
  int32_t first_forward = kNoOrder, last_backward = -1;  // places in union order
  uint64_t signature = 1;                                // equal for clusters that look alike
};

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

class Builder {
 public:
  Builder(const GraphDiff& diff, const SceneOptions& options, Scene& scene)
      : diff_(diff), options_(options), scene_(scene), paths_(diff) {}

  void Run() {
    drafts_.emplace_back();
    const std::vector<std::string> repeats = PathsByStructure(diff_, scene_);
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      const bool repeated = i < repeats.size() && !repeats[i].empty();
      const int32_t index = static_cast<int32_t>(i);
      draft(repeated ? ClusterAt(repeats[i]) : ClusterOf(index)).nodes.push_back(index);
    }
    for (size_t i = 0, count = drafts_.size(); i < count; ++i)
      CutIntoParts(static_cast<int32_t>(i));
    Finish(0);
    Emit(0, -1);
  }

 private:
  Draft& draft(int32_t index) { return drafts_[static_cast<size_t>(index)]; }

  /// The cluster of a node's path. Neighbours have the same mostly, and paths take long.
  int32_t ClusterOf(int32_t index) {
    const SceneNode& node = scene_.nodes[static_cast<size_t>(index)];
    const bool after = node.after.valid();
    const ScenePaths::Parts parts = paths_.PartsOf(after, after ? node.after : node.before);
    if (last_ && last_->first == parts) return last_->second;
    const auto [found, is_new] = by_parts_.try_emplace(parts, 0);
    if (is_new) found->second = ClusterAt(paths_.PathOf(parts));
    last_ = *found;
    return found->second;
  }

  /// Too many nodes of one slab become parts: a slice of its forward nodes with a slice from the
  /// other end of its backward nodes each.
  void CutIntoParts(int32_t index) {
    const std::vector<int32_t> nodes = std::move(draft(index).nodes);
    draft(index).nodes.clear();
    if (nodes.size() <= static_cast<size_t>(options_.max_nodes)) {
      draft(index).nodes = nodes;
      return;
    }
    std::vector<int32_t> lanes[2];
    for (int32_t node : nodes)
      lanes[scene_.nodes[static_cast<size_t>(node)].backward ? 1 : 0].push_back(node);
    const auto size = static_cast<size_t>(options_.max_nodes / 2);
    const size_t parts = (nodes.size() + size - 1) / size;
    for (size_t part = 0; part < parts; ++part) {
      const std::string& path = draft(index).cluster.path;
      const int32_t at = ClusterAt(
          fmt::format("{}{}part {} of {}", path, path.empty() ? "" : ".", part + 1, parts));
      for (size_t lane = 0; lane < 2; ++lane) {
        const size_t slice = lane == 0 ? part : parts - 1 - part, count = lanes[lane].size();
        for (size_t i = count * slice / parts; i < count * (slice + 1) / parts; ++i)
          draft(at).nodes.push_back(lanes[lane][i]);
      }
      std::ranges::sort(draft(at).nodes);
    }
  }

  int32_t ClusterAt(const std::string& path) {
    if (path.empty()) return 0;
    if (const auto known = by_path_.find(path); known != by_path_.end()) return known->second;
    const size_t dot = path.rfind('.');
    const int32_t parent = dot == std::string::npos ? 0 : ClusterAt(path.substr(0, dot));
    const auto index = static_cast<int32_t>(drafts_.size());
    drafts_.emplace_back();
    drafts_.back().cluster.path = path;
    drafts_.back().cluster.label = dot == std::string::npos ? path : path.substr(dot + 1);
    draft(parent).children.push_back(index);
    by_path_.emplace(path, index);
    return index;
  }

  /// Counts, places and signature of a subtree; children in the order of the program.
  void Finish(int32_t index) {
    for (int32_t i : draft(index).nodes)
      AddNode(i, draft(index));
    for (int32_t child : draft(index).children) {
      Finish(child);
      const Draft& c = draft(child);
      Draft& d = draft(index);
      d.cluster.counts += c.cluster.counts;
      d.first_forward = std::min(d.first_forward, c.first_forward);
      d.last_backward = std::max(d.last_backward, c.last_backward);
    }
    Draft& d = draft(index);
    // What has no forward half stands where its backward half would: late in backward is early in
    // forward.
    const auto key = [&](int32_t child) {
      const Draft& c = draft(child);
      const auto size = static_cast<int32_t>(scene_.nodes.size());
      return c.first_forward != kNoOrder ? c.first_forward : size - c.last_backward;
    };
    std::ranges::stable_sort(d.children, {}, key);
    for (int32_t child : d.children) {
      d.signature = Mix(d.signature, draft(child).signature);
      d.signature = Mix(d.signature, std::hash<std::string_view>{}(draft(child).cluster.label));
    }
  }

  void AddNode(int32_t index, Draft& into) {
    const SceneNode& node = scene_.nodes[static_cast<size_t>(index)];
    into.cluster.counts += CountsOf(node.status);
    const std::string_view target =
        node.after.valid() ? diff_.after.target(node.after) : diff_.before.target(node.before);
    into.signature = Mix(into.signature, std::hash<std::string_view>{}(target));
    into.signature =
        Mix(into.signature, static_cast<uint64_t>(node.status) * 2 + (node.backward ? 1 : 0));
    if (node.backward) {
      into.last_backward = std::max(into.last_backward, index);
    } else {
      into.first_forward = std::min(into.first_forward, index);
    }
  }

  /// Of one node.
  static SceneCounts CountsOf(SceneStatus status) {
    SceneCounts one = {.nodes = 1};
    switch (status) {
      case SceneStatus::kSame:
        break;
      case SceneStatus::kAdded:
        one.added = 1;
        break;
      case SceneStatus::kRemoved:
        one.removed = 1;
        break;
      case SceneStatus::kChanged:
        one.changed = 1;
        break;
      case SceneStatus::kDerived:
        one.derived = 1;
        break;
      case SceneStatus::kMoved:
        one.moved = 1;
        break;
    }
    return one;
  }

  /// The number at the end of a label: "3" of "3" and of "chunk 3"; "" of others.
  static std::string_view NumberOf(std::string_view label) {
    const size_t begin = label.find_last_not_of("0123456789") + 1;
    return begin == 0 || label.starts_with(kChunkLabel) ? label.substr(begin) : std::string_view();
  }
  static std::string_view WordsOf(std::string_view label) {
    return label.substr(0, label.size() - NumberOf(label).size());
  }

  /// Writes the cluster, then its children, groups of equal ones under a cluster of their own.
  int32_t Emit(int32_t index, int32_t parent) {
    const auto at = static_cast<int32_t>(scene_.clusters.size());
    scene_.clusters.push_back(std::move(draft(index).cluster));
    const auto i = static_cast<size_t>(at);
    scene_.clusters[i].parent = parent;
    scene_.clusters[i].subtree_begin = static_cast<int32_t>(scene_.by_cluster.size());
    for (int32_t node : draft(index).nodes) {
      scene_.nodes[static_cast<size_t>(node)].cluster = at;
      scene_.by_cluster.push_back(node);
    }
    const std::vector<int32_t> children = draft(index).children;
    for (size_t begin = 0; begin < children.size();) {
      size_t end = begin + 1;
      while (end < children.size() && Alike(children[begin], children[end]))
        ++end;
      const bool chunks = draft(children[begin]).cluster.label.starts_with(kChunkLabel);
      const size_t least = chunks ? 2 : static_cast<size_t>(options_.min_repeats);
      if (end - begin >= least) {
        EmitGroup({children.begin() + static_cast<std::ptrdiff_t>(begin),
                   children.begin() + static_cast<std::ptrdiff_t>(end)},
                  at);
      } else {
        for (size_t k = begin; k < end; ++k)
          Emit(children[k], at);
      }
      begin = end;
    }
    scene_.clusters[i].subtree_end = static_cast<int32_t>(scene_.by_cluster.size());
    return at;
  }

  bool Alike(int32_t a, int32_t b) {
    const SceneCluster &first = draft(a).cluster, &second = draft(b).cluster;
    return !NumberOf(first.label).empty() && !NumberOf(second.label).empty() &&
           WordsOf(first.label) == WordsOf(second.label) && first.counts == second.counts &&
           draft(a).signature == draft(b).signature;
  }

  void EmitGroup(const std::vector<int32_t>& members, int32_t parent) {
    const std::string first = draft(members.front()).cluster.label;
    const std::string last = draft(members.back()).cluster.label;
    const std::string& path = draft(members.front()).cluster.path;
    SceneCluster group;
    group.label = fmt::format("{}{{{}..{}}}", WordsOf(first), NumberOf(first), NumberOf(last));
    group.path = path.substr(0, path.size() - first.size()) + group.label;
    group.parent = parent;
    group.repeats = static_cast<int32_t>(members.size());
    for (int32_t member : members)
      group.counts += draft(member).cluster.counts;
    const auto at = static_cast<int32_t>(scene_.clusters.size());
    scene_.clusters.push_back(std::move(group));
    scene_.clusters[static_cast<size_t>(at)].subtree_begin =
        static_cast<int32_t>(scene_.by_cluster.size());
    for (int32_t member : members)
      Emit(member, at);
    scene_.clusters[static_cast<size_t>(at)].subtree_end =
        static_cast<int32_t>(scene_.by_cluster.size());
  }

  const GraphDiff& diff_;
  const SceneOptions& options_;
  Scene& scene_;
  std::vector<Draft> drafts_;
  std::unordered_map<std::string, int32_t> by_path_;
  const ScenePaths paths_;
  std::map<ScenePaths::Parts, int32_t> by_parts_;
  std::optional<std::pair<ScenePaths::Parts, int32_t>> last_;  // of by_parts_
};

}  // namespace

void MakeClusters(const GraphDiff& diff, const SceneOptions& options, Scene& scene) {
  Builder(diff, options, scene).Run();
}

}  // namespace internal
}  // namespace strata
