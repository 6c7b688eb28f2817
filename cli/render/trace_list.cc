#include "cli/render/trace_list.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/selector.h"
#include "base/unicode.h"
#include "store/environment.h"
#include "store/proofs.h"
#include "store/run_end.h"

namespace strata::cli {
namespace {

/// Whether two records of a run share the index of `pass`: it changed several graphs.
bool HasTwin(const StoredRun& run, const PassRecord& pass) {
  return std::ranges::count(run.passes, pass.index,
                            [](const StoredPass& other) { return other.record.index; }) > 1;
}

/// As `strata.ls/1` of CONTRACTS.md says.
class JsonListing {
 public:
  JsonListing(const TraceReader& trace, const CompileEventsOfRuns& events, const RefOf& ref_of,
              std::string& out)
      : trace_(trace), events_(events), ref_of_(ref_of), json_(out) {}

  void Write() {
    json_.BeginObject().Field("schema", "strata.ls/1").Key("runs").BeginArray();
    for (const StoredRun& run : trace_.runs())
      Run(run);
    json_.EndArray().EndObject();
  }

 private:
  void Run(const StoredRun& run) {
    json_.Break(2).BeginObject();
    json_.Field("id", static_cast<int64_t>(run.id));
    json_.Field("kind", ToString(run.info.kind));
    json_.Field("rank", run.info.rank);
    json_.Field("world", run.info.world);
    if (run.info.is_of_all_ranks) json_.Field("is_of_all_ranks", true);
    json_.Field("source", run.info.source);
    json_.Field("command", run.info.command);
    json_.Field("pipeline", run.info.pipeline);
    json_.Field("status", ToString(run.status));
    if (const std::string why = WhyEnded(run); !why.empty()) json_.Field("ended", why);
    if (const auto environment = EnvironmentOf(run)) {
      json_.Field("threads", environment->threads);
    }
    json_.Key("graphs").BeginArray();
    for (const StoredGraph& graph : run.graphs) {
      const SnapshotInfo& last = *trace_.FindSnapshot(graph.snapshots.back());
      json_.Break(4).BeginObject().Field("name", graph.name);
      Snapshot(last);
      json_.Field("snapshots", static_cast<int64_t>(graph.snapshots.size()));
      if (const std::string_view compilation = CompilationOf(last); !compilation.empty())
        json_.Field("compilation", compilation);
      json_.Field("ref", Ref(run, fmt::format("graph={}", SelectorValue(graph.name)))).EndObject();
    }
    json_.EndArray().Key("passes").BeginArray();
    const PassProofs proofs = ProofsOf(run);
    for (const StoredPass& pass : run.passes)
      Pass(run, pass.record, proofs);
    json_.EndArray().Key("executed").BeginArray();
    for (const ExecutedRange& range : run.executed)
      Executed(run, range);
    if (const auto found = events_.find(run.id); found != events_.end()) {
      json_.EndArray().Key("compile_events").BeginArray();
      for (const CompileEvent& event : found->second) {
        json_.Break(4).BeginObject().Field("compilation", event.compile);
        json_.Field("what", event.what).Field("function", event.function);
        json_.Field("reason", event.reason).EndObject();
      }
    }
    json_.EndArray().Key("artifacts").BeginArray();
    for (const ArtifactInfo& artifact : run.artifacts) {
      json_.Break(4).BeginObject().Field("name", artifact.name).Field("kind", artifact.kind);
      json_.Field("bytes", artifact.bytes).EndObject();
    }
    json_.EndArray().EndObject();
  }

  void Pass(const StoredRun& run, const PassRecord& pass, const PassProofs& proofs) {
    json_.Break(4).BeginObject();
    json_.Field("index", pass.index).Field("name", pass.name).Field("options", pass.options);
    json_.Field("status", ToString(pass.outcome));
    json_.Field("ms", static_cast<double>(pass.wall_ns) / 1e6).Field("graph", pass.graph);
    SnapshotOrNull("before", pass.before);
    SnapshotOrNull("after", pass.after);
    json_.Key("counts").BeginObject();
    json_.Field("inserted", pass.counts->inserted).Field("deleted", pass.counts->deleted);
    json_.Field("changed", pass.counts->changed).Field("moved", pass.counts->moved).EndObject();
    if (pass.outcome == PassOutcome::kFailed) {
      json_.Field("error", pass.error).Field("reproduce", pass.reproduce);
    }
    if (const auto proof = proofs.find({pass.index, pass.graph}); proof != proofs.end())
      Proof(proof->second);
    const std::string selector = fmt::format("pass={}", pass.index);
    json_.Field("ref", Ref(run, HasTwin(run, pass) ? fmt::format("{},graph={}", selector,
                                                                 SelectorValue(pass.graph))
                                                   : selector));
    json_.EndObject();
  }

