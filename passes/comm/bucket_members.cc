#include "passes/comm/bucket_members.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// What launches must share to become one; ordered as buckets are.
struct BucketKey {
  int32_t entry;
  bool is_backward;
  CollectiveKind kind;
  std::string_view group, reduce;
  int64_t ranks;
  DType dtype;
  StrId device;
  friend auto operator<=>(const BucketKey&, const BucketKey&) = default;
};

/// Puts launches together, and keeps the buckets free of cycles.
class BucketSets {
 public:
  explicit BucketSets(const FsdpCollectives& collectives) {
    for (const NodeId launch : collectives.launches()) {
      bucket_of_[launch] = buckets_.size();
      buckets_.push_back({{launch}, collectives.Next(launch)});
    }
  }

  /// Adds `launch` to the bucket of `member`. False if one depends on the other.
  bool Merge(NodeId launch, NodeId member) {
    const size_t from = bucket_of_.at(launch), to = bucket_of_.at(member);
    if (Reaches(from, to) || Reaches(to, from)) return false;
    buckets_[to].members.push_back(launch);
    buckets_[to].next.insert(buckets_[to].next.end(), buckets_[from].next.begin(),
                             buckets_[from].next.end());
    buckets_[from] = {};
    bucket_of_[launch] = to;
    return true;
  }

  const std::vector<NodeId>& MembersOf(NodeId member) const {
    return buckets_[bucket_of_.at(member)].members;
  }

 private:
  struct Set {
    std::vector<NodeId> members, next;
  };

  bool Reaches(size_t from, size_t to) const {
    std::set<size_t> seen = {from};
    std::vector<size_t> open = {from};
    while (!open.empty()) {
      const size_t bucket = open.back();
      open.pop_back();
      for (const NodeId launch : buckets_[bucket].next) {
        const size_t next = bucket_of_.at(launch);
        if (next == to) return true;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

  std::map<NodeId, size_t> bucket_of_;
  std::vector<Set> buckets_;
};

BucketKey KeyOf(const Graph& graph, NodeId launch, int32_t entry) {
  const ValueId operand = graph.args(launch)[0].value();
  const Type& type = graph.module().types()[graph.value(operand).type];
  const CollectiveKind kind = *CollectiveOf(graph, launch);
  return {.entry = entry,
          .is_backward = IsBackward(graph, launch),
          .kind = kind,
          .group = GroupOf(graph, launch),
          .reduce = ReduceOpOf(graph, launch),
          .ranks = kind == CollectiveKind::kAllReduce ? 0 : GroupSizeOf(graph, launch),
          .dtype = type.dtype,
          .device = type.device};
}

/// Whether sizes are known and the launch is one that can be made again.
bool CanMerge(const Graph& graph, NodeId launch) {
  const Arg& operand = graph.args(launch)[0];
  const bool is_plain = graph.op(launch) == kAllGatherOp || graph.op(launch) == kReduceScatterOp ||
                        graph.op(launch) == kAllReduceOp;
  if (!is_plain || !operand.is_value() || !graph.attribute(launch, kBucketAttribute).empty())
    return false;
  const auto is_known = [&](ValueId value) {
    const TypeId type = graph.value(value).type;
    return type.valid() && graph.module().types()[type].kind == TypeKind::kTensor &&
           graph.module().types()[type].dtype != DType::kUnknown;
  };
  return is_known(operand.value()) && is_known(graph.result(OnlyWaitOf(graph, launch)));
}

std::vector<std::string> ParameterNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId placeholder : graph.placeholders())
    names.emplace_back(graph.attribute(placeholder, "fqn"));
  return names;
}

/// In the order of the parameters' modules, then of the program.
void SortMembers(const Graph& graph, std::vector<NodeId>& members,
                 const std::map<std::string, int64_t, std::less<>>& modules,
                 const IdVector<NodeId, int32_t>& order) {
  const auto place = [&](NodeId launch) {
    const auto found = modules.find(ModuleOf(graph, launch));
    const int64_t module = found == modules.end() ? graph.num_nodes() : found->second;
    return std::pair(module, order[launch]);
  };
  std::ranges::sort(members, {}, place);
}

/// Launches by key, in buckets.
class BucketFinder {
 public:
  BucketFinder(const Graph& graph, const FsdpCollectives& collectives)
      : graph_(graph), sets_(collectives) {}

