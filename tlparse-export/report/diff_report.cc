#include "tlparse-export/report/diff_report.h"

#include <fmt/format.h>

#include "ir/fingerprint.h"
#include "ir/text.h"
#include "tlparse-export/report/causes.h"
#include "tlparse-export/report/report_parts.h"

namespace strata {
namespace {

ReportMoment MomentOf(const Listing& listing, ReportParts& parts) {
  ReportMoment moment = {.nodes = listing.size(),
                         .fingerprint = ToString(FingerprintOf(listing.root()))};
  parts.Fill(parts.AddFacts(listing.root()), moment);
  return moment;
}

}  // namespace

Result<ReportModel> DiffReport(const GraphDiff& diff, std::string_view before_ref,
                               std::string_view after_ref) {
  ReportModel model;
  ReportParts parts;
  model.title = fmt::format("{} → {}", before_ref, after_ref);
  const DiffSummary& summary = diff.summary;
  ReportPass pass;
  pass.name = "diff";
  pass.options = fmt::format("{} {}", before_ref, after_ref);
  pass.graph = diff.after.root().name_text();
  pass.status = diff.Equal() ? "unchanged" : "ok";
  pass.before = MomentOf(diff.before, parts);
  pass.after = MomentOf(diff.after, parts);
  pass.counts = {.inserted = summary.inserted,
                 .deleted = summary.deleted,
                 .changed = summary.changed,
                 .moved = summary.moved};
  pass.derived = summary.derived;
  pass.causes = CausesOf(diff);
  STRATA_TRY(pass.detail, parts.AddScene("diff", diff, {}));
  pass.selector = fmt::format("run=1,graph={},pass=0", SelectorValue(pass.graph));
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
  model.runs.push_back(std::move(run));
  STRATA_RETURN_IF_ERROR(parts.Finish(ReportOptions().max_bytes, model));
  return model;
}

}  // namespace strata
