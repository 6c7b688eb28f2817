#include "diff/history/made_by.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diff/diff.h"
#include "diff/history/lineage.h"

namespace strata {
namespace {

/// The graphs of a history, one after the other, and who made each of them.
class Visit {
 public:
  explicit Visit(const History& history) : history_(history) {}

  /// The next snapshot, made by the pass `maker`; "": by none.
  Status Add(int32_t snapshot, std::string_view maker) {
    if (lineage_ && SameGraph(history_, last_, snapshot)) {
      lineage_->AddUnchanged();
    } else {
      STRATA_TRY(LoadedGraph now, history_.load(snapshot));
      if (lineage_) {
        STRATA_TRY(const GraphDiff diff,
                   Diff(graph_.graph(), now.graph(), {.stable_ids = history_.stable_ids}));
        lineage_->Add(diff);
      } else {
        lineage_.emplace(Listing(now.graph()).size());
      }
      graph_ = std::move(now);
    }
    last_ = snapshot;
    makers_.push_back(maker);
    return Ok();
  }

  /// The snapshot added last, -1: none.
  int32_t last() const { return last_; }

  /// Of the nodes of the last snapshot. What the first one came with was made by none.
  IdVector<EntityId, std::string> Makers() const {
    const Listing listing(graph_.graph());
    IdVector<EntityId, std::string> passes(listing.ids().size(), std::string());
    const int32_t end = lineage_->num_snapshots() - 1;
    for (EntityId id : listing.ids()) {
      const int32_t first = lineage_->first(lineage_->NodeHistoryAt(end, id));
      if (first > 0) passes[id] = makers_[static_cast<size_t>(first)];
    }
    return passes;
  }

 private:
  const History& history_;
  std::optional<Lineage> lineage_;
  LoadedGraph graph_;
  int32_t last_ = -1;
  std::vector<std::string_view> makers_;  // by snapshot of the lineage
};

}  // namespace

Result<IdVector<EntityId, std::string>> PassesThatMade(const History& history, int32_t snapshot) {
  Visit visit(history);
  for (const HistoryStep& step : history.steps) {
    if (step.graph != history.snapshot(snapshot).graph) continue;
    if (step.before >= 0) STRATA_RETURN_IF_ERROR(visit.Add(step.before, ""));
    if (step.before == snapshot) break;
    STRATA_RETURN_IF_ERROR(visit.Add(step.after, step.pass));
    if (step.after == snapshot) break;
  }
  STRATA_CHECK(visit.last() == snapshot, "a snapshot of no step");
  return visit.Makers();
}

}  // namespace strata
