#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
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

/// An index into Builder::drafts_.
using DraftId = Id<struct DraftTag>;

/// A cluster while it is being built.
struct Draft {
  SceneCluster cluster;
  std::vector<DraftId> children;
  std::vector<SceneNodeId> nodes;
  SceneNodeId first_forward = kNoOrder, last_backward;
  uint64_t signature = 1;  // equal for clusters that look alike
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
    drafts_.Add({});
    const IdVector<SceneNodeId, std::string> repeats = PathsByStructure(diff_, scene_);
    for (SceneNodeId node : IdsOf(scene_.nodes)) {
      const bool repeated = !repeats.empty() && !repeats[node].empty();
      drafts_[repeated ? DraftAt(repeats[node]) : DraftOf(node)].nodes.push_back(node);
    }
    for (DraftId draft : IdsOf(drafts_))
      CutIntoParts(draft);
    Finish(kRoot);
    Emit(kRoot, {});
  }

 private:
  static constexpr DraftId kRoot{0};

  /// The cluster of a node's path. Neighbours have the same mostly, and paths take long.
  DraftId DraftOf(SceneNodeId id) {
    const SceneNode& node = scene_.nodes[id];
    const bool after = node.after.valid();
    const ScenePaths::Parts parts = paths_.PartsOf(after, after ? node.after : node.before);
    if (last_ && last_->first == parts) return last_->second;
    const auto [found, is_new] = by_parts_.try_emplace(parts);
    if (is_new) found->second = DraftAt(paths_.PathOf(parts));
    last_ = *found;
    return found->second;
  }

  /// Too many nodes of one slab become parts: a slice of its forward nodes with a slice from the
  /// other end of its backward nodes each.
  void CutIntoParts(DraftId id) {
    const std::vector<SceneNodeId> nodes = std::move(drafts_[id].nodes);
    drafts_[id].nodes.clear();
    if (nodes.size() <= static_cast<size_t>(options_.max_nodes)) {
      drafts_[id].nodes = nodes;
      return;
    }
    std::vector<SceneNodeId> lanes[2];
    for (SceneNodeId node : nodes)
      lanes[scene_.nodes[node].backward ? 1 : 0].push_back(node);
    const auto size = static_cast<size_t>(options_.max_nodes / 2);
    const size_t parts = (nodes.size() + size - 1) / size;
    for (size_t part = 0; part < parts; ++part) {
      const std::string& path = drafts_[id].cluster.path;
      const DraftId at =
          DraftAt(fmt::format("{}{}part {} of {}", path, path.empty() ? "" : ".", part + 1, parts));
      for (size_t lane = 0; lane < 2; ++lane) {
        const size_t slice = lane == 0 ? part : parts - 1 - part, count = lanes[lane].size();
        for (size_t i = count * slice / parts; i < count * (slice + 1) / parts; ++i)
          drafts_[at].nodes.push_back(lanes[lane][i]);
      }
      std::ranges::sort(drafts_[at].nodes);
    }
  }

  DraftId DraftAt(const std::string& path) {
    if (path.empty()) return kRoot;
    if (const auto known = by_path_.find(path); known != by_path_.end()) return known->second;
    const size_t dot = path.rfind('.');
    const DraftId parent = dot == std::string::npos ? kRoot : DraftAt(path.substr(0, dot));
    const DraftId id = drafts_.Add({});
    drafts_[id].cluster.path = path;
    drafts_[id].cluster.label = dot == std::string::npos ? path : path.substr(dot + 1);
    drafts_[parent].children.push_back(id);
    by_path_.emplace(path, id);
    return id;
  }

  /// Counts, places and signature of a subtree; children in the order of the program.
  void Finish(DraftId id) {
    Draft& d = drafts_[id];
    for (SceneNodeId node : d.nodes)
      AddNode(node, d);
    for (DraftId child : d.children) {
      Finish(child);
      const Draft& c = drafts_[child];
      d.cluster.counts += c.cluster.counts;
      d.first_forward = std::min(d.first_forward, c.first_forward);
      d.last_backward = std::max(d.last_backward, c.last_backward);
    }
    // What has no forward half stands where its backward half would: late in backward is early in
    // forward.
    const auto key = [&](DraftId child) {
      const Draft& c = drafts_[child];
      return c.first_forward != kNoOrder ? c.first_forward.index
                                         : scene_.nodes.end_id().index - c.last_backward.index;
    };
    std::ranges::stable_sort(d.children, {}, key);
    for (DraftId child : d.children) {
      d.signature = Mix(d.signature, drafts_[child].signature);
      d.signature = Mix(d.signature, std::hash<std::string_view>{}(drafts_[child].cluster.label));
    }
  }

  void AddNode(SceneNodeId id, Draft& into) {
    const SceneNode& node = scene_.nodes[id];
    into.cluster.counts += CountsOf(node.status);
    const std::string_view target =
        node.after.valid() ? diff_.after.target(node.after) : diff_.before.target(node.before);
    into.signature = Mix(into.signature, std::hash<std::string_view>{}(target));
    into.signature =
        Mix(into.signature, static_cast<uint64_t>(node.status) * 2 + (node.backward ? 1 : 0));
    if (node.backward) {
      into.last_backward = std::max(into.last_backward, id);
    } else {
      into.first_forward = std::min(into.first_forward, id);
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
  void Emit(DraftId id, ClusterId parent) {
    const ClusterId at = scene_.clusters.Add(std::move(drafts_[id].cluster));
    scene_.clusters[at].parent = parent;
    scene_.clusters[at].subtree_begin = static_cast<int32_t>(scene_.by_cluster.size());
    for (SceneNodeId node : drafts_[id].nodes) {
      scene_.nodes[node].cluster = at;
      scene_.by_cluster.push_back(node);
    }
    const std::vector<DraftId>& children = drafts_[id].children;
    for (size_t begin = 0; begin < children.size();) {
      size_t end = begin + 1;
      while (end < children.size() && Alike(children[begin], children[end]))
        ++end;
      const bool chunks = drafts_[children[begin]].cluster.label.starts_with(kChunkLabel);
      const size_t least = chunks ? 2 : static_cast<size_t>(options_.min_repeats);
      if (end - begin >= least) {
        EmitGroup(std::span(children).subspan(begin, end - begin), at);
      } else {
        for (size_t k = begin; k < end; ++k)
          Emit(children[k], at);
      }
      begin = end;
    }
    scene_.clusters[at].subtree_end = static_cast<int32_t>(scene_.by_cluster.size());
  }

  bool Alike(DraftId a, DraftId b) const {
    const SceneCluster &first = drafts_[a].cluster, &second = drafts_[b].cluster;
    return !NumberOf(first.label).empty() && !NumberOf(second.label).empty() &&
           WordsOf(first.label) == WordsOf(second.label) && first.counts == second.counts &&
           drafts_[a].signature == drafts_[b].signature;
  }

  void EmitGroup(std::span<const DraftId> members, ClusterId parent) {
    const std::string first = drafts_[members.front()].cluster.label;
    const std::string last = drafts_[members.back()].cluster.label;
    const std::string& path = drafts_[members.front()].cluster.path;
    SceneCluster group;
    group.label = fmt::format("{}{{{}..{}}}", WordsOf(first), NumberOf(first), NumberOf(last));
    group.path = path.substr(0, path.size() - first.size()) + group.label;
    group.parent = parent;
    group.repeats = static_cast<int32_t>(members.size());
    group.subtree_begin = static_cast<int32_t>(scene_.by_cluster.size());
    for (DraftId member : members)
      group.counts += drafts_[member].cluster.counts;
    const ClusterId at = scene_.clusters.Add(std::move(group));
    for (DraftId member : members)
      Emit(member, at);
    scene_.clusters[at].subtree_end = static_cast<int32_t>(scene_.by_cluster.size());
  }

  const GraphDiff& diff_;
  const SceneOptions& options_;
  Scene& scene_;
  IdVector<DraftId, Draft> drafts_;
  std::unordered_map<std::string, DraftId> by_path_;
  const ScenePaths paths_;
  std::map<ScenePaths::Parts, DraftId> by_parts_;
  std::optional<std::pair<ScenePaths::Parts, DraftId>> last_;  // of by_parts_
};

}  // namespace

void MakeClusters(const GraphDiff& diff, const SceneOptions& options, Scene& scene) {
  Builder(diff, options, scene).Run();
}

}  // namespace internal
}  // namespace strata
