#include "viewer/model/model.h"

namespace strata::viewer {

namespace {

constexpr const char *kLayoutSlot = "layout ahead", *kCountSlot = "count";

/// Nodes of a pass that is compared for its counts alone.
constexpr int64_t kMostCountedNodes = 20'000;

}  // namespace

void Model::WorkAhead() {
  if (!ahead_.empty() || !contents_ || !subject_.valid() || from_.valid() || !graph_) return;
  const IdVector<SubjectId, Subject>& subjects = contents_->subjects;
  const IdRange<SubjectId> all = IdsOf(subjects);
  const auto beside = [](SubjectId id, int32_t places) { return SubjectId{id.index + places}; };
  const auto changed_from = [&](SubjectId id) {
    for (id = beside(id, direction_); all.Contains(id); id = beside(id, direction_)) {
      if (subjects[id].changed()) return id;
    }
    return SubjectId();
  };
  std::vector<SubjectId> neighbours = {beside(subject_, direction_), beside(subject_, -direction_)};
  if (const SubjectId changed = changed_from(subject_); changed != neighbours.front())
    neighbours.insert(neighbours.begin() + 1, changed);
  // The way back is laid out already, which takes least to find out.
  for (const SubjectId id : neighbours) {
    if (!all.Contains(id) || subjects[id].failed) continue;
    const Wanted wanted = WantedOf(id, {});
    const std::shared_ptr<const Comparison> kept = kept_.Peek(wanted.key);
    if (kept && kept->id() == shown_before_.comparison &&
        LayOutAhead(kept, wanted.graph_key == graph_key_))
      return;
  }
  int64_t room = ComparisonCache::kMostNodes - comparison()->size();
  for (const SubjectId id : neighbours) {
    if (!all.Contains(id) || subjects[id].failed) continue;
    // The union has one node for those that are on both sides.
    room -= subjects[id].nodes_before + subjects[id].counts.added;
    if (room < 0) return;
    const Wanted wanted = WantedOf(id, {});
    if (wanted.key == given_up_) continue;
    if (const std::shared_ptr<const Comparison> kept = kept_.Peek(wanted.key)) {
      if (LayOutAhead(kept, wanted.graph_key == graph_key_)) return;
      continue;
    }
    ahead_ = wanted.key;
    // What is near stays when room is needed, the nearest longest.
    for (auto near = neighbours.rbegin(); near != neighbours.rend(); ++near) {
      if (all.Contains(*near)) kept_.Find(WantedOf(*near, {}).key);
    }
    kept_.Find(shown_->key);
    workers_.PostAhead("ahead", ComparisonJob(wanted, [this](const Compared& compared) {
                         OnComparedAhead(compared);
                       }));
    return;
  }
}

void Model::CancelAhead() {
  workers_.Cancel("ahead");
  ahead_.clear();
}

void Model::OnComparedAhead(const Compared& compared) {
  const std::string key = std::exchange(ahead_, "");
  const std::optional<std::string> awaited = std::exchange(awaited_, std::nullopt);
  // What the user did not ask for fails when it is asked for.
  if (!compared) {
    given_up_ = key;
    return awaited ? Fail(compared.error()) : void();
  }
  KeepComparison(key, *compared);
  if (awaited) ShowComparison(*compared, *awaited);
}

void Model::CountAhead() {
  if (!ahead_.empty() || !contents_ || workers_.busy(kCountSlot)) return;
  for (SubjectId subject : IdsOf(contents_->subjects)) {
    const Subject& s = contents_->subjects[subject];
    const int64_t nodes = s.nodes_before + s.counts.added;
    if (!s.changed() || s.counts.changed == 0 || nodes > kMostCountedNodes ||
        counted_nodes_ + nodes > ComparisonCache::kMostNodes)
      continue;
    const std::string key = KeyOf(subject);
    if (counted_.contains(key)) continue;
    counted_nodes_ += nodes;
    workers_.PostAhead(kCountSlot,
                       ComparisonJob(WantedOf(subject, {}),
                                     [this, key, recorded = s.counts](const Compared& compared) {
                                       counted_[key] = compared ? (*compared)->counts() : recorded;
                                     }));
    return;
  }
}

void Model::ForgetCounts() {
  workers_.Cancel(kCountSlot);
  counted_.clear();
  counted_nodes_ = 0;
}

bool Model::LayOutAhead(const std::shared_ptr<const Comparison>& comparison, bool keeps_open) {
  if (graph_->laying_out()) return true;
  if (laid_out_for_ != std::pair(this->comparison()->id(), graph_->layouts())) {
    DropLaidOut();
    laid_out_for_ = {this->comparison()->id(), graph_->layouts()};
  }
  if (workers_.busy(kLayoutSlot)) return true;
  if (laid_out_.contains(comparison->id())) return false;
  workers_.PostAhead(
      kLayoutSlot,
      [this, comparison, hops = hops_,
       open = keeps_open ? graph_->OpenPaths() : std::vector<std::string>(),
       before = shown_before_](const Outdated&) -> Workers::Deliver {
        GraphModel::LaidOut made{
            .open = open, .view = GraphModel::FirstView(*comparison, open, hops), .geometry = {}};
        const bool again = before.comparison == comparison->id() && before.view == made.view;
        made.geometry = again ? before.geometry
                              : std::make_shared<const SceneGeometry>(
                                    MakeGeometry(comparison->scene(), made.view));
        return [this, comparison, made = std::move(made)] { laid_out_[comparison->id()] = made; };
      });
  return true;
}

std::optional<GraphModel::LaidOut> Model::TakeLaidOut(const Comparison& comparison) {
  std::optional<GraphModel::LaidOut> taken;
  if (const auto found = laid_out_.find(comparison.id()); found != laid_out_.end())
    taken = std::move(found->second);
  DropLaidOut();
  return taken;
}

void Model::KeepGeometry(const GraphModel& before) {
  workers_.Dispose(std::move(shown_before_.geometry));
  shown_before_ = {};
  if (before.shared_geometry() == nullptr || before.laying_out()) return;
  shown_before_ = {before.comparison().id(), before.view(), before.shared_geometry()};
}

void Model::DropLaidOut() {
  workers_.Cancel(kLayoutSlot);
  for (auto& [id, laid_out] : laid_out_)
    workers_.Dispose(std::move(laid_out.geometry));
  laid_out_.clear();
}

}  // namespace strata::viewer
