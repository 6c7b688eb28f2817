#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/model/around.h"
#include "viewer/model/model.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostPast = 200;

}  // namespace

// --- Search ---

void Model::SetFilter(std::string filter) {
  if (filter == filter_) return;
  filter_ = std::move(filter);
  Search();
}

void Model::Search() {
  if (filter_.empty()) {
    workers_.Cancel("search");
    hits_ = {};
    hit_nodes_.clear();
    return;
  }
  const std::shared_ptr<const Comparison> comparison =
      graph_ ? graph_->shared_comparison() : std::shared_ptr<const Comparison>();
  workers_.Post("search",
                [this, comparison, contents = contents_,
                 text = filter_](const Outdated&) -> Workers::Deliver {
                  SearchHits hits;
                  if (comparison) hits.nodes = SearchNodes(*comparison, text);
                  if (contents) hits.subjects = SearchSubjects(*contents, text);
                  return [this, hits = std::move(hits)] {
                    hits_ = hits;
                    hit_nodes_ = {hits_.nodes.begin(), hits_.nodes.end()};
                  };
                });
}

void Model::StepHit(int n) {
  if (filter_.empty()) {
    Say("Search first: press /");
    return;
  }
  if (hits_.nodes.empty()) {
    Say(fmt::format("Nothing matches “{}”", Visible(filter_)));
    return;
  }
  const size_t next = Around(hits_.nodes.size(), IndexOf(hits_.nodes, selected()), n);
  const SceneNodeId node = hits_.nodes[next];
  Reveal(node);
  SayOfSubject(fmt::format("hit {} of {}: {}", next + 1,
                           NumberText(static_cast<int64_t>(hits_.nodes.size())),
                           comparison()->NameOf(node)));
}

// --- Navigation ---

Link Model::CurrentLink() const {
  Link link;
  if (const Subject* s = subject()) link.ref = s->selector;
  if (from_.valid()) link.from = contents_->subjects[from_].selector;
  link.tab = tab == Tab::kTable      ? "table"
             : tab == Tab::kText     ? "text"
             : tab == Tab::kPatterns ? "patterns"
                                     : "graph";
  link.mode = mode_ == Mode::kSideBySide ? "side" : mode_ == Mode::kBlink ? "blink" : "unified";
  link.hops = hops_ == SceneView::kAllHops ? "all" : fmt::format("{}", hops_);
  link.filter = filter_;
  link.overlay = overlay_key;
  link.labels = labels;
  if (!graph_) return link;
  if (graph_->selected().valid()) {
    const Comparison& c = graph_->comparison();
    link.node = c.listing_of(graph_->selected()).name(c.entity_of(graph_->selected()));
  }
  link.open = graph_->OpenPaths();
  return link;
}

std::string Model::FullLink() const {
  return fmt::format("{}#{}", document_ ? document_->file() : "", PrintLink(CurrentLink()));
}

void Model::TakeChoices(const Link& link) {
  SetMode(link.mode == "side"    ? Mode::kSideBySide
          : link.mode == "blink" ? Mode::kBlink
                                 : Mode::kUnified);
  tab = link.tab == "table"      ? Tab::kTable
        : link.tab == "text"     ? Tab::kText
        : link.tab == "patterns" ? Tab::kPatterns
                                 : Tab::kNone;
  hops_ = link.hops == "all" ? SceneView::kAllHops : link.hops[0] - '0';
  filter_ = link.filter;
  overlay_key = link.overlay;
  labels = link.labels;
}

void Model::Remember() {
  if (!subject_.valid() || !graph_) return;
  past_.push_back(CurrentLink());
  if (past_.size() > kMostPast) past_.erase(past_.begin());
  future_.clear();
}

void Model::Follow(const Link& link) {
  if (!contents_) return;
  const SubjectId target = contents_->Find(link.ref);
  if (!target.valid()) {
    Say(fmt::format("Nothing is named {}", Visible(link.ref)));
    return;
  }
  TakeChoices(link);
  const SubjectId from = link.from.empty() ? SubjectId() : contents_->Find(link.from);
  if (target != subject_ || from != from_ || !graph_) {
    pending_ = link;
    ShowPair(target, from);
    return;
  }
  graph_->SetHops(hops_);
  Search();
  const SceneNodeId node =
      link.node.empty() ? SceneNodeId() : graph_->comparison().Find(Visible(link.node));
  if (node.valid()) {
    graph_->Reveal(node);
  } else {
    graph_->Select({});
  }
}

void Model::Back() {
  if (past_.empty()) {
    Say("Nothing to go back to");
    return;
  }
  const Link target = past_.back(), here = CurrentLink();
  std::vector<Link> past = past_, future = future_;
  past.pop_back();
  future.push_back(here);
  Follow(target);
  past_ = std::move(past);
  future_ = std::move(future);
}

void Model::Forward() {
  if (future_.empty()) {
    Say("Nothing to go forward to");
    return;
  }
  const Link target = future_.back(), here = CurrentLink();
  std::vector<Link> past = past_, future = future_;
  future.pop_back();
  past.push_back(here);
  Follow(target);
  past_ = std::move(past);
  future_ = std::move(future);
}

}  // namespace strata::viewer
