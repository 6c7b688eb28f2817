#include "tlparse-export/report/rank_sets.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "diff/diff.h"
#include "diff/ranks/rank_programs.h"

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

/// Entities of a graph as another rank has them: `at[id]` is the entity there, if it is there.
struct RankView {
  const Measures* measures;
  int32_t rank;
  const Listing* listing;
  IdVector<EntityId, EntityId> at;
};

/// Null for what was not measured; what belongs to a call is not said of its elements again.
const NodeStatistics* Measured(const RankView& view, EntityId id) {
  if (!id.valid()) return nullptr;
  const Entity& entity = (*view.listing)[id];
  if (entity.element.valid()) return nullptr;
  const StableId stable = view.listing->graph(id).node(entity.node).stable_id;
  const auto found = view.measures->find(static_cast<uint64_t>(stable));
  return found == view.measures->end() || found->second.time_ns == 0 ? nullptr : &found->second;
}

IdVector<EntityId, RankTimes> TimesOf(const std::vector<RankView>& views,
                                      IdRange<EntityId> entities) {
  IdVector<EntityId, RankTimes> times(entities.size());
  bool is_known = false;
  for (EntityId id : entities) {
    std::vector<std::pair<int64_t, int32_t>> measured;  // time, rank
    for (const RankView& view : views) {
      if (const NodeStatistics* node = Measured(view, view.at[id]))
        measured.emplace_back(node->time_ns, view.rank);
    }
    if (measured.size() < 2) continue;
    is_known = true;
    std::ranges::sort(measured);
    times[id] = {.least_ns = measured.front().first,
                 .median_ns = measured[measured.size() / 2].first,
                 .most_ns = measured.back().first,
                 .slowest = measured.back().second};
  }
  if (!is_known) times.clear();
  return times;
}

IdVector<EntityId, EntityId> Identity(IdRange<EntityId> entities) {
  IdVector<EntityId, EntityId> at(entities.size());
  for (EntityId id : entities)
    at[id] = id;
  return at;
}

/// Every place at which a run has a graph: after each pass, and of graphs without passes.
std::vector<std::pair<std::string, const StoredPass*>> PlacesOf(const StoredRun& run) {
  std::vector<std::pair<std::string, const StoredPass*>> places;
  std::set<std::string> with_passes;
  for (const StoredPass& pass : run.passes) {
    places.emplace_back(pass.record.graph, &pass);
    with_passes.insert(pass.record.graph);
  }
  for (const StoredGraph& graph : run.graphs) {
    if (!with_passes.contains(graph.name)) places.emplace_back(graph.name, nullptr);
  }
  return places;
}

const Fingerprint& ProgramOf(const RankPrograms& programs, const SnapshotInfo& info,
                             SnapshotId id) {
  const auto program = programs.find(id);
  return program == programs.end() ? info.fingerprint : program->second;
}

bool HasOneRunPerRank(const TraceReader& trace) {
  std::set<int32_t> ranks;
  return std::ranges::all_of(
      trace.runs(), [&](const StoredRun& run) { return ranks.insert(run.info.rank).second; });
}

/// Runs whose ranks run one program.
struct Kind {
  std::set<int32_t> ranks;
  std::vector<std::pair<const StoredRun*, SnapshotId>> runs;
};

/// The programs of all ranks at a place of the pipeline.
struct Kinds {
  std::map<Fingerprint, Kind> kinds;
  std::set<int32_t> all;     ///< ranks
  Fingerprint own;           ///< the program of the run that is asked for
  bool is_measured = false;  ///< another run has measures
};

Kinds KindsOf(const TraceReader& trace, const StoredRun& run, const std::string& graph,
              const StoredPass* pass, const std::map<RunId, Measures>& measures,
              const RankPrograms& programs) {
  Kinds found;
  for (const StoredRun& other : trace.runs()) {
    const SnapshotId id = SnapshotAt(other, graph, pass);
    const SnapshotInfo* info = trace.FindSnapshot(id);
    if (info == nullptr) continue;
    const Fingerprint& program = ProgramOf(programs, *info, id);
    if (other.id == run.id) found.own = program;
    found.all.insert(other.info.rank);
    Kind& kind = found.kinds[program];
    kind.ranks.insert(other.info.rank);
    kind.runs.emplace_back(&other, id);
    found.is_measured |= other.id != run.id && !measures.at(other.id).empty();
  }
  return found;
}

}  // namespace

