#include "tlparse-export/report/report_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/selector.h"
#include "diff/diff.h"
#include "diff/history/lineage.h"
#include "store/proofs.h"
#include "tlparse-export/report/causes.h"
#include "tlparse-export/report/log_view.h"
#include "tlparse-export/report/measures.h"
#include "tlparse-export/report/rank_sets.h"
#include "tlparse-export/report/report_parts.h"
#include "tlparse-export/report/stages.h"

namespace strata {
namespace {

class ReportMaker {
 public:
  ReportMaker(TraceReader& trace, const ReportOptions& options) : trace_(trace), options_(options) {
    model_.title = options.title;
    if (model_.title.empty())
      model_.title = std::filesystem::path(trace.path()).filename().string();
  }

  Result<ReportModel> Run() {
    for (const StoredRun& run : trace_.runs()) {
      STRATA_TRY(measures_[run.id], LoadMeasures(trace_, run));
      STRATA_TRY(rank_measures_[run.id], LoadRankMeasures(trace_, run));
    }
    STRATA_TRY(programs_, RankProgramsOf(trace_));
    for (const StoredRun& run : trace_.runs())
      STRATA_RETURN_IF_ERROR(AddRun(run));
    for (const RankPair& pair : RankPairsOf(trace_, programs_))
      STRATA_RETURN_IF_ERROR(AddRankPair(pair));
    STRATA_RETURN_IF_ERROR(parts_.Finish(options_.max_bytes, model_));
    STRATA_RETURN_IF_ERROR(AddLogs());
    return std::move(model_);
  }

 private:
  /// What a pass did, as shown.
  struct Known {
    int32_t detail = -1;
    ChangeCounts counts;
    int64_t derived = 0;
    std::vector<ReportCause> causes;
  };
  /// The passes of one graph of a run, one after the other.
  struct Chain {
    std::unique_ptr<Lineage> lineage;
    SnapshotId last = SnapshotId::kNone;
    std::string past;  ///< fingerprints of all snapshots: equal pasts are shown the same
    std::vector<const StoredPass*> skipped;  ///< that the lineage does not know yet
  };
  struct Compared {
    std::shared_ptr<const Module> before, after;
    GraphDiff diff;
    std::vector<Provenance> births;
  };
  /// Logs and artifacts take what room the graphs have left.
  Status AddLogs() {
    size_t bytes = PageBytes(model_);
    std::vector<LogFacts> facts;
    for (const StoredRun& run : trace_.runs()) {
      STRATA_TRY(
          LogView log,
          MakeLogView(trace_, run, options_.max_bytes - std::min(bytes, options_.max_bytes)));
      for (ReportPart& part : log.parts) {
        bytes += part.packed.size();
        model_.parts.push_back(std::move(part));
      }
      std::ranges::move(log.left_out, std::back_inserter(model_.left_out));
      if (!log.facts.compiles.empty()) facts.push_back(std::move(log.facts));
    }
    model_.log_tables = CompareLogs(facts);
    return Ok();
  }

  Status AddRun(const StoredRun& stored) {
    ReportRun run;
    run.id = static_cast<int64_t>(stored.id);
    run.kind = ToString(stored.info.kind);
    run.status = ToString(stored.status);
    run.source = stored.info.source;
    run.command = stored.info.command;
    run.pipeline = stored.info.pipeline;
    run.rank = stored.info.rank;
    run.world = stored.info.world;
    run.is_of_all_ranks = stored.info.is_of_all_ranks;
    run.ranks = RanksText(stored.info);
    chains_.clear();
    const Measures& measures = measures_[stored.id];
    std::set<std::string> seen;  // graphs that a pass shows
    for (const StoredPass& pass : stored.passes) {
      STRATA_RETURN_IF_ERROR(AddPass(stored, pass, measures, run));
      if (run.passes.back().detail >= 0) seen.insert(pass.record.graph);
    }
    for (const StoredGraph& graph : stored.graphs) {
      STRATA_RETURN_IF_ERROR(AddGraph(stored, graph, !seen.contains(graph.name), measures, run));
    }
    stage_nodes_ = kNodesOfStages;
    for (const Stage& stage : StagesOf(trace_, stored))
      STRATA_RETURN_IF_ERROR(AddStage(stored, stage, run));
    for (const ExecutedRange& range : stored.executed) {
      run.executed.push_back(range);
      const StoredPass* pass = FindExecutedPass(trace_, stored, range);
      if (!IsExecutedRecorded(trace_, stored, range)) {
        run.executed_selectors.emplace_back();
        continue;
      }
      run.executed_selectors.push_back(pass == nullptr ? GraphSelector(stored, range.graph)
                                                       : PassSelector(stored, *pass));
    }
    STRATA_TRY(run.steps, trace_.LoadSteps(stored.id));
    STRATA_TRY(run.events, ReadCompileEvents(trace_, stored));
    model_.runs.push_back(std::move(run));
    return Ok();
  }

