#include "bench/diff_eval/experiments/passes.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "bench/diff_eval/graphs/rename.h"
#include "bench/diff_eval/methods/methods.h"
#include "bench/diff_eval/scores/score.h"
#include "bench/diff_eval/truth/truth.h"
#include "diff/diff.h"
#include "store/trace_reader.h"

namespace strata::bench {
namespace {

std::vector<std::string> NamesOf(const Graph& graph) {
  const Listing listing(graph);
  std::vector<std::string> names;
  for (EntityId id : listing.ids())
    names.push_back(listing.name(id));
  return names;
}

std::vector<StableId> IdsOf(const Listing& listing, const std::vector<EntityId>& entities) {
  std::vector<StableId> ids;
  for (EntityId id : entities)
    ids.push_back(listing.graph(id).node(listing[id].node).stable_id);
  return ids;
}

/// What is measured of one pass.
struct PassTally {
  int cases = 0, patched = 0;
  int64_t nodes = 0;
  Score all, touched;

  void Add(const PassTally& other) {
    cases += other.cases;
    patched += other.patched;
    nodes += other.nodes;
    all.Add(other.all);
    touched.Add(other.touched);
  }
};

/// One run of a pass.
class PassCase {
 public:
  PassCase(const StoredPass& pass, std::vector<Provenance> provenance,
           std::unique_ptr<Module> before, std::unique_ptr<Module> after)
      : pass_(pass),
        provenance_(std::move(provenance)),
        before_(std::move(before)),
        after_(std::move(after)),
        names_before_(NamesOf(before_->graph({0}))),
        names_after_(NamesOf(after_->graph({0}))) {
    RenameAll(*before_);
    RenameAll(*after_);
  }

  Result<PassTally> Run(bool verbose) const {
    const Graph &a = before_->graph({0}), &b = after_->graph({0});
    STRATA_TRY(const GraphDiff diff, Diff(a, b));
    STRATA_TRY(const bool patched, PatchMakesAfter(diff));
    STRATA_TRY(const GraphDiff by_id, Diff(a, b, {.stable_ids = true, .provenance = provenance_}));
    // Any of several copies may be the original.
    Lineage lineage;
    std::set<std::pair<int32_t, int32_t>> replaced;
    for (const Relation& relation : by_id.relations) {
      if (relation.kind == RelationKind::kClone) {
        lineage.relations.push_back({relation.kind, IdsOf(diff.before, relation.before),
                                     IdsOf(diff.after, relation.after)});
        continue;
      }
      for (EntityId i : relation.before) {
        for (EntityId j : relation.after)
          AddReplaced(diff.after, i.index, j, replaced);
      }
    }
    STRATA_TRY(const Truth truth, MakeTruth(*before_, *after_, lineage, diff));
    PassTally tally = Compare(diff, truth, replaced, verbose);
    tally.patched = patched;
    return tally;
  }

 private:
  /// What a call of a body replaces is in the body.
  static void AddReplaced(const Listing& after, int32_t i, EntityId j,
                          std::set<std::pair<int32_t, int32_t>>& replaced) {
    replaced.emplace(i, j.index);
    for (const Arg& arg : after.graph(j).args(after[j].node)) {
      if (!arg.is_value()) continue;
      const EntityId attribute = after.FindValue(after[j].graph, arg.value());
      for (const Listing::Scope& scope : after.scopes()) {
        if (scope.referred_by != attribute) continue;
        for (EntityId id : scope.ids)
          replaced.emplace(i, id.index);
      }
    }
  }

  PassTally Compare(const GraphDiff& diff, const Truth& truth,
                    const std::set<std::pair<int32_t, int32_t>>& replaced, bool verbose) const {
    constexpr int kMostLines = 20;
    const Partners claims = PartnersOf(diff), partners = PartnersOf(truth.diff);
    const std::vector<uint64_t> orbits = Orbits(truth.diff, false);
    PassTally tally;
    tally.cases = 1;
    tally.nodes = diff.before.size();
    for (size_t i = 0; i < claims.size(); ++i) {
      const int32_t claim = claims[i], is = partners[i];
      Score score;
      bool touched = truth.touched_before[i];
      if (claim >= 0) {
        touched |= truth.touched_after[static_cast<size_t>(claim)];
        const PairId pair = truth.diff.pair_of_after[EntityId{claim}];
        const int32_t origin = !pair.valid() ? -1 : truth.diff.pairs[pair].before.index;
        score.right =
            claim == is || (origin >= 0 && orbits[static_cast<size_t>(origin)] == orbits[i]);
        score.wrong = score.right == 0 && !replaced.contains({static_cast<int32_t>(i), claim});
      }
      score.missed = score.right == 0 && is >= 0;
      tally.all.Add(score);
      if (touched) tally.touched.Add(score);
    }
    if (verbose && tally.all.wrong + tally.all.missed > 0) {
      fmt::print("  {} {} {}: P {:.4f} R {:.4f}\n", pass_.record.index, pass_.record.name,
                 pass_.record.graph, tally.all.precision(), tally.all.recall());
      int shown = 0;
      for (size_t i = 0; i < claims.size() && shown < kMostLines; ++i) {
        if (claims[i] == partners[i] || replaced.contains({static_cast<int32_t>(i), claims[i]}))
          continue;
        fmt::print("    {} is {}, said {}\n", names_before_[i], After(partners[i]),
                   After(claims[i]));
        ++shown;
      }
    }
    return tally;
  }

  std::string After(int32_t j) const { return j < 0 ? "-" : names_after_[static_cast<size_t>(j)]; }

  const StoredPass& pass_;
  const std::vector<Provenance> provenance_;
  const std::unique_ptr<Module> before_, after_;
  const std::vector<std::string> names_before_, names_after_;
};

void Print(const std::string& name, const PassTally& tally) {
  fmt::print("{:<28} {:>5} {:>8} {:>9.4f} {:>9.4f} {:>9.4f} {:>9.4f} {:>7} {:>7} {:>8}\n", name,
             tally.cases, tally.nodes, tally.all.precision(), tally.all.recall(),
             tally.touched.precision(), tally.touched.recall(), tally.all.wrong, tally.all.missed,
             fmt::format("{}/{}", tally.patched, tally.cases));
}

}  // namespace

Status EvaluatePasses(const std::vector<std::string>& traces, bool verbose) {
  std::map<std::string, PassTally> tallies;
  PassTally total;
  for (const std::string& path : traces) {
    STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
    for (const StoredRun& run : trace->runs()) {
      if (verbose) fmt::print("{}\n", path);
      for (const StoredPass& pass : run.passes) {
        const PassRecord& record = pass.record;
        if (record.outcome != PassOutcome::kOk || record.before == record.after) continue;
        STRATA_TRY(std::unique_ptr<Module> before, trace->LoadSnapshot(record.before));
        STRATA_TRY(std::unique_ptr<Module> after, trace->LoadSnapshot(record.after));
        STRATA_TRY(std::vector<Provenance> provenance, trace->LoadBirths(pass.id));
        const PassCase one(pass, std::move(provenance), std::move(before), std::move(after));
        STRATA_TRY(const PassTally tally, one.Run(verbose));
        tallies[record.name].Add(tally);
        total.Add(tally);
      }
    }
  }
  fmt::print("{:<28} {:>5} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>8}\n", "pass", "cases",
             "nodes", "precision", "recall", "touch P", "touch R", "wrong", "missed", "patches");
  for (const auto& [name, tally] : tallies)
    Print(name, tally);
  Print("all", total);
  return Ok();
}

}  // namespace strata::bench