  void Proof(const PassProof& proof) {
    json_.Key("proof").BeginObject().Field("verdict", proof.verdict).Field("node", proof.node);
    json_.Field("class", proof.bug).Field("what", proof.what);
    json_.Field("scope", proof.scope).EndObject();
  }

  void Executed(const StoredRun& run, const ExecutedRange& range) {
    json_.Break(4).BeginObject().Field("graph", range.graph);
    json_.Field("first_step", range.first_step).Field("last_step", range.last_step);
    json_.Field("fingerprint", ToString(range.fingerprint)).Key("pass");
    const StoredPass* pass = FindExecutedPass(trace_, run, range);
    pass == nullptr ? json_.Null() : json_.Int(pass->record.index);
    json_.EndObject();
  }

  void Snapshot(const SnapshotInfo& snapshot) {
    json_.Field("fingerprint", ToString(snapshot.fingerprint)).Field("nodes", snapshot.nodes);
  }
  void SnapshotOrNull(std::string_view key, SnapshotId id) {
    json_.Key(key);
    const SnapshotInfo* snapshot = trace_.FindSnapshot(id);
    if (snapshot == nullptr) {
      json_.Null();
      return;
    }
    json_.BeginObject();
    Snapshot(*snapshot);
    json_.EndObject();
  }
  std::string Ref(const StoredRun& run, std::string_view selector) const {
    if (ref_of_) return ref_of_(run, std::string(selector));
    return fmt::format("{}#run={},{}", trace_.path(), static_cast<int64_t>(run.id), selector);
  }