  static std::string GraphSelector(const StoredRun& run, const std::string& graph) {
    return fmt::format("run={},graph={}", static_cast<int64_t>(run.id), SelectorValue(graph));
  }
  static std::string PassSelector(const StoredRun& run, const StoredPass& pass) {
    return fmt::format("run={},graph={},pass={}", static_cast<int64_t>(run.id),
                       SelectorValue(pass.record.graph), pass.record.index);
  }

  /// Snapshots of neighbouring passes are the same, so the last two are kept.
  Result<std::shared_ptr<const Module>> Load(SnapshotId id) {
    for (const auto& [kept, module] : loaded_) {
      if (kept == id) return module;
    }
    STRATA_TRY(std::unique_ptr<Module> module, trace_.LoadSnapshot(id));
    loaded_[next_loaded_] = {id, std::shared_ptr<const Module>(std::move(module))};
    next_loaded_ = (next_loaded_ + 1) % loaded_.size();
    return loaded_[(next_loaded_ + 1) % loaded_.size()].second;
  }

  Result<ReportSnapshot> Snapshot(SnapshotId id) {
    const SnapshotInfo* info = trace_.FindSnapshot(id);
    if (info == nullptr) return ReportSnapshot{};
    ReportSnapshot snapshot = {.nodes = info->nodes, .fingerprint = ToString(info->fingerprint)};
    if (const auto program = programs_.find(id); program != programs_.end())
      snapshot.program = ToString(program->second);
    const auto [known, is_new] = facts_of_.try_emplace(info->everything, -1);
    if (is_new) {
      STRATA_TRY(const std::shared_ptr<const Module> module, Load(id));
      known->second = parts_.AddFacts(module->graph({0}));
    }
    parts_.Fill(known->second, snapshot);
    return snapshot;
  }

  Status AddPass(const StoredRun& stored, const StoredPass& pass, const Measures& measures,
                 ReportRun& run) {
    const PassRecord& record = pass.record;
    ReportPass shown;
    shown.index = record.index;
    shown.name = record.name;
    shown.options = record.options;
    shown.graph = record.graph;
    shown.status = ToString(record.outcome);
    shown.wall_ns = record.wall_ns;
    STRATA_TRY(shown.before, Snapshot(record.before));
    STRATA_TRY(shown.after, Snapshot(record.after));
    if (record.counts) shown.counts = *record.counts;
    shown.error = record.error;
    shown.reproduce = record.reproduce;
    const PassProofs proofs = ProofsOf(stored);
    if (const auto proof = proofs.find({record.index, record.graph}); proof != proofs.end())
      shown.proof = VerdictText(proof->second);
    shown.selector = PassSelector(stored, pass);
    if (record.before != SnapshotId::kNone && record.after != SnapshotId::kNone) {
      STRATA_RETURN_IF_ERROR(AddDiff(stored, pass, measures, shown));
    }
    run.passes.push_back(std::move(shown));
    return Ok();
  }

