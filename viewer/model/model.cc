#include "viewer/model/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/unicode.h"
#include "refs/ref.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// The index `n` places after `at` in a list of `size`, around its end; from before its begin when
/// `at` is not in it.
size_t Around(size_t size, std::ptrdiff_t at, int n) {
  const auto count = static_cast<std::ptrdiff_t>(size);
  std::ptrdiff_t next = at < 0 ? (n > 0 ? n - 1 : n) : at + n;
  next %= count;
  return static_cast<size_t>(next < 0 ? next + count : next);
}

template <class T>
std::ptrdiff_t IndexOf(const std::vector<T>& list, const T& item) {
  const auto found = std::ranges::find(list, item);
  return found == list.end() ? -1 : found - list.begin();
}

Result<Comparison::Input> LoadSubject(Document& document, const Subject& subject) {
  Comparison::Input input;
  input.title = subject.Title();
  STRATA_TRY(input.before, document.Load(subject.before));
  STRATA_TRY(input.after, document.Load(subject.after));
  input.options.stable_ids = subject.stable_ids || subject.before == subject.after;
  if (subject.stable_ids && subject.pass != PassId::kNone) {
    STRATA_TRY(input.options.provenance, document.LoadProvenance(subject.pass));
  }
  return input;
}

Result<Comparison::Input> LoadPair(const std::string& before, const std::string& after) {
  STRATA_TRY(Snapshot a, LoadRef(before));
  STRATA_TRY(Snapshot b, LoadRef(after));
  Comparison::Input input;
  input.title = fmt::format("{} → {}", Visible(before), Visible(after));
  input.options = OptionsFor(a, b);
  input.before_graph = a.graph_id;
  input.after_graph = b.graph_id;
  input.before = std::shared_ptr<const Module>(std::move(a.module));
  input.after = std::shared_ptr<const Module>(std::move(b.module));
  return input;
}

}  // namespace

Model::Model(std::function<void()> wake)
    : lanes_(std::make_shared<SharedLanes>()), workers_(std::move(wake)) {}

// --- Documents ---

void Model::Open(const std::string& text) {
  // The file's own name may contain a `#`.
  std::string file = text;
  Link link;
  if (const Result<Ref> ref = ParseRef(text.substr(0, text.find('&'))); ref) {
    file = ref->file;
    if (file.size() < text.size()) link = ParseLink(text.substr(file.size()));
  } else if (const size_t hash = text.find('#'); hash != std::string::npos) {
    file = text.substr(0, hash);
    link = ParseLink(text.substr(hash));
  }
  opening_name_ = file;
  error_.clear();
  workers_.Post("open", [this, file, link](const Outdated&) -> Workers::Deliver {
    Opened opened;
    Result<std::shared_ptr<Document>> document =
        Document::Open(file, [&](std::string_view line) { opened.warnings.emplace_back(line); });
    if (!document) {
      return [this, error = document.error()] { Fail(error); };
    }
    opened.document = std::move(*document);
    return [this, opened = std::move(opened), link] { OnOpened(opened, link); };
  });
}

void Model::OnOpened(Opened opened, const Link& link) {
  for (const std::string& warning : opened.warnings)
    log_.push_back(fmt::format("warning: {}", VisibleLines(warning)));
  document_ = std::move(opened.document);
  contents_ = document_->contents();
  lanes_ = std::make_shared<SharedLanes>();
  graph_.reset();
  graph_key_.clear();
  subject_ = -1;
  log_.push_back(fmt::format("opened {}: {}", Visible(document_->file()),
                             Plural(static_cast<int64_t>(contents_->subjects.size()), "subject")));
  int32_t subject = contents_->Find(link.ref);
  if (subject < 0 && !link.ref.empty()) {
    Fail(Error(ErrorCode::kNotFound, "nothing is named '{}': {}: select one of its passes",
               link.ref, document_->file()));
    subject = contents_->Find("");
  }
  pending_ = link;
  mode = link.mode == "side"    ? Mode::kSideBySide
         : link.mode == "blink" ? Mode::kBlink
                                : Mode::kUnified;
  tab = link.tab == "table"      ? Tab::kTable
        : link.tab == "text"     ? Tab::kText
        : link.tab == "patterns" ? Tab::kPatterns
                                 : tab;
  hops_ = link.hops == "all" ? SceneView::kAllHops : link.hops[0] - '0';
  if (subject >= 0) Show(subject);
}