  const TraceReader& trace_;
  const CompileEventsOfRuns& events_;
  const RefOf& ref_of_;
  JsonWriter json_;
};

using Row = std::vector<std::string>;

/// Aligns columns: those of `right` to the right, the others to the left.
void AppendTable(std::vector<Row> rows, std::initializer_list<size_t> right, std::string& out) {
  std::vector<size_t> widths;
  for (Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = Visible(row[i]);
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  for (const Row& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      const bool to_right = std::ranges::find(right, i) != right.end();
      line += "  " + (to_right ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

/// The outcome of a pass that its counts do not show; empty for a pass that changed something.
std::string Remark(const PassRecord& pass) {
  if (pass.outcome != PassOutcome::kOk) return std::string(ToString(pass.outcome));
  return pass.counts == ChangeCounts() ? "names or metadata only" : "";
}

/// A count with its sign; nothing for zero, so that what happened stands out.
std::string Signed(std::string_view sign, int64_t count) {
  return count == 0 ? "" : fmt::format("{}{}", sign, count);
}

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

class TextListing {
 public:
  TextListing(const TraceReader& trace, const CompileEventsOfRuns& events, std::string& out)
      : trace_(trace), events_(events), out_(out) {}

  void Write() {
    if (trace_.runs().empty()) out_ += fmt::format("{}: no runs yet\n", trace_.path());
    for (const StoredRun& run : trace_.runs()) {
      if (run.id != trace_.runs().front().id) out_ += "\n";
      Run(run);
    }
  }

 private:
  void Run(const StoredRun& run) {
    out_ += fmt::format("run {}: {}, {}, {}\n", static_cast<int64_t>(run.id),
                        ToString(run.info.kind), RanksText(run.info), ToString(run.status));
    if (const std::string why = WhyEnded(run); !why.empty())
      out_ += fmt::format("  ended: {}\n", Visible(why));
    if (!run.info.source.empty()) out_ += fmt::format("  source: {}\n", Visible(run.info.source));
    if (!run.info.pipeline.empty())
      out_ += fmt::format("  pipeline: {}\n", Visible(run.info.pipeline));
    if (const auto environment = EnvironmentOf(run)) {
      out_ += fmt::format("  threads: {}\n", environment->threads);
    }
    Graphs(run);
    Passes(run);
    ExecutedRanges(run);
    CompileEvents(run);
    Artifacts(run);
  }

  void Graphs(const StoredRun& run) {
    if (run.graphs.empty()) return;
    std::vector<Row> rows = {{"graph", "nodes", "fingerprint", "snapshots", "compilation"}};
    bool any_compilation = false;
    for (const StoredGraph& graph : run.graphs) {
      const SnapshotInfo& last = *trace_.FindSnapshot(graph.snapshots.back());
      const std::string_view compilation = CompilationOf(last);
      any_compilation |= !compilation.empty();
      rows.push_back({graph.name, fmt::format("{}", last.nodes), ToString(last.fingerprint),
                      fmt::format("{}", graph.snapshots.size()),
                      compilation.empty() ? "" : fmt::format("[{}]", compilation)});
    }
    if (!any_compilation) {
      for (Row& row : rows)
        row.pop_back();
    }
    out_ += "\n";
    AppendTable(rows, {1, 3}, out_);
  }

  void Passes(const StoredRun& run) {
    if (run.passes.empty()) return;
    std::vector<Row> rows = {{"#", "pass", "graph", "ms", "nodes", "+", "−", "~", "↷", ""}};
    const PassProofs proofs = ProofsOf(run);
    if (!proofs.empty()) rows[0].insert(rows[0].end() - 1, "proof");
    for (const StoredPass& stored : run.passes) {
      const PassRecord& pass = stored.record;
      const SnapshotInfo* after = trace_.FindSnapshot(pass.after);
      const std::string name =
          pass.options.empty() ? pass.name : fmt::format("{}{{{}}}", pass.name, pass.options);
      rows.push_back({fmt::format("{}", pass.index), name, pass.graph,
                      fmt::format("{:.1f}", static_cast<double>(pass.wall_ns) / 1e6),
                      after == nullptr ? "" : fmt::format("{}", after->nodes),
                      Signed("+", pass.counts->inserted), Signed("−", pass.counts->deleted),
                      Signed("~", pass.counts->changed), Signed("↷", pass.counts->moved),
                      Remark(pass)});
      if (proofs.empty()) continue;
      const auto proof = proofs.find({pass.index, pass.graph});
      rows.back().insert(rows.back().end() - 1,
                         proof == proofs.end() ? "" : VerdictText(proof->second));
    }
    out_ += "\n";
    AppendTable(rows, {0, 3, 4, 5, 6, 7, 8}, out_);
    for (const StoredPass& stored : run.passes) {
      const PassRecord& pass = stored.record;
      if (pass.outcome != PassOutcome::kFailed) continue;
      out_ += fmt::format("\n  pass {} {} failed: {}\n", pass.index, Visible(pass.name),
                          Visible(FirstLine(pass.error)));
      if (!pass.reproduce.empty()) out_ += fmt::format("    {}\n", Visible(pass.reproduce));
    }
  }

  void ExecutedRanges(const StoredRun& run) {
    if (run.executed.empty()) return;
    std::vector<Row> rows = {{"executed", "steps", "snapshot", "fingerprint"}};
    for (size_t i = 0; i < run.executed.size(); ++i) {
      const ExecutedRange& range = run.executed[i];
      // A validation runs at some steps; its ranges are one row.
      const auto is_more = [&](const ExecutedRange& next) {
        return next.graph == range.graph && next.fingerprint == range.fingerprint;
      };
      int64_t count = range.last_step - range.first_step + 1;
      for (; i + 1 < run.executed.size() && is_more(run.executed[i + 1]); ++i)
        count += run.executed[i + 1].last_step - run.executed[i + 1].first_step + 1;
      const int64_t last_step = run.executed[i].last_step;
      std::string steps = fmt::format("{} … {}", range.first_step, last_step);
      if (count <= last_step - range.first_step) steps += fmt::format(" ({} steps)", count);
      const StoredPass* pass = FindExecutedPass(trace_, run, range);
      rows.push_back({range.graph, std::move(steps),
                      !IsExecutedRecorded(trace_, run, range) ? "no recorded graph"
                      : pass == nullptr
                          ? "before all passes"
                          : fmt::format("after pass {} {}", pass->record.index, pass->record.name),
                      ToString(range.fingerprint)});
    }
    out_ += "\n";
    AppendTable(rows, {}, out_);
  }

  void CompileEvents(const StoredRun& run) {
    const auto found = events_.find(run.id);
    if (found == events_.end()) return;
    std::vector<Row> rows = {{"compilation", "what", "function", "reason"}};
    for (const CompileEvent& event : found->second)
      rows.push_back(
          {fmt::format("[{}]", event.compile), event.what, event.function, event.reason});
    out_ += "\n";
    AppendTable(rows, {}, out_);
  }

  void Artifacts(const StoredRun& run) {
    std::vector<Row> rows = {{"artifact", "kind", "bytes"}};
    for (const ArtifactInfo& artifact : run.artifacts) {
      if (artifact.kind == kEnvironmentKind || artifact.kind == kProofKind ||
          artifact.kind == kRunEndKind) {
        continue;  // seen above
      }
      rows.push_back({artifact.name, artifact.kind, fmt::format("{}", artifact.bytes)});
    }
    if (rows.size() == 1) return;
    out_ += "\n";
    AppendTable(rows, {2}, out_);
  }

  const TraceReader& trace_;
  const CompileEventsOfRuns& events_;
  std::string& out_;
};

}  // namespace

std::string ListText(const TraceReader& trace, const CompileEventsOfRuns& events) {
  std::string out;
  TextListing(trace, events, out).Write();
  return out;
}

std::string ListJson(const TraceReader& trace, const CompileEventsOfRuns& events,
                     const RefOf& ref_of) {
  std::string out;
  JsonListing(trace, events, ref_of, out).Write();
  return out + "\n";
}

}  // namespace strata::cli