  Status AddDiff(const StoredRun& stored, const StoredPass& pass, const Measures& measures,
                 ReportPass& shown) {
    const PassRecord& record = pass.record;
    if (record.before == record.after) return Ok();
    Chain& chain = chains_[record.graph];
    if (chain.last != record.before) {
      chain = Chain();
      chain.past = Name(record.before);
    }
    chain.last = record.after;
    chain.past += Name(record.after);
    // A rank that went the same way as another one so far shows the same. Measured times differ.
    if (const auto known = known_.find(chain.past); known != known_.end() && measures.empty()) {
      Show(known->second, shown);
      chain.skipped.push_back(&pass);
      return Ok();
    }
    for (const StoredPass* skipped : std::exchange(chain.skipped, {})) {
      STRATA_TRY(const Compared compared, Compare(stored, *skipped));
      Follow(compared, chain);
    }
    STRATA_TRY(const Compared compared, Compare(stored, pass));
    Follow(compared, chain);
    Known known = CountsOf(compared.diff);
    known.causes = CausesOf(compared.diff);
    if (!compared.diff.Equal()) {
      STRATA_TRY(const RankFacts ranks,
                 RankFactsOf(trace_, stored, record.graph, &pass, compared.diff.after, measures_,
                             rank_measures_[stored.id], programs_, rank_nodes_));
      // Only the graph that ran was timed, so bytes and the peak alone can be compared.
      const CostComparison costs = ShapeCosts(compared.diff);
      STRATA_TRY(known.detail, parts_.AddScene(fmt::format("pass {}", record.name), compared.diff,
                                               {.lineage = chain.lineage.get(),
                                                .measures = &measures,
                                                .ranks = &ranks,
                                                .costs = &costs}));
    }
    Show(known, shown);
    known_.insert_or_assign(chain.past, std::move(known));
    return Ok();
  }

  /// Ranks that compiled alike show the same.
  Status AddStage(const StoredRun& stored, const Stage& stage, ReportRun& run) {
    const SnapshotId from = stage.from->snapshots.back(), to = stage.to->snapshots.front();
    ReportStage shown;
    shown.from = stage.from->name;
    shown.graph = stage.to->name;
    STRATA_TRY(shown.before, Snapshot(from));
    STRATA_TRY(shown.after, Snapshot(to));
    shown.selector = GraphSelector(stored, stage.to->name);
    shown.base = GraphSelector(stored, stage.from->name);
    STRATA_TRY(const Known* known, CompareApart(fmt::format("{} from {}", shown.graph, shown.from),
                                                from, to, stage_nodes_));
    shown.compared = known != nullptr;
    if (known != nullptr) Show(*known, shown);
    run.stages.push_back(std::move(shown));
    return Ok();
  }

  /// Every two ranks that differ at a place.
  Status AddRankPair(const RankPair& pair) {
    ReportRankPair shown;
    const int32_t ranks[] = {pair.before->info.rank, pair.after->info.rank};
    const std::string place = pair.pass == nullptr ? pair.graph : pair.pass->record.name;
    shown.name = fmt::format("{}: rank {} → rank {}", place, ranks[0], ranks[1]);
    shown.graph = pair.graph;
    shown.index = pair.pass == nullptr ? -1 : pair.pass->record.index;
    shown.run = static_cast<int64_t>(pair.after->id);
    STRATA_TRY(shown.before, Snapshot(pair.before_snapshot));
    STRATA_TRY(shown.after, Snapshot(pair.after_snapshot));
    const auto selector = [&](const StoredRun& run) {
      return pair.pass == nullptr ? GraphSelector(run, pair.graph) : PassSelector(run, *pair.pass);
    };
    shown.base = selector(*pair.before);
    shown.selector = selector(*pair.after);
    STRATA_TRY(const Known* known,
               CompareApart(shown.name, pair.before_snapshot, pair.after_snapshot, pair_nodes_));
    if (known != nullptr) Show(*known, shown);
    model_.rank_pairs.push_back(std::move(shown));
    return Ok();
  }

  /// Two graphs that no pass joins. Null when that is beyond the budget, of nodes of both sides.
  Result<const Known*> CompareApart(std::string title, SnapshotId from, SnapshotId to,
                                    int64_t& budget) {
    const std::string key = fmt::format("{} to {}", Name(from), Name(to));
    if (const auto known = known_.find(key); known != known_.end()) return &known->second;
    const int64_t nodes = trace_.FindSnapshot(from)->nodes + trace_.FindSnapshot(to)->nodes;
    if (nodes > budget) return nullptr;
    budget -= nodes;
    STRATA_TRY(const std::shared_ptr<const Module> before, Load(from));
    STRATA_TRY(const std::shared_ptr<const Module> after, Load(to));
    STRATA_TRY(const GraphDiff diff, Diff(before->graph({0}), after->graph({0})));
    Known& known = known_[key] = CountsOf(diff);
    if (!diff.Equal()) {
      STRATA_TRY(known.detail, parts_.AddScene(std::move(title), diff, {}));
    }
    return &known;
  }

