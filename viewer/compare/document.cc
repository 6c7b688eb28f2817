#include "viewer/compare/document.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "base/selector.h"
#include "base/unicode.h"
#include "store/environment.h"

namespace strata::viewer {
namespace {

std::string GraphSelector(const StoredRun& run, const std::string& graph) {
  return fmt::format("run={},graph={}", static_cast<int64_t>(run.id), SelectorValue(graph));
}

SceneCounts CountsOf(const PassRecord& record) {
  const auto narrow = [](int64_t count) { return static_cast<int32_t>(count); };
  SceneCounts counts;
  if (record.counts) {
    counts.added = narrow(record.counts->inserted);
    counts.removed = narrow(record.counts->deleted);
    counts.changed = narrow(record.counts->changed);
    counts.moved = narrow(record.counts->moved);
  }
  return counts;
}

void FillSnapshots(const TraceReader& trace, Subject& subject) {
  if (const SnapshotInfo* after = trace.FindSnapshot(subject.after)) {
    subject.counts.nodes = static_cast<int32_t>(after->nodes);
    subject.fingerprint = ToString(after->fingerprint);
  }
  if (const SnapshotInfo* before = trace.FindSnapshot(subject.before))
    subject.nodes_before = before->nodes;
}

Subject PassSubject(const TraceReader& trace, const StoredRun& run, const StoredPass& pass) {
  const PassRecord& record = pass.record;
  Subject subject;
  subject.run = run.id;
  subject.rank = run.info.rank;
  subject.graph = record.graph;
  subject.name = record.name;
  subject.options = record.options;
  subject.index = record.index;
  subject.pass = pass.id;
  subject.before = record.before;
  subject.after = record.after == SnapshotId::kNone ? record.before : record.after;
  subject.counts = CountsOf(record);
  subject.stable_ids = run.info.kind != RunKind::kImport;
  subject.failed = record.outcome == PassOutcome::kFailed;
  subject.ms = static_cast<double>(record.wall_ns) * 1e-6;
  subject.error = record.error;
  subject.reproduce = record.reproduce;
  subject.selector = fmt::format("{},pass={}", GraphSelector(run, record.graph), record.index);
  FillSnapshots(trace, subject);
  return subject;
}

Subject GraphSubject(const TraceReader& trace, const StoredRun& run, const StoredGraph& graph) {
  Subject subject;
  subject.kind = Subject::Kind::kGraph;
  subject.run = run.id;
  subject.rank = run.info.rank;
  subject.graph = subject.name = graph.name;
  subject.before = subject.after = graph.snapshots.back();
  subject.stable_ids = true;
  subject.selector = GraphSelector(run, graph.name);
  FillSnapshots(trace, subject);
  return subject;
}

std::vector<std::string> PartsOf(std::string_view selector) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= selector.size();) {
    const size_t end = std::min(selector.find(',', begin), selector.size());
    std::string_view part = selector.substr(begin, end - begin);
    for (const std::string_view side : {":before", ":after"}) {
      if (part.ends_with(side)) part.remove_suffix(side.size());
    }
    if (!part.empty()) parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

bool Fits(const Subject& subject, const std::vector<std::string>& parts) {
  const std::vector<std::string> own = PartsOf(subject.selector);
  return std::ranges::all_of(parts, [&](const std::string& part) {
    return std::ranges::find(own, part) != own.end() ||
           (subject.kind == Subject::Kind::kPass &&
            part == fmt::format("pass={}", SelectorValue(subject.name))) ||
           part == fmt::format("rank={}", subject.rank);
  });
}

}  // namespace

std::shared_ptr<const Measures> MakeMeasures(const std::vector<StatisticsTable>& tables) {
  auto measures = std::make_shared<Measures>();
  for (const StatisticsTable& table : tables) {
    for (NodeStatistics node : table.nodes) {
      node.time_ns /= std::max<int64_t>(1, table.steps);
      measures->insert_or_assign(static_cast<uint64_t>(node.node), node);
    }
  }
  return measures;
}

std::string Subject::ProofText() const {
  return proof ? VerdictText(*proof) : "";
}

std::string Subject::Title() const {
  return kind == Kind::kPass ? fmt::format("#{} {}", index, Visible(name)) : Visible(name);
}

std::string Contents::PlaceOf(const Subject& subject) const {
  std::string place;
  if (const RunEntry* run = runs.size() > 1 ? RunOf(subject) : nullptr; run != nullptr)
    place = run->world > 1 && !run->is_of_all_ranks
                ? fmt::format("rank {}", run->rank)
                : fmt::format("run {}", static_cast<int64_t>(run->id));
  if (subject.kind == Subject::Kind::kPass)
    place += (place.empty() ? "" : ", ") + Visible(subject.graph);
  return place;
}

SubjectId Contents::Find(std::string_view selector) const {
  const std::vector<std::string> parts = PartsOf(selector);
  SubjectId unchanged;
  for (SubjectId id : IdsOf(subjects)) {
    if (subjects[id].selector == selector) return id;
  }
  for (SubjectId id : IdsOf(subjects)) {
    if (!Fits(subjects[id], parts)) continue;
    if (subjects[id].changed()) return id;
    if (!unchanged.valid()) unchanged = id;
  }
  return unchanged;
}

const RunEntry* Contents::RunOf(const Subject& subject) const {
  const auto found = std::ranges::find(runs, subject.run, &RunEntry::id);
  return found == runs.end() ? nullptr : &*found;
}

Result<std::shared_ptr<Document>> Document::Open(const std::string& file, const WarningSink& warn,
                                                 std::function<Status(double)> on_progress) {
  STRATA_TRY(SourceTrace source,
             SourceTrace::Open(file, "strata-view " + file, warn, std::move(on_progress)));
  std::shared_ptr<Document> document(new Document(std::move(source)));
  document->file_ = file;
  STRATA_TRY(document->reader_, TraceReader::Open(document->source_.path()));
  STRATA_RETURN_IF_ERROR(document->ReadContents());
  return document;
}

std::shared_ptr<const Contents> Document::contents() const {
  const std::scoped_lock lock(mutex_);
  return contents_;
}

Status Document::ReadContents() {
  auto contents = std::make_shared<Contents>();
  for (const StoredRun& run : reader_->runs()) {
    RunEntry entry;
    entry.id = run.id;
    entry.kind = ToString(run.info.kind);
    entry.status = ToString(run.status);
    entry.source = run.info.source;
    entry.command = run.info.command;
    entry.pipeline = run.info.pipeline;
    entry.rank = run.info.rank;
    entry.world = run.info.world;
    entry.is_of_all_ranks = run.info.is_of_all_ranks;
    entry.ranks = RanksText(run.info);
    const SubjectId first = contents->subjects.end_id();
    const PassProofs proofs = ProofsOf(run);
    std::set<std::string> with_passes;
    for (const StoredPass& pass : run.passes) {
      const SubjectId id = contents->subjects.Add(PassSubject(*reader_, run, pass));
      const auto proof = proofs.find({pass.record.index, pass.record.graph});
      if (proof != proofs.end()) contents->subjects[id].proof = proof->second;
      with_passes.insert(pass.record.graph);
    }
    for (const StoredGraph& graph : run.graphs) {
      entry.graphs.push_back(graph.name);
      if (!with_passes.contains(graph.name))
        contents->subjects.Add(GraphSubject(*reader_, run, graph));
    }
    entry.subjects = {first, contents->subjects.end_id()};
    STRATA_TRY(std::vector<StepRecord> steps, reader_->LoadSteps(run.id));
    if (const std::optional<Environment> environment = EnvironmentOf(run))
      entry.planned_steps = environment->steps;
    if (!steps.empty()) {
      entry.last_step = steps.back().step;
      entry.loss = steps.back().loss;
    }
    entry.steps = std::make_shared<const std::vector<StepRecord>>(std::move(steps));
    contents->runs.push_back(std::move(entry));
  }
  contents_ = std::move(contents);
  return Ok();
}

Result<std::shared_ptr<const Contents>> Document::Refresh() {
  const std::scoped_lock lock(mutex_);
  STRATA_TRY(const bool grew, reader_->Refresh());
  if (!grew) return std::shared_ptr<const Contents>();
  measured_run_ = RunId::kNone;
  STRATA_RETURN_IF_ERROR(ReadContents());
  return contents_;
}

Result<std::shared_ptr<const Module>> Document::Load(SnapshotId id) {
  const std::scoped_lock lock(mutex_);
  if (std::shared_ptr<const Module> used = in_use_[id].lock()) return used;
  STRATA_TRY(std::unique_ptr<Module> module, reader_->LoadSnapshot(id));
  std::shared_ptr<const Module> shared(std::move(module));
  in_use_[id] = shared;
  loaded_[next_loaded_] = {id, shared};
  next_loaded_ = (next_loaded_ + 1) % loaded_.size();
  return shared;
}

Result<std::shared_ptr<const Measures>> Document::LoadMeasures(RunId id) {
  const std::scoped_lock lock(mutex_);
  if (measured_run_ == id && measures_) return measures_;
  std::vector<StatisticsTable> tables;
  for (const StoredRun& run : reader_->runs()) {
    if (run.id != id) continue;
    STRATA_TRY(tables, LoadNodeStatistics(*reader_, run));
  }
  measures_ = MakeMeasures(tables);
  measured_run_ = id;
  return measures_;
}

Result<std::vector<Provenance>> Document::LoadProvenance(PassId id) {
  const std::scoped_lock lock(mutex_);
  return reader_->LoadBirths(id);
}

}  // namespace strata::viewer
