#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/flags.h"
#include "diff/diff.h"
#include "passes/cleanup/canonicalize.h"
#include "scene/scene.h"
#include "tlparse-export/report/scene_json.h"

namespace strata::cli {
namespace {

constexpr int kRuns = 5;

/// What the report shows of a pass: here canonicalize, which changes a node in five.
Status MeasureScene(int nodes, bool with_limits) {
  const std::unique_ptr<Module> before = TransformerLikeGraph(nodes);
  const std::unique_ptr<Module> after = before->Clone();
  STRATA_TRY([[maybe_unused]] const Changed changed, Canonicalize().Run(*after));
  STRATA_TRY(const GraphDiff diff,
             Diff(before->graph({0}), after->graph({0}), {.pins = {}, .stable_ids = true}));
  fmt::print("\n{} nodes, {} differences\n", diff.before.size(),
             diff.summary.changed + diff.summary.inserted + diff.summary.deleted);
  Scene scene;
  PrintTiming("scene: clusters, lanes, rows, edges",
              Measure(kRuns, [&] { scene = MakeScene(diff); }), with_limits ? 500 : 0);
  std::string json;
  Texts names, lines;
  PrintTiming("as JSON columns", Measure(kRuns, [&] { json = SceneJson(diff, scene, {}, names, lines).core; }));
  fmt::print("{:<36} {:>9.2f} MB\n", "size of the JSON", static_cast<double>(json.size()) / 1e6);
  return Ok();
}

}  // namespace

Result<Exit> BenchReport(Args args) {
  Flags flags("bench report", "measures what a report computes, on graphs of 10k and 100k nodes");
  flags.Example("strata bench report");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  STRATA_RETURN_IF_ERROR(MeasureScene(10'000, false));
  STRATA_RETURN_IF_ERROR(MeasureScene(100'000, true));
  return Exit::kOk;
}

}  // namespace strata::cli