  static Known CountsOf(const GraphDiff& diff) {
    const DiffSummary& summary = diff.summary;
    return {.counts = {.inserted = summary.inserted,
                       .deleted = summary.deleted,
                       .changed = summary.changed,
                       .moved = summary.moved},
            .derived = summary.derived,
            .causes = {}};
  }

  template <class Shown>
  static void Show(const Known& known, Shown& shown) {
    shown.counts = known.counts;
    shown.derived = known.derived;
    shown.detail = known.detail;
    if constexpr (requires { shown.causes; }) shown.causes = known.causes;
  }

  Result<Compared> Compare(const StoredRun& stored, const StoredPass& pass) {
    STRATA_TRY(std::shared_ptr<const Module> before, Load(pass.record.before));
    STRATA_TRY(std::shared_ptr<const Module> after, Load(pass.record.after));
    STRATA_TRY(std::vector<Provenance> births, trace_.LoadBirths(pass.id));
    DiffOptions options;
    options.stable_ids = stored.info.kind != RunKind::kImport;
    if (options.stable_ids) options.provenance = births;
    STRATA_TRY(GraphDiff diff, Diff(before->graph({0}), after->graph({0}), options));
    return Compared{std::move(before), std::move(after), std::move(diff), std::move(births)};
  }

  static void Follow(const Compared& compared, Chain& chain) {
    if (chain.lineage == nullptr)
      chain.lineage = std::make_unique<Lineage>(compared.diff.before.size());
    chain.lineage->Add(compared.diff, compared.births);
  }

  std::string Name(SnapshotId id) const { return ToString(trace_.FindSnapshot(id)->everything); }

  Status AddGraph(const StoredRun& stored, const StoredGraph& graph, bool draw,
                  const Measures& measures, ReportRun& run) {
    ReportGraph shown;
    shown.name = graph.name;
    STRATA_TRY(shown.last, Snapshot(graph.snapshots.back()));
    shown.selector = GraphSelector(stored, graph.name);
    if (draw) {
      const auto [known, is_new] = known_.try_emplace(Name(graph.snapshots.back()));
      if (is_new || !measures.empty()) {
        STRATA_TRY(const std::shared_ptr<const Module> module, Load(graph.snapshots.back()));
        DiffOptions options;
        options.stable_ids = true;
        STRATA_TRY(const GraphDiff diff, Diff(module->graph({0}), module->graph({0}), options));
        STRATA_TRY(const RankFacts ranks,
                   RankFactsOf(trace_, stored, graph.name, nullptr, diff.after, measures_,
                               rank_measures_[stored.id], programs_, rank_nodes_));
        STRATA_TRY(known->second.detail, parts_.AddScene(fmt::format("graph {}", graph.name), diff,
                                                         {.measures = &measures, .ranks = &ranks}));
      }
      shown.detail = known->second.detail;
    }
    run.graphs.push_back(std::move(shown));
    return Ok();
  }

  TraceReader& trace_;
  const ReportOptions& options_;
  ReportModel model_;
  ReportParts parts_;
  std::unordered_map<std::string, Known> known_;  // by the fingerprints of all graphs up to it
  std::map<std::string, Chain> chains_;           // of the run, by graph
  RankPrograms programs_;
  std::map<Fingerprint, int32_t> facts_of_;  // by everything
  std::map<RunId, Measures> measures_;
  std::map<RunId, RankMeasures> rank_measures_;
  // Nodes that may still be compared.
  int64_t stage_nodes_ = 0, rank_nodes_ = kNodesOfRanks, pair_nodes_ = kNodesOfRanks;
  std::array<std::pair<SnapshotId, std::shared_ptr<const Module>>, 2> loaded_;
  size_t next_loaded_ = 0;
};

}  // namespace

Result<ReportModel> MakeReport(TraceReader& trace, const ReportOptions& options) {
  return ReportMaker(trace, options).Run();
}

}  // namespace strata