void Model::OpenPair(const std::string& before, const std::string& after) {
  opening_name_ = fmt::format("{} and {}", before, after);
  document_.reset();
  contents_.reset();
  subject_ = -1;
  error_.clear();
  Compare([before, after] { return LoadPair(before, after); }, opening_name_);
}

void Model::Refresh() {
  if (!document_) return;
  workers_.Post("refresh", [this, document = document_](const Outdated&) -> Workers::Deliver {
    const Result<bool> grew = document->Refresh();
    if (!grew) return [this, error = grew.error()] { Fail(error); };
    if (!*grew) return {};
    return [this, document] {
      if (document == document_) contents_ = document->contents();
    };
  });
}

void Model::Fail(const Error& error) {
  error_ = VisibleLines(error.message());
  log_.push_back(fmt::format("error: {}", error_));
}

// --- Subjects ---

const Subject* Model::subject() const {
  if (!contents_ || subject_ < 0) return nullptr;
  return &contents_->subjects[static_cast<size_t>(subject_)];
}

std::string Model::Title() const {
  if (const Subject* s = subject()) return s->Title();
  return comparison() != nullptr ? comparison()->title() : std::string();
}

void Model::Show(int32_t subject) {
  if (!contents_ || subject < 0 || subject == subject_) return;
  subject_ = subject;
  const Subject& s = *this->subject();
  error_.clear();
  if (s.failed) {
    workers_.Cancel("compare");
    graph_.reset();
    return;
  }
  Compare([document = document_, s] { return LoadSubject(*document, s); },
          fmt::format("{} {}", static_cast<int64_t>(s.run), s.graph));
}

void Model::Compare(std::function<Result<Comparison::Input>()> load, const std::string& key) {
  workers_.Post("compare",
                [this, lanes = lanes_, load = std::move(load),
                 key](const Outdated& outdated) -> Workers::Deliver {
                  Result<Comparison::Input> input = load();
                  if (!input) return [this, error = input.error()] { Fail(error); };
                  if (outdated) return {};
                  Result<std::shared_ptr<const Comparison>> made =
                      Comparison::Make(std::move(*input), *lanes, outdated);
                  if (!made) return [this, error = made.error()] { Fail(error); };
                  return [this, comparison = std::move(*made), key] {
                    ShowComparison(comparison, key);
                  };
                });
}

void Model::ShowComparison(std::shared_ptr<const Comparison> comparison, const std::string& key) {
  std::optional<GraphModel::Kept> kept;
  std::string selected;
  const std::unique_ptr<GraphModel> before = std::exchange(graph_, nullptr);
  if (before && graph_key_ == key) {
    kept = before->Keep();
    if (before->selected() >= 0) selected = before->comparison().NameOf(before->selected());
  }
  const std::optional<Link> link = std::exchange(pending_, std::nullopt);
  if (link && !link->node.empty()) selected = link->node;
  if (link && !link->open.empty()) {
    kept =
        GraphModel::Kept{.open = link->open, .node = {}, .path = {}, .node_at = {}, .path_at = {}};
  }
  const Stage stage = before ? before->stage() : Stage{};
  graph_key_ = key;
  graph_ = std::make_unique<GraphModel>(std::move(comparison), workers_);
  graph_->SetStage(stage);
  const int32_t node = selected.empty() ? -1 : graph_->comparison().Find(selected);
  graph_->Begin(kept, node, hops_);
  if (link && node >= 0) graph_->Reveal(node);
  if (link && !link->node.empty() && node < 0)
    Say(fmt::format("No node is named {}", Visible(link->node)));
}

