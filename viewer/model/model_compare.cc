#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/unicode.h"
#include "refs/diff_costs.h"
#include "refs/ref.h"
#include "viewer/model/match_pins.h"
#include "viewer/model/model.h"

namespace strata::viewer {
namespace {

Result<Comparison::Input> LoadSubject(Document& document, const Subject& subject) {
  Comparison::Input input;
  input.title = subject.Title();
  input.file = document.file();
  STRATA_TRY(input.before, document.Load(subject.before));
  STRATA_TRY(input.after, document.Load(subject.after));
  input.options.stable_ids = subject.stable_ids || subject.before == subject.after;
  STRATA_TRY(input.measures, document.LoadMeasures(subject.run));
  if (subject.stable_ids && subject.pass != PassId::kNone) {
    STRATA_TRY(input.options.provenance, document.LoadProvenance(subject.pass));
  }
  return input;
}

/// What the graphs of two REFs cost, as far as it was recorded.
std::function<Result<CostComparison>(const GraphDiff&)> RecordedCosts(CostSource before,
                                                                      CostSource after) {
  constexpr bool kNeedsTimes = false;
  return [before = std::move(before), after = std::move(after)](const GraphDiff& diff) {
    return CostsOfDiff(diff, before, after, kNeedsTimes);
  };
}

/// The graph after `from`, and the graph after `subject`.
Result<Comparison::Input> LoadAgainst(Document& document, const Subject& from,
                                      const Subject& subject, std::string title) {
  Comparison::Input input;
  input.title = std::move(title);
  input.file = document.file();
  STRATA_TRY(input.before, document.Load(from.after));
  STRATA_TRY(input.after, document.Load(subject.after));
  STRATA_TRY(input.measures, document.LoadMeasures(subject.run));
  input.options.stable_ids =
      from.run == subject.run && from.graph == subject.graph && subject.stable_ids;
  const auto source = [&](const Subject& side) {
    return CostSource{fmt::format("{}#{}", document.trace_path(), side.selector), side.graph};
  };
  input.costs = RecordedCosts(source(from), source(subject));
  return input;
}

/// What was measured of the graph that a REF names; null: nothing.
Result<std::shared_ptr<const Measures>> MeasuresOf(const std::string& text, const Graph& graph) {
  STRATA_TRY(const GraphTimes times, GraphTimes::Open(text, ""));
  const std::optional<GraphTimes::Times> found = times.Of(graph, "");
  return found ? MakeMeasures({found->table}) : nullptr;
}

Result<Comparison::Input> LoadPair(const std::string& before, const std::string& after) {
  STRATA_TRY(Snapshot a, LoadRef(before));
  STRATA_TRY(Snapshot b, LoadRef(after));
  Comparison::Input input;
  input.title = fmt::format("{} → {}", Visible(before), Visible(after));
  STRATA_TRY(const Ref ref, ParseRef(before));
  input.file = ref.file;
  input.options = OptionsFor(a, b);
  STRATA_TRY(input.measures, MeasuresOf(after, b.graph()));
  input.costs = RecordedCosts({before, a.graph_name}, {after, b.graph_name});
  input.before_graph = a.graph_id;
  input.after_graph = b.graph_id;
  input.before = std::shared_ptr<const Module>(std::move(a.module));
  input.after = std::shared_ptr<const Module>(std::move(b.module));
  return input;
}

/// Those that are kept, or `given`.
Status TakePins(std::optional<Pins> given, Comparison::Input& input) {
  const Graph &before = input.before->graph(input.before_graph),
              &after = input.after->graph(input.after_graph);
  input.pins = std::move(given);
  if (!input.pins) {
    STRATA_TRY(input.pins, ReadPins(input.file, before, after));
  }
  if (input.pins) input.warnings = UsePins(*input.pins, before, after, input.options);
  return Ok();
}

}  // namespace

void Model::Show(SubjectId subject) {
  ShowPair(subject, {});
}

void Model::ShowAgainst(SubjectId subject, SubjectId from) {
  ShowPair(subject, from);
}

void Model::ShowPair(SubjectId subject, SubjectId from) {
  if (!contents_ || !subject.valid() || (subject == subject_ && from == from_)) return;
  Remember();
  if (subject_.valid() && subject != subject_) direction_ = subject > subject_ ? 1 : -1;
  subject_ = subject;
  from_ = from;
  error_.clear();
  if (is_about_subject_) Say("");
  if (!from.valid() && this->subject()->failed) {
    workers_.Cancel("compare");
    awaited_.reset();
    graph_.reset();
    return;
  }
  Compare(WantedOf(subject, from));
}

std::string Model::KeyOf(SubjectId subject) const {
  const Subject& s = contents_->subjects[subject];
  return fmt::format("{} {} {}", static_cast<int64_t>(s.before), static_cast<int64_t>(s.after),
                     static_cast<int64_t>(s.pass));
}

Model::Wanted Model::WantedOf(SubjectId subject, SubjectId from) const {
  const Subject& s = contents_->subjects[subject];
  const auto number = [](auto id) { return static_cast<int64_t>(id); };
  if (!from.valid()) {
    return {KeyOf(subject), fmt::format("{} {}", number(s.run), s.graph),
            [document = document_, s] { return LoadSubject(*document, s); }};
  }
  const Subject& f = contents_->subjects[from];
  return {fmt::format("{} {}", number(f.after), number(s.after)),
          fmt::format("{} {} {}", from.index, number(s.run), s.graph),
          [document = document_, s, f, title = Title()] {
            return LoadAgainst(*document, f, s, title);
          }};
}

void Model::CompareRefs(const std::string& before, const std::string& after) {
  Compare({"refs", opening_name_, [before, after] { return LoadPair(before, after); }});
}

void Model::Compare(Wanted wanted) {
  awaited_.reset();
  shown_ = wanted;
  if (std::shared_ptr<const Comparison> kept = kept_.Find(wanted.key)) {
    workers_.Cancel("compare");
    // What was a neighbour of the pass shown before would take the room of those of this one.
    CancelAhead();
    ShowComparison(std::move(kept), wanted.graph_key);
    return;
  }
  if (ahead_ == wanted.key) {
    workers_.Cancel("compare");
    awaited_ = wanted.graph_key;
    return;
  }
  CancelAhead();
  workers_.Post("compare", ComparisonJob(wanted, [this, wanted](const Compared& compared) {
                  if (!compared) return Fail(compared.error());
                  KeepComparison(wanted.key, *compared);
                  ShowComparison(*compared, wanted.graph_key);
                }));
}

Workers::Job Model::ComparisonJob(const Wanted& wanted, std::function<void(const Compared&)> done,
                                  std::optional<Pins> pins) const {
  return [lanes = lanes_, load = wanted.load, done = std::move(done), pins = std::move(pins),
          keeps = writes_files](const Outdated& outdated) -> Workers::Deliver {
    Result<Comparison::Input> input = load();
    if (!input) return [done, error = input.error()] { done(error); };
    if (outdated) return {};
    if (Status taken = TakePins(pins, *input); !taken)
      return [done, error = taken.error()] { done(error); };
    Compared compared = Comparison::Make(std::move(*input), *lanes, outdated);
    if (outdated) return {};
    if (compared && pins && keeps) {
      if (Status written = WritePins(*pins); !written) compared = written.error();
    }
    return [done, compared = std::move(compared)] { done(compared); };
  };
}

void Model::KeepComparison(const std::string& key, std::shared_ptr<const Comparison> comparison) {
  counted_[key] = comparison->counts();
  for (std::shared_ptr<const Comparison>& gone : kept_.Put(key, std::move(comparison)))
    workers_.Dispose(std::move(gone));
}

const SceneCounts& Model::CountsOf(SubjectId subject) const {
  const auto counted = counted_.find(KeyOf(subject));
  return counted != counted_.end() ? counted->second : contents_->subjects[subject].counts;
}

void Model::ForgetComparisons() {
  CancelAhead();
  awaited_.reset();
  for (std::shared_ptr<const Comparison>& gone : kept_.Clear())
    workers_.Dispose(std::move(gone));
  DropLaidOut();
  workers_.Dispose(std::move(shown_before_.geometry));
  shown_before_ = {};
}

void Model::ShowComparison(std::shared_ptr<const Comparison> comparison, const std::string& key) {
  std::optional<GraphModel::Kept> kept;
  std::string selected;
  std::unique_ptr<GraphModel> before = std::exchange(graph_, nullptr);
  if (before && graph_key_ == key) {
    kept = before->Keep();
    if (before->selected().valid()) selected = before->comparison().NameOf(before->selected());
  }
  const std::optional<Link> link = std::exchange(pending_, std::nullopt);
  if (link && !link->node.empty()) selected = Visible(link->node);
  if (link && !link->open.empty()) {
    kept =
        GraphModel::Kept{.open = link->open, .node = {}, .path = {}, .node_at = {}, .path_at = {}};
  }
  const Stage stage = before ? before->stage() : Stage{};
  graph_key_ = key;
  for (const std::string& warning : comparison->input().warnings)
    log_.push_back("warning: " + VisibleLines(warning));
  const std::optional<GraphModel::LaidOut> ahead = TakeLaidOut(*comparison);
  graph_ = std::make_unique<GraphModel>(std::move(comparison), workers_);
  graph_->SetStage(stage);
  const SceneNodeId node = selected.empty() ? SceneNodeId() : graph_->comparison().Find(selected);
  graph_->Begin(kept, node, hops_, ahead);
  if (kept && before) KeepGeometry(*before);
  Search();
  if (link && node.valid()) graph_->Reveal(node);
  if (link && !link->node.empty() && !node.valid())
    Say(fmt::format("No node is named {}", Visible(link->node)));
  if (before) {
    std::shared_ptr<const Comparison> gone = before->shared_comparison();
    before.reset();
    workers_.Dispose(std::move(gone));
  }
}

}  // namespace strata::viewer
