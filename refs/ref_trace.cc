#include "refs/ref_trace.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/selector.h"
#include "base/suggest.h"
#include "base/text.h"
#include "store/trace_reader.h"

namespace strata {
namespace {

/// A snapshot that a REF may mean.
struct Candidate {
  const StoredRun* run;
  std::string graph;
  std::string selector;
  SnapshotId snapshot;
};

std::vector<std::string> Unique(std::vector<std::string> names) {
  std::vector<std::string> unique;
  for (std::string& name : names) {
    if (std::ranges::find(unique, name) == unique.end()) unique.push_back(std::move(name));
  }
  return unique;
}

Error NotThere(const Ref& ref, std::string_view kind, std::string_view name,
               const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  const std::string there = names.empty() ? fmt::format("it has none")
                                          : fmt::format("it has {}", Enumerate(names, kShown));
  const bool is_number = kind == "run" || kind == "rank";
  return Error(ErrorCode::kNotFound, "no {} '{}': {}: {}{}", kind, name, ref.file, there,
               is_number ? "" : DidYouMean(name, names));
}

Result<std::vector<const StoredRun*>> FindRuns(const Ref& ref, const TraceReader& trace) {
  std::vector<const StoredRun*> runs;
  std::vector<std::string> ids, ranks;
  for (const StoredRun& run : trace.runs()) {
    ids.push_back(fmt::format("{}", static_cast<int64_t>(run.id)));
    ranks.push_back(run.info.is_of_all_ranks ? fmt::format("0..{}", run.info.world - 1)
                                             : fmt::format("{}", run.info.rank));
    if (ref.run && *ref.run != static_cast<int64_t>(run.id)) continue;
    if (ref.rank && !HasRank(run.info, *ref.rank)) continue;
    runs.push_back(&run);
  }
  if (!runs.empty()) return runs;
  if (ref.run && std::ranges::find(ids, fmt::format("{}", *ref.run)) == ids.end()) {
    return NotThere(ref, "run", fmt::format("{}", *ref.run), ids);
  }
  if (ref.rank) return NotThere(ref, "rank", fmt::format("{}", *ref.rank), Unique(ranks));
  return Error("trace without runs: {}: record one with 'strata opt' or 'strata train'", ref.file);
}

/// A number is a position in the pipeline. A name is a whole name, or, with `…` at its end, the
/// beginning of one.
bool IsPass(const std::string& wanted, const PassRecord& pass) {
  constexpr std::string_view kEllipsis = "…";
  if (wanted == fmt::format("{}", pass.index) || wanted == pass.name) return true;
  return wanted.ends_with(kEllipsis) &&
         pass.name.starts_with(wanted.substr(0, wanted.size() - kEllipsis.size()));
}

Result<std::vector<Candidate>> GraphCandidates(const Ref& ref,
                                               const std::vector<const StoredRun*>& runs) {
  std::vector<Candidate> candidates;
  std::vector<std::string> names;
  for (const StoredRun* run : runs) {
    for (const StoredGraph& graph : run->graphs) {
      names.push_back(graph.name);
      if (ref.graph && *ref.graph != graph.name) continue;
      candidates.push_back(
          {run, graph.name,
           fmt::format("run={},graph={}", static_cast<int64_t>(run->id), SelectorValue(graph.name)),
           graph.snapshots.back()});
    }
  }
  if (candidates.empty()) return NotThere(ref, "graph", ref.graph.value_or(""), Unique(names));
  return candidates;
}

/// `graph` as it stood when pass `index` ran and left it alone: as the last pass before it left it.
std::optional<SnapshotId> SnapshotAt(const StoredRun& run, const std::string& graph,
                                     int32_t index) {
  const StoredGraph* stored = run.FindGraph(graph);
  if (stored == nullptr) return std::nullopt;
  SnapshotId snapshot = stored->snapshots.front();
  for (const StoredPass& pass : run.passes) {
    if (pass.record.graph == graph && pass.record.index < index) snapshot = pass.record.after;
  }
  return snapshot;
}

Result<std::vector<Candidate>> PassCandidates(const Ref& ref,
                                              const std::vector<const StoredRun*>& runs) {
  std::vector<Candidate> candidates;
  std::vector<std::string> names;
  for (const StoredRun* run : runs) {
    for (const StoredPass& pass : run->passes) {
      names.push_back(pass.record.name);
      if (!IsPass(*ref.pass, pass.record)) continue;
      if (ref.graph && *ref.graph != pass.record.graph) continue;
      const bool before = ref.side == Ref::Side::kBefore;
      candidates.push_back({run, pass.record.graph,
                            fmt::format("run={},graph={},pass={}:{}", static_cast<int64_t>(run->id),
                                        SelectorValue(pass.record.graph), pass.record.index,
                                        before ? "before" : "after"),
                            before ? pass.record.before : pass.record.after});
    }
    if (!candidates.empty() || !ref.graph) continue;
    // A pass that left the graph alone has no record of it.
    for (const StoredPass& pass : run->passes) {
      if (!IsPass(*ref.pass, pass.record)) continue;
      const auto snapshot = SnapshotAt(*run, *ref.graph, pass.record.index);
      if (!snapshot) continue;
      const std::string selector =
          fmt::format("run={},graph={},pass={}", static_cast<int64_t>(run->id),
                      SelectorValue(*ref.graph), pass.record.index);
      if (candidates.empty() || candidates.back().selector != selector) {
        candidates.push_back({run, *ref.graph, selector, *snapshot});
      }
    }
  }
  if (!candidates.empty()) return candidates;
  if (ref.graph) STRATA_RETURN_IF_ERROR(GraphCandidates(ref, runs));
  return NotThere(ref, "pass", *ref.pass, Unique(std::move(names)));
}

}  // namespace

Result<Snapshot> LoadFromTrace(const Ref& ref, const std::string& path) {
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
  STRATA_TRY(const std::vector<const StoredRun*> runs, FindRuns(ref, *trace));
  STRATA_TRY(const std::vector<Candidate> candidates,
             ref.pass ? PassCandidates(ref, runs) : GraphCandidates(ref, runs));
  if (candidates.size() > 1) {
    std::vector<std::string> selectors;
    for (const Candidate& candidate : candidates)
      selectors.push_back(candidate.selector);
    return Ambiguous(ref, selectors);
  }
  const Candidate& found = candidates[0];
  Snapshot snapshot;
  snapshot.ref = ref.text;
  STRATA_TRY(snapshot.module, trace->LoadSnapshot(found.snapshot));
  snapshot.graph_id = GraphId{0};
  snapshot.graph_name = found.graph;
  if (found.run->info.kind != RunKind::kImport) {
    std::error_code ignored;
    const std::filesystem::path file = std::filesystem::weakly_canonical(ref.file, ignored);
    snapshot.origin = fmt::format("{}#{}", file.string(), static_cast<int64_t>(found.run->id));
    for (const StoredPass& pass : found.run->passes) {
      STRATA_TRY(const std::vector<Provenance> births, trace->LoadBirths(pass.id));
      snapshot.births.insert(snapshot.births.end(), births.begin(), births.end());
    }
  }
  return snapshot;
}

}  // namespace strata
