#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "scene/scene.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tlparse-export/report/report_model.h"
#include "tlparse-export/report/scene_json.h"

namespace strata {
namespace {

using testing::ParseOrDie;
using testing::TempDir;

constexpr std::string_view kBefore =
    "graph step\n  x = placeholder : f32[4, 8][8, 1]cpu\n  a = aten.neg.default(x) : f32[4, 8][8, "
    "1]cpu "
    "{forward module=layers.0}\n  b = aten.abs.default(a)\n  output([b])\n";

/// A trace with one pass that removes `a`, and one that failed.
std::string WriteTrace(const TempDir& dir) {
  const std::string path = dir / "run.strata";
  auto writer = TraceWriter::Create(path);
  REQUIRE_OK(writer);
  auto before = ParseOrDie(kBefore);
  auto after = ParseOrDie(
      "graph step\n  x = placeholder : f32[4, 8][8, 1]cpu #1\n"
      "  b = aten.abs.default(x) #3\n  output([b]) #4\n");
  RunInfo info;
  info.source = "step.txt";
  const auto run = (*writer)->BeginRun(info);
  REQUIRE_OK(run);
  const auto first = (*writer)->AddSnapshot(*run, "step", before->graph({0}));
  REQUIRE_OK(first);
  PassRecord pass;
  pass.name = "drop-neg";
  pass.graph = "step";
  pass.before = *first;
  REQUIRE_OK((*writer)->RecordPass(*run, pass, &after->graph({0})));
  pass.index = 1;
  pass.name = "broken";
  pass.outcome = PassOutcome::kFailed;
  pass.error = "graph 'step': <b>no</b>";
  pass.after = *first;
  REQUIRE_OK((*writer)->RecordPass(*run, pass));
  REQUIRE_OK((*writer)->RecordStep(*run, {.step = 1, .loss = 2.5, .grad_norm = 1}, {}));
  REQUIRE_OK((*writer)->EndRun(*run, RunStatus::kFinished));
  REQUIRE_OK((*writer)->Finish());
  return path;
}

TEST_CASE("a report holds runs, passes with their counts, steps and one detail per change") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteTrace(dir));
  REQUIRE_OK(trace);
  const auto model = MakeReport(**trace);
  REQUIRE_OK(model);
  REQUIRE(model->runs.size() == 1);
  const ReportRun& run = model->runs[0];
  CHECK(run.kind == "opt");
  REQUIRE(run.passes.size() == 2);
  CHECK(run.passes[0].counts.deleted == 1);
  CHECK(run.passes[0].counts.changed == 1);
  CHECK(run.passes[0].selector == "run=1,graph=step,pass=0");
  CHECK(run.passes[0].detail == 0);
  CHECK(run.passes[1].status == "failed");
  CHECK(run.passes[1].error == "graph 'step': <b>no</b>");
  CHECK(run.passes[1].detail == -1);
  CHECK(run.steps.size() == 1);
  CHECK(run.graphs[0].detail == -1);  // its pass shows it
  CHECK(model->title == "run.strata");
}

TEST_CASE("what does not fit is left out by name") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteTrace(dir));
  REQUIRE_OK(trace);
  const auto model = MakeReport(**trace, {.title = "t", .max_detail_bytes = 10});
  REQUIRE_OK(model);
  REQUIRE(model->details.size() == 1);
  CHECK(model->details[0].json.empty());
  CHECK(model->details[0].title == "pass drop-neg");
  const auto html = ReportHtml(*model);
  REQUIRE_OK(html);
  CHECK(html->find("id=\"data-0\"") == std::string::npos);
}

TEST_CASE("the same trace gives the same bytes") {
  const TempDir dir;
  const std::string path = WriteTrace(dir);
  std::string pages[2];
  for (std::string& page : pages) {
    auto trace = TraceReader::Open(path);
    REQUIRE_OK(trace);
    const auto model = MakeReport(**trace);
    REQUIRE_OK(model);
    auto html = ReportHtml(*model);
    REQUIRE_OK(html);
    page = *html;
  }
  CHECK(pages[0] == pages[1]);
}

TEST_CASE("names become text, never markup") {
  ReportModel model;
  model.title = "</title><script>alert(1)</script> & \"q\" \x01 \xff";
  ReportRun run;
  run.source = "<!-- <img src=x onerror=alert(2)>";
  ReportPass pass;
  pass.name = "</script><b>'";
  run.passes.push_back(pass);
  model.runs.push_back(run);
  const auto html = ReportHtml(model);
  REQUIRE_OK(html);
  CHECK(html->find("<script>alert") == std::string::npos);
  CHECK(html->find("<img") == std::string::npos);
  CHECK(html->find("<b>") == std::string::npos);
  CHECK(html->find("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;q&quot;") !=
        std::string::npos);
  CHECK(html->find('\xff') == std::string::npos);
  // Ours only: two of data or more, then the page's own.
  CHECK(html->find("<script>") == html->rfind("<script>"));
}

TEST_CASE("a scene's columns are as long as it has nodes") {
  auto before = ParseOrDie(kBefore);
  auto after = ParseOrDie(kBefore);
  const auto diff = Diff(before->graph({0}), after->graph({0}));
  REQUIRE_OK(diff);
  const std::string json = SceneJson(*diff, MakeScene(*diff));
  CHECK(json.starts_with("{\"name\""));
  const auto count = [&](std::string_view key) {
    const size_t begin = json.find('[', json.find("\"" + std::string(key) + "\""));
    const std::string list = json.substr(begin, json.find(']', begin) - begin);
    return std::ranges::count(list, ',') + 1;
  };
  for (std::string_view key : {"name", "was", "op", "type", "phase", "seq", "place", "code",
                               "status", "backward", "cluster"}) {
    CAPTURE(key);
    CHECK(count(key) == 4);
  }
}

}  // namespace
}  // namespace strata