void Model::StepPass(int n, bool changed) {
  if (!contents_) return;
  std::vector<int32_t> list;
  for (size_t i = 0; i < contents_->subjects.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    const Subject& s = contents_->subjects[i];
    if (!changed || index == subject_ || (s.kind == Subject::Kind::kPass && s.changed()))
      list.push_back(index);
  }
  if (list.empty()) return;
  const std::ptrdiff_t at = IndexOf(list, subject_);
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(list.size()) - 1;
  const int32_t next = list[static_cast<size_t>(std::clamp<std::ptrdiff_t>(at + n, 0, last))];
  if (next != subject_) {
    Show(next);
    Say("");
  } else {
    Say(n > 0 ? "This is the last one" : "This is the first one");
  }
}

void Model::StepRun(int n) {
  if (!contents_ || contents_->runs.size() < 2) {
    Say("One run in this file");
    return;
  }
  const Subject* here = subject();
  const std::vector<RunEntry>& runs = contents_->runs;
  std::ptrdiff_t at = -1;
  for (size_t i = 0; here != nullptr && i < runs.size(); ++i) {
    if (runs[i].id == here->run) at = static_cast<std::ptrdiff_t>(i);
  }
  const RunEntry& next = runs[Around(runs.size(), at, n)];
  int32_t target = next.first_subject;
  for (int32_t i = next.first_subject; here != nullptr && i < next.end_subject; ++i) {
    const Subject& s = contents_->subjects[static_cast<size_t>(i)];
    if (s.graph == here->graph && s.index == here->index && s.kind == here->kind) target = i;
  }
  if (target < next.end_subject) Show(target);
}

// --- The comparison ---

void Model::Select(int32_t node) {
  if (graph_) graph_->Select(node);
}

void Model::Reveal(int32_t node) {
  if (graph_) graph_->Reveal(node);
}

void Model::StepChange(int n) {
  const std::vector<int32_t> none;
  const std::vector<int32_t>& list = comparison() ? comparison()->changes_by_cause() : none;
  if (list.empty()) {
    Say("Nothing changed here");
    return;
  }
  const size_t next = Around(list.size(), IndexOf(list, selected()), n);
  Reveal(list[next]);
  Say(fmt::format("change {} of {}", next + 1, NumberText(static_cast<int64_t>(list.size()))));
}

void Model::StepHunk(int n) {
  struct Place {
    int32_t first;
    PatternId pattern;
    std::vector<int32_t> nodes;
  };
  std::vector<Place> places;
  for (const Hunk& hunk :
       comparison() ? comparison()->diff().hunks.values() : std::vector<Hunk>{}) {
    std::vector<int32_t> nodes = comparison()->NodesOf(hunk);
    if (!nodes.empty()) places.push_back({nodes.front(), hunk.pattern, std::move(nodes)});
  }
  if (places.empty()) {
    Say("Nothing changed here");
    return;
  }
  std::ranges::sort(places, {}, &Place::first);
  std::ptrdiff_t at = -1;
  for (size_t i = 0; i < places.size(); ++i) {
    if (IndexOf(places[i].nodes, selected()) >= 0) at = static_cast<std::ptrdiff_t>(i);
  }
  const size_t next = Around(places.size(), at, n);
  const Place& place = places[next];
  Reveal(place.first);
  const std::string title =
      place.pattern.valid() ? PastTense(comparison()->diff().patterns[place.pattern].title) + ", "
                            : std::string();
  Say(fmt::format("{}place {} of {}", title, next + 1, places.size()));
}

// --- Choices ---

void Model::SetHops(int32_t hops) {
  hops_ = hops;
  if (graph_) graph_->SetHops(hops);
}

Link Model::CurrentLink() const {
  Link link;
  if (const Subject* s = subject()) link.ref = s->selector;
  link.tab = tab == Tab::kTable      ? "table"
             : tab == Tab::kText     ? "text"
             : tab == Tab::kPatterns ? "patterns"
                                     : "graph";
  link.mode = mode == Mode::kSideBySide ? "side" : mode == Mode::kBlink ? "blink" : "unified";
  link.hops = hops_ == SceneView::kAllHops ? "all" : fmt::format("{}", hops_);
  if (!graph_) return link;
  if (graph_->selected() >= 0) link.node = graph_->comparison().NameOf(graph_->selected());
  link.open = graph_->OpenPaths();
  return link;
}

}  // namespace strata::viewer
