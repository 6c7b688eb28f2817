#include "passes/expert/overlap_schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/module.h"

namespace strata {
namespace {

using Nodes = std::vector<size_t>;

/// The parts of the first closure of a chunk around its copies of counts to the host.
struct SyncParts {
  Nodes before, copies, after, launches;
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, const OverlapRegion& region)
      : graph_(graph),
        region_(region),
        chunk_order_(region.ChunkOrder()),
        num_missing_(region.size()),
        users_(region.size()),
        is_emitted_(region.size()),
        ready_(chunk_order_.size()),
        ready_communication_(chunk_order_.size()) {
    for (size_t i = 0; i < region.size(); ++i) {
      num_missing_[i] = region.Before(i).size();
      for (const size_t before : region.Before(i))
        users_[before].push_back(i);
      if (num_missing_[i] == 0) AddReady(i);
    }
  }

  Result<OverlapSchedule> Run(bool pair_first) {
    STRATA_RETURN_IF_ERROR(FindClosures());
    STRATA_RETURN_IF_ERROR(FindSyncParts());
    for (size_t round = 0; round < region_.Markers(0).size(); ++round) {
      if (round == 0 && pair_first) {
        EmitFirstPaired();
      } else {
        for (const size_t chunk : chunk_order_)
          EmitClosure(chunk, round);
      }
      EmitReady();
    }
    EmitRest();
    for (size_t i = 0; i < region_.size(); ++i) {
      if (is_emitted_[i]) continue;
      return Error("could not schedule all body nodes: {}: {} is left", region_.Where(graph_),
                   graph_.name(region_.node(i)));
    }
    return std::move(schedule_);
  }

 private:
  /// What must run for the markers of each chunk: `closures_[chunk][round]`, without what earlier
  /// rounds of the chunk have.
  Status FindClosures() {
    closures_.resize(chunk_order_.size());
    for (size_t chunk = 0; chunk < chunk_order_.size(); ++chunk) {
      const Nodes& markers = region_.Markers(chunk);
      std::vector<bool> seen(region_.size());
      for (size_t round = 0; round < markers.size(); ++round) {
        Nodes closure, open = {markers[round]};
        while (!open.empty()) {
          const size_t i = open.back();
          open.pop_back();
          if (seen[i]) continue;
          seen[i] = true;
          const bool is_later =
              region_.is_marker(i) && region_.chunk(i) == chunk && i != markers[round];
          if (is_later && std::ranges::find(markers, i) - markers.begin() >
                              static_cast<std::ptrdiff_t>(round)) {
            return Error(
                "the order of token exchanges is not topologically valid: {}: {} needs "
                "the later {}",
                region_.Where(graph_), graph_.name(region_.node(markers[round])),
                graph_.name(region_.node(i)));
          }
          closure.push_back(i);
          open.insert(open.end(), region_.Before(i).begin(), region_.Before(i).end());
        }
        std::ranges::sort(closure);
        closures_[chunk].push_back(std::move(closure));
      }
    }
    return Ok();
  }

  Status FindSyncParts() {
    sync_.resize(chunk_order_.size());
    size_t num_copies = 0;
    for (size_t i = 0; i < region_.size(); ++i)
      num_copies += region_.is_count_sync(i) ? 1 : 0;
    if (num_copies == 0) return Ok();
    size_t num_chunks = 0;
    for (size_t chunk = 0; chunk < chunk_order_.size(); ++chunk) {
      STRATA_TRY(sync_[chunk], PartsOf(chunk));
      num_chunks += sync_[chunk] ? 1 : 0;
    }
    if (num_chunks != 0 && num_chunks != chunk_order_.size()) {
      return Error("copies of token counts must exist for both chunks: {}", region_.Where(graph_));
    }
    if (num_copies != 2 * num_chunks) {
      return Error("copies of token counts lie outside of the first token-exchange closure: {}",
                   region_.Where(graph_));
    }
    return Ok();
  }

  Result<std::optional<SyncParts>> PartsOf(size_t chunk) const {
    const Nodes& closure = closures_[chunk][0];
    SyncParts parts;
    std::set<size_t> before;
    Nodes open;
    for (const size_t i : closure) {
      if (!region_.is_count_sync(i)) continue;
      if (!IsToHost(i)) {
        return Error("copies of token counts must have CPU _to_copy destinations: {}: {}",
                     region_.Where(graph_), graph_.name(region_.node(i)));
      }
      parts.copies.push_back(i);
      open.insert(open.end(), region_.Before(i).begin(), region_.Before(i).end());
    }
    if (parts.copies.empty()) return std::optional<SyncParts>();
    if (parts.copies.size() != 2) {
      return Error("expected exactly two token-count sync copies: {}: chunk {} has {}",
                   region_.Where(graph_), chunk, parts.copies.size());
    }
    while (!open.empty()) {
      const size_t i = open.back();
      open.pop_back();
      if (!before.insert(i).second) continue;
      open.insert(open.end(), region_.Before(i).begin(), region_.Before(i).end());
    }
    for (const size_t i : closure) {
      if (before.contains(i)) {
        parts.before.push_back(i);
      } else if (region_.is_marker(i)) {
        parts.launches.push_back(i);
      } else if (!region_.is_count_sync(i)) {
        parts.after.push_back(i);
      }
    }
    return std::optional(std::move(parts));
  }

