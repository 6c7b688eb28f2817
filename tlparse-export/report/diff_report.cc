#include "tlparse-export/report/diff_report.h"

#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "scene/scene.h"
#include "tlparse-export/report/scene_json.h"

namespace strata {
namespace {

ReportMoment MomentOf(const Listing& listing) {
  return {.nodes = listing.size(), .fingerprint = ToString(FingerprintOf(listing.root()))};
}

}  // namespace

ReportModel DiffReport(const GraphDiff& diff, std::string_view before_ref,
                       std::string_view after_ref) {
  ReportModel model;
  model.title = fmt::format("{} → {}", before_ref, after_ref);
  const DiffSummary& summary = diff.summary;
  ReportPass pass;
  pass.name = "diff";
  pass.options = fmt::format("{} {}", before_ref, after_ref);
  pass.graph = diff.after.root().name_text();
  pass.status = diff.Equal() ? "unchanged" : "ok";
  pass.before = MomentOf(diff.before);
  pass.after = MomentOf(diff.after);
  pass.counts = {.inserted = summary.inserted,
                 .deleted = summary.deleted,
                 .changed = summary.changed,
                 .moved = summary.moved};
  pass.derived = summary.derived;
  pass.detail = 0;
  ReportGraph graph;
  graph.name = pass.graph;
  graph.last = pass.after;
  ReportRun run;
  run.id = 1;
  run.kind = "diff";
  run.status = "finished";
  run.source = model.title;
  run.command = fmt::format("strata diff {} {}", before_ref, after_ref);
  run.graphs.push_back(std::move(graph));
  run.passes.push_back(std::move(pass));
  model.details.push_back({"diff", SceneJson(diff, MakeScene(diff))});
  model.runs.push_back(std::move(run));
  return model;
}

}  // namespace strata