Result<RankFacts> RankFactsOf(TraceReader& trace, const StoredRun& run, const std::string& graph,
                              const StoredPass* pass, const Listing& listing,
                              const std::map<RunId, Measures>& measures,
                              const RankMeasures& of_ranks, const RankPrograms& programs,
                              int64_t& budget) {
  RankFacts facts;
  if (!HasOneRunPerRank(trace)) return facts;
  auto [kinds, all, own, is_measured] = KindsOf(trace, run, graph, pass, measures, programs);
  is_measured |= !of_ranks.empty();
  int64_t nodes = 0;
  for (const auto& [fingerprint, kind] : kinds) {
    if (fingerprint != own)
      nodes += listing.size() + trace.FindSnapshot(kind.runs[0].second)->nodes;
  }
  facts.is_left_out = nodes > budget;
  if (facts.is_left_out || (kinds.size() < 2 && !is_measured)) return facts;
  budget -= nodes;

  IdVector<EntityId, std::set<int32_t>> sets(listing.ids().size(), kinds[own].ranks);
  std::vector<RankView> views;
  for (const auto& [rank, measured] : of_ranks)
    views.push_back({&measured, rank, &listing, Identity(listing.ids())});
  if (views.empty())
    views.push_back({&measures.at(run.id), run.info.rank, &listing, Identity(listing.ids())});
  // Modules and listings of other ranks, as long as views refer to them.
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Listing>> listings;
  for (const auto& [fingerprint, kind] : kinds) {
    IdVector<EntityId, EntityId> at = Identity(listing.ids());
    for (size_t k = 0; k < kind.runs.size(); ++k) {
      const auto& [other, id] = kind.runs[k];
      const bool is_compared = fingerprint != own && k == 0;
      if (other->id == run.id || (!is_compared && measures.at(other->id).empty())) continue;
      STRATA_TRY(std::unique_ptr<Module> module, trace.LoadSnapshot(id));
      modules.push_back(std::move(module));
      listings.push_back(std::make_unique<Listing>(modules.back()->graph({0})));
      if (is_compared) {
        at.assign(listing.ids().size(), EntityId());
        STRATA_TRY(const GraphDiff diff, Diff(listing.root(), listings.back()->root()));
        for (const Pair& pair : diff.pairs) {
          at[pair.before] = pair.after;
          if (!pair.status.changed) sets[pair.before].insert(kind.ranks.begin(), kind.ranks.end());
        }
      }
      views.push_back({&measures.at(other->id), other->info.rank, listings.back().get(), at});
    }
  }
  facts.times = TimesOf(views, listing.ids());
  if (kinds.size() < 2) return facts;
  for (const std::set<int32_t>& set : sets)
    facts.sets.Add(set == all ? "" : Words(set));
  return facts;
}

Result<RankPrograms> RankProgramsOf(TraceReader& trace) {
  RankPrograms programs;
  if (trace.runs().size() < 2 || !HasOneRunPerRank(trace)) return programs;
  std::vector<const StoredRun*> runs;
  for (const StoredRun& run : trace.runs())
    runs.push_back(&run);
  std::ranges::sort(runs, {}, [](const StoredRun* run) { return run->info.rank; });
  for (const auto& [graph, pass] : PlacesOf(trace.runs()[0])) {
    std::vector<RankGraph> graphs;
    std::vector<SnapshotId> snapshots;
    std::set<Fingerprint> distinct;
    for (const StoredRun* run : runs) {
      const SnapshotId id = SnapshotAt(*run, graph, pass);
      const SnapshotInfo* info = trace.FindSnapshot(id);
      if (info == nullptr) continue;
      const auto load = [&trace, id]() -> Result<LoadedGraph> {
        STRATA_TRY(std::shared_ptr<const Module> module, trace.LoadSnapshot(id));
        return LoadedGraph{std::move(module), GraphId{0}};
      };
      graphs.push_back({run->info.rank, info->fingerprint, load});
      snapshots.push_back(id);
      distinct.insert(info->fingerprint);
    }
    if (distinct.size() < 2) continue;
    STRATA_TRY(const std::vector<size_t> first, FindRankPrograms(graphs));
    for (size_t i = 0; i < graphs.size(); ++i) {
      const Fingerprint& program = graphs[first[i]].fingerprint;
      if (program != graphs[i].fingerprint) programs.emplace(snapshots[i], program);
    }
  }
  return programs;
}

std::vector<RankPair> RankPairsOf(const TraceReader& trace, const RankPrograms& programs) {
  std::vector<RankPair> pairs;
  if (trace.runs().size() < 2 || !HasOneRunPerRank(trace)) return pairs;
  for (const auto& [graph, pass] : PlacesOf(trace.runs()[0])) {
    std::set<Fingerprint> seen;
    std::vector<std::pair<const StoredRun*, SnapshotId>> different;  // the first run of each graph
    for (const StoredRun& run : trace.runs()) {
      const SnapshotId id = SnapshotAt(run, graph, pass);
      const SnapshotInfo* info = trace.FindSnapshot(id);
      if (info == nullptr) continue;
      if (seen.insert(ProgramOf(programs, *info, id)).second) different.emplace_back(&run, id);
    }
    for (size_t i = 0; i < different.size(); ++i) {
      for (size_t k = i + 1; k < different.size(); ++k) {
        pairs.push_back({.graph = graph,
                         .pass = pass,
                         .before = different[i].first,
                         .after = different[k].first,
                         .before_snapshot = different[i].second,
                         .after_snapshot = different[k].second});
      }
    }
  }
  return pairs;
}

}  // namespace strata