  /// Adds a launch to the first bucket of its key that does not depend on it; with `max_bytes`, to
  /// the last one if that has room.
  void Add(NodeId launch, int32_t entry, std::optional<int64_t> max_bytes) {
    std::vector<Open>& buckets = buckets_[KeyOf(graph_, launch, entry)];
    const int64_t bytes = BytesOf(launch);
    const auto try_add = [&](Open& bucket) {
      if (max_bytes && bucket.bytes + bytes > *max_bytes) return false;
      if (!sets_.Merge(launch, bucket.first)) return false;
      bucket.bytes += bytes;
      return true;
    };
    const size_t first_try = max_bytes && !buckets.empty() ? buckets.size() - 1 : 0;
    for (size_t i = first_try; i < buckets.size(); ++i)
      if (try_add(buckets[i])) return;
    buckets.push_back({launch, bytes});
  }

  /// Calls `fn(entry, launches)` in order of the keys; launches are as they are packed.
  template <class Fn>
  void ForEach(Fn&& fn) const {
    const auto modules = ParameterModules(ParameterNames(graph_));
    const IdVector<NodeId, int32_t> order = PositionsOf(graph_);
    for (const auto& [key, buckets] : buckets_) {
      for (const Open& bucket : buckets) {
        std::vector<NodeId> launches = sets_.MembersOf(bucket.first);
        SortMembers(graph_, launches, modules, order);
        fn(key.entry, std::move(launches));
      }
    }
  }

 private:
  struct Open {
    NodeId first;
    int64_t bytes = 0;
  };

  /// The larger of what a rank gives and gets.
  int64_t BytesOf(NodeId launch) const {
    const auto bytes = [&](ValueId value) {
      return graph_.module().types().Bytes(graph_.value(value).type).value_or(0);
    };
    return std::max(bytes(graph_.args(launch)[0].value()), bytes(graph_.result(launch)));
  }

  const Graph& graph_;
  BucketSets sets_;
  std::map<BucketKey, std::vector<Open>> buckets_;
};

}  // namespace

std::vector<Bucket> FindBuckets(const Graph& graph, const FsdpCollectives& collectives,
                                const BucketPlan& plan) {
  const BucketIndex entries(plan);
  BucketFinder finder(graph, collectives);
  for (const NodeId launch : collectives.launches()) {
    const int32_t entry = entries.EntryOf(ModuleOf(graph, launch));
    if (entry >= 0 && CanMerge(graph, launch)) finder.Add(launch, entry, std::nullopt);
  }
  std::vector<Bucket> buckets;
  finder.ForEach([&](int32_t index, std::vector<NodeId> launches) {
    const BucketEntry& entry = plan[static_cast<size_t>(index)];
    buckets.push_back({.launches = std::move(launches),
                       .label = EntryText(entry),
                       .module = entry.size() == 1 ? entry.front() : ""});
  });
  return buckets;
}

std::vector<Bucket> FindBucketsBySize(const Graph& graph, const FsdpCollectives& collectives,
                                      int64_t max_bytes) {
  BucketFinder finder(graph, collectives);
  for (const NodeId launch : collectives.launches())
    if (CanMerge(graph, launch)) finder.Add(launch, 0, max_bytes);
  std::vector<Bucket> buckets;
  finder.ForEach([&](int32_t /*entry*/, std::vector<NodeId> launches) {
    buckets.push_back({.launches = std::move(launches),
                       .label = fmt::format("size-{}", buckets.size()),
                       .module = ""});
  });
  return buckets;
}

}  // namespace strata