  bool IsToHost(size_t i) const {
    const NodeId node = region_.node(i);
    const StringTable& strings = graph_.module().strings();
    if (const Arg* device = graph_.FindKwarg(node, "device");
        device != nullptr && device->kind() == ArgKind::kDevice) {
      return strings[device->str()].starts_with("cpu");
    }
    const TypeId type = graph_.value(graph_.result(node)).type;
    if (!type.valid() || !graph_.module().types()[type].device.valid()) return false;
    return strings[graph_.module().types()[type].device].starts_with("cpu");
  }

  void EmitFirstPaired() {
    const bool has_sync = std::ranges::all_of(
        sync_, [](const std::optional<SyncParts>& parts) { return parts.has_value(); });
    if (!has_sync) {
      for (const bool launches : {false, true}) {
        for (const size_t chunk : chunk_order_) {
          Nodes block = closures_[chunk][0];
          std::erase_if(block, [&](size_t i) { return region_.is_marker(i) != launches; });
          Emit(block);
        }
      }
      return;
    }
    for (const size_t chunk : chunk_order_)
      Emit(sync_[chunk]->before);
    Nodes copies;
    for (const size_t chunk : chunk_order_)
      copies.insert(copies.end(), sync_[chunk]->copies.begin(), sync_[chunk]->copies.end());
    EmitCopies(copies);
    for (const size_t chunk : chunk_order_)
      Emit(sync_[chunk]->after);
    for (const size_t chunk : chunk_order_)
      Emit(sync_[chunk]->launches);
  }

  /// One stream completes copies in order, so the last one is enough to wait for.
  void EmitCopies(const Nodes& copies) {
    schedule_.non_blocking.insert(schedule_.non_blocking.end(), copies.begin(), copies.end() - 1);
    Emit(copies);
  }

  void EmitClosure(size_t chunk, size_t round) {
    if (round > 0 || !sync_[chunk]) {
      Emit(closures_[chunk][round]);
      return;
    }
    Emit(sync_[chunk]->before);
    EmitCopies(sync_[chunk]->copies);
    Emit(sync_[chunk]->after);
    Emit(sync_[chunk]->launches);
  }

  void AddReady(size_t i) {
    (region_.is_communication(i) ? ready_communication_ : ready_)[region_.chunk(i)].insert(i);
  }

  void Emit(const Nodes& nodes) {
    Nodes block;
    for (const size_t i : nodes)
      if (!is_emitted_[i]) block.push_back(i);
    if (block.empty()) return;
    for (const size_t i : block) {
      is_emitted_[i] = true;
      ready_[region_.chunk(i)].erase(i);
      ready_communication_[region_.chunk(i)].erase(i);
      for (const size_t user : users_[i])
        if (--num_missing_[user] == 0 && !is_emitted_[user]) AddReady(user);
    }
    // A node that became ready within the block was emitted with it.
    for (const size_t i : block) {
      ready_[region_.chunk(i)].erase(i);
      ready_communication_[region_.chunk(i)].erase(i);
    }
    schedule_.blocks.push_back(std::move(block));
  }

  /// Rounds of what needs no communication first, until nothing is left of it.
  void EmitReady() {
    while (true) {
      Nodes block;
      for (const size_t chunk : chunk_order_)
        block.insert(block.end(), ready_[chunk].begin(), ready_[chunk].end());
      if (block.empty()) return;
      Emit(block);
    }
  }

  void EmitRest() {
    for (bool has_progress = true; has_progress;) {
      has_progress = false;
      for (const size_t chunk : chunk_order_) {
        while (true) {
          Nodes block(ready_[chunk].begin(), ready_[chunk].end());
          block.insert(block.end(), ready_communication_[chunk].begin(),
                       ready_communication_[chunk].end());
          if (block.empty()) break;
          std::ranges::sort(block);
          Emit(block);
          has_progress = true;
        }
      }
    }
  }

  const Graph& graph_;
  const OverlapRegion& region_;
  const Nodes chunk_order_;
  std::vector<size_t> num_missing_;  // by node: of those that must run before
  std::vector<Nodes> users_;
  std::vector<bool> is_emitted_;
  std::vector<std::set<size_t>> ready_, ready_communication_;  // by chunk
  std::vector<std::vector<Nodes>> closures_;
  std::vector<std::optional<SyncParts>> sync_;
  OverlapSchedule schedule_;
};

}  // namespace

Result<OverlapSchedule> ScheduleOverlap(const Graph& graph, const OverlapRegion& region,
                                        bool pair_first) {
  return Scheduler(graph, region).Run(pair_first);
}

}  // namespace strata
