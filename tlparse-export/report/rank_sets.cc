#include "tlparse-export/report/rank_sets.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "diff/diff.h"

namespace strata {
namespace {

SnapshotId SnapshotAt(const StoredRun& run, const std::string& graph, const StoredPass* pass) {
  if (pass == nullptr) {
    const StoredGraph* found = run.FindGraph(graph);
    return found == nullptr ? SnapshotId::kNone : found->snapshots.back();
  }
  for (const StoredPass& other : run.passes) {
    if (other.record.index == pass->record.index && other.record.name == pass->record.name &&
        other.record.graph == graph)
      return other.record.after;
  }
  return SnapshotId::kNone;
}

/// "ranks 0–2, 5"
std::string Words(const std::set<int32_t>& ranks) {
  std::string words;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first;
    while (std::next(last) != ranks.end() && *std::next(last) == *last + 1)
      ++last;
    words += words.empty() ? "" : ", ";
    words += first == last ? fmt::to_string(*first) : fmt::format("{}–{}", *first, *last);
    first = std::next(last);
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", words);
}

}  // namespace

Result<std::vector<std::string>> RankSetsOf(TraceReader& trace, const StoredRun& run,
                                            const std::string& graph, const StoredPass* pass,
                                            const Listing& listing, int64_t& budget) {
  std::map<Fingerprint, std::set<int32_t>> kinds;
  std::map<Fingerprint, SnapshotId> example;
  std::set<int32_t> all;
  Fingerprint own;
  for (const StoredRun& other : trace.runs()) {
    const SnapshotId id = SnapshotAt(other, graph, pass);
    const SnapshotInfo* info = trace.FindSnapshot(id);
    if (info == nullptr) continue;
    if (other.id == run.id) own = info->fingerprint;
    // Several runs of one rank are no ranks.
    if (!all.insert(other.info.rank).second) return std::vector<std::string>();
    kinds[info->fingerprint].insert(other.info.rank);
    example.try_emplace(info->fingerprint, id);
  }
  if (kinds.size() < 2) return std::vector<std::string>();
  int64_t nodes = 0;
  for (const auto& [fingerprint, id] : example) {
    if (fingerprint != own) nodes += listing.size() + trace.FindSnapshot(id)->nodes;
  }
  if (nodes > budget) return std::vector<std::string>();
  budget -= nodes;
  std::vector<std::set<int32_t>> sets(static_cast<size_t>(listing.size()), kinds[own]);
  for (const auto& [fingerprint, ranks] : kinds) {
    if (fingerprint == own) continue;
    STRATA_TRY(const std::unique_ptr<Module> other, trace.LoadSnapshot(example[fingerprint]));
    STRATA_TRY(const GraphDiff diff, Diff(listing.root(), other->graph({0})));
    for (const Pair& pair : diff.pairs) {
      if (!pair.status.changed)
        sets[static_cast<size_t>(pair.before.index)].insert(ranks.begin(), ranks.end());
    }
  }
  std::vector<std::string> words;
  words.reserve(sets.size());
  for (const std::set<int32_t>& set : sets)
    words.push_back(set == all ? "" : Words(set));
  return words;
}

}  // namespace strata
