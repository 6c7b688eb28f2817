#include "viewer/model/model.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "base/unicode.h"
#include "refs/ref.h"
#include "scene/words.h"
#include "viewer/model/around.h"

namespace strata::viewer {

constexpr double kShownShare = 0.005;  // by which a progress bar grows

std::string_view ToString(Tab tab) {
  switch (tab) {
    case Tab::kTable:
      return "table";
    case Tab::kText:
      return "text";
    case Tab::kPatterns:
      return "patterns";
    case Tab::kOperators:
      return "operators";
    case Tab::kCosts:
      return "costs";
    case Tab::kMemory:
      return "memory";
    case Tab::kLanes:
      return "lanes";
    case Tab::kRanks:
      return "ranks";
    case Tab::kLive:
      return "live";
    case Tab::kLog:
      return "log";
    case Tab::kNone:
      break;
  }
  return "none";
}

Model::Model(std::function<void()> wake)
    : wake_(std::move(wake)), lanes_(std::make_shared<SharedLanes>()), workers_(wake_) {}

Model::~Model() = default;

bool Model::Poll() {
  const bool delivered = static_cast<int>(workers_.Poll()) + static_cast<int>(PollControl()) > 0;
  if (!busy()) {
    WorkAhead();
    CountAhead();
  }
  return delivered;
}

void Model::PollUntilOpened(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (opening() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Poll();
  }
}

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
  opening_share_ = std::make_shared<std::atomic<double>>(0);
  workers_.Post("open",
                [this, file, link, shown = opening_share_,
                 wake = wake_](const Outdated& outdated) -> Workers::Deliver {
                  Opened opened;
                  const auto on_progress = [&](double share) -> Status {
                    if (outdated) return Error("given up: {}", file);
                    if (share - *shown >= kShownShare) {
                      *shown = share;
                      wake();
                    }
                    return Ok();
                  };
                  Result<std::shared_ptr<Document>> document = Document::Open(
                      file, [&](std::string_view line) { opened.warnings.emplace_back(line); },
                      on_progress);
                  if (!document) {
                    return [this, error = document.error()] { Fail(error); };
                  }
                  opened.document = std::move(*document);
                  return [this, opened = std::move(opened), link] { OnOpened(opened, link); };
                });
}

void Model::CancelOpening() {
  if (!opening()) return;
  workers_.Cancel("open");
  Say("Given up: " + Visible(opening_name_));
}

void Model::OnOpened(Opened opened, const Link& link) {
  for (const std::string& warning : opened.warnings)
    log_.push_back(fmt::format("warning: {}", VisibleLines(warning)));
  document_ = std::move(opened.document);
  contents_ = document_->contents();
  ++version_;
  lanes_ = std::make_shared<SharedLanes>();
  ForgetComparisons();
  ForgetCounts();
  pinned_.clear();
  graph_.reset();
  graph_key_.clear();
  subject_ = from_ = {};
  histories_ = std::make_shared<NodeHistories>(document_);
  const auto passes = std::ranges::count(contents_->subjects, Subject::Kind::kPass, &Subject::kind);
  log_.push_back(
      fmt::format("opened {}: {}, {} by themselves", Visible(document_->file()),
                  Plural(passes, "pass", "passes"),
                  Plural(static_cast<int64_t>(contents_->subjects.size()) - passes, "graph")));
  SubjectId subject = contents_->Find(link.ref);
  if (!subject.valid() && !link.ref.empty()) {
    Fail(Error(ErrorCode::kNotFound, "nothing is named '{}': {}: select one of its passes",
               link.ref, document_->file()));
    subject = contents_->Find("");
  }
  pending_ = link;
  TakeChoices(link);
  past_.clear();
  future_.clear();
  if (subject.valid())
    ShowPair(subject, link.from.empty() ? SubjectId() : contents_->Find(link.from));
}

void Model::OpenPair(const std::string& before, const std::string& after) {
  opening_name_ = fmt::format("{} and {}", before, after);
  pair_after_ = after;
  document_.reset();
  ForgetComparisons();
  pinned_.clear();
  contents_.reset();
  ++version_;
  histories_.reset();
  subject_ = from_ = {};
  error_.clear();
  CompareRefs(before, after);
}

void Model::Refresh() {
  if (!document_) return;
  workers_.Post("refresh", [this, document = document_](const Outdated&) -> Workers::Deliver {
    const Result<std::shared_ptr<const Contents>> grown = document->Refresh();
    if (!grown) return [this, error = grown.error()] { Fail(error); };
    if (*grown == nullptr) return {};
    return [this, document, contents = *grown] {
      if (document == document_) OnGrown(contents);
    };
  });
}

bool Model::follows() const {
  return following && contents_ && std::ranges::any_of(contents_->runs, &RunEntry::running);
}

/// The last pass of a run, or of the last run; without passes the last graph, if there is one.
static SubjectId NewestOf(const Contents& contents, RunId run) {
  SubjectId newest, newest_pass;
  for (SubjectId id : IdsOf(contents.subjects)) {
    const Subject& s = contents.subjects[id];
    if (run != RunId::kNone && s.run != run) continue;
    newest = id;
    if (s.kind == Subject::Kind::kPass) newest_pass = newest;
  }
  return newest_pass.valid() ? newest_pass : newest;
}

void Model::OnGrown(std::shared_ptr<const Contents> contents) {
  const Subject* here = subject();
  const RunId run = here != nullptr ? here->run : RunId::kNone;
  const SubjectId newest_before = NewestOf(*contents_, run);
  const bool had_passes =
      newest_before.valid() && contents_->subjects[newest_before].kind == Subject::Kind::kPass;
  const bool at_newest = here == nullptr || subject_ == newest_before || !had_passes;
  const std::string selector = here != nullptr ? here->selector : "";
  const std::string from = from_.valid() ? contents_->subjects[from_].selector : std::string();
  contents_ = std::move(contents);
  ++version_;
  ForgetComparisons();
  histories_ = std::make_shared<NodeHistories>(document_);
  from_ = from.empty() ? SubjectId() : contents_->Find(from);
  subject_ = selector.empty() ? SubjectId() : contents_->Find(selector);
  const SubjectId newest = NewestOf(*contents_, run);
  const bool follows_newest = at_newest && following && !from_.valid() && newest.valid();
  const SubjectId wanted = follows_newest ? newest : subject_;
  if (!wanted.valid()) return;
  // A graph may have become that of a pass, or have got another snapshot.
  if (wanted == subject_ && shown_ && WantedOf(wanted, from_).key == shown_->key) return;
  subject_ = {};
  ShowPair(wanted, from_);
}

void Model::Warn(const Error& error) {
  Say(VisibleLines(error.message()));
  log_.push_back("warning: " + message_);
}

void Model::Fail(const Error& error) {
  error_ = VisibleLines(error.message());
  log_.push_back(fmt::format("error: {}", error_));
}

// --- Subjects ---

const Subject* Model::subject() const {
  if (!contents_ || !subject_.valid()) return nullptr;
  return &contents_->subjects[subject_];
}

std::string Model::Title() const {
  if (const Subject* s = subject(); s != nullptr && from_.valid()) {
    const Subject& from = contents_->subjects[from_];
    const auto name = [&](const Subject& of) {
      return from.run == s->run ? of.Title()
             : from.rank != s->rank
                 ? fmt::format("rank {} {}", of.rank, of.Title())
                 : fmt::format("run {} {}", static_cast<int64_t>(of.run), of.Title());
    };
    return fmt::format("{} → {}", name(from), name(*s));
  }
  if (const Subject* s = subject()) return s->Title();
  return comparison() != nullptr ? comparison()->title() : std::string();
}

void Model::StepPass(int n, bool changed) {
  if (!contents_) return;
  std::vector<SubjectId> list;
  for (SubjectId id : IdsOf(contents_->subjects)) {
    const Subject& s = contents_->subjects[id];
    if (!changed || id == subject_ || (s.kind == Subject::Kind::kPass && s.changed()))
      list.push_back(id);
  }
  if (list.empty()) return;
  const std::ptrdiff_t at = IndexOf(list, subject_);
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(list.size()) - 1;
  const SubjectId next = list[static_cast<size_t>(std::clamp<std::ptrdiff_t>(at + n, 0, last))];
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
  SubjectId target = next.subjects.begin_id();
  for (SubjectId id : next.subjects) {
    const Subject& s = contents_->subjects[id];
    if (here != nullptr && s.graph == here->graph && s.index == here->index && s.kind == here->kind)
      target = id;
  }
  if (next.subjects.Contains(target)) Show(target);
}

// --- The comparison ---

void Model::Select(SceneNodeId node) {
  if (graph_) graph_->Select(node);
}

void Model::Reveal(SceneNodeId node) {
  if (graph_) graph_->Reveal(node);
}

void Model::StepChange(int n) {
  const std::vector<SceneNodeId> none;
  const std::vector<SceneNodeId>& list = comparison() ? comparison()->changes_by_cause() : none;
  if (list.empty()) {
    Say("Nothing changed here");
    return;
  }
  const size_t next = Around(list.size(), IndexOf(list, selected()), n);
  Reveal(list[next]);
  SayOfSubject(
      fmt::format("change {} of {}", next + 1, NumberText(static_cast<int64_t>(list.size()))));
}

void Model::StepHunk(int n) {
  struct Place {
    SceneNodeId first;
    PatternId pattern;
    std::vector<SceneNodeId> nodes;
  };
  std::vector<Place> places;
  for (const Hunk& hunk :
       comparison() ? comparison()->diff().hunks.values() : std::vector<Hunk>{}) {
    std::vector<SceneNodeId> nodes = comparison()->NodesOf(hunk);
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
  SayOfSubject(fmt::format("{}place {} of {}", title, next + 1, places.size()));
}

std::string Model::ComparisonKey() const {
  return comparison() == nullptr ? "" : fmt::format("{}", comparison()->id());
}

// --- Choices ---

void Model::SetMode(Mode mode) {
  const bool reshapes = (mode == Mode::kSideBySide) != (mode_ == Mode::kSideBySide);
  mode_ = mode;
  if (reshapes && graph_) graph_->PlaceAgain();
}

void Model::SetHops(int32_t hops) {
  hops_ = hops;
  if (graph_) graph_->SetHops(hops);
}

}  // namespace strata::viewer
