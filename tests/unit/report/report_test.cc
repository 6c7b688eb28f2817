#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "diff/diff.h"
#include "scene/scene.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tlparse-export/report/report_model.h"
#include "tlparse-export/report/report_parts.h"
#include "tlparse-export/report/scene_json.h"

namespace strata {
namespace {

using testing::ParseOrDie;
using testing::TempDir;

constexpr std::string_view kBefore = R"(
graph step
  x = placeholder : f32[4, 8][8, 1]cpu
  a = aten.neg.default(x) : f32[4, 8][8, 1]cpu {forward module=layers.0}
  b = aten.abs.default(a)
  output([b])
)";

/// A trace with one pass that removes `a`, and one that failed.
std::string WriteTrace(const TempDir& dir) {
  const std::string path = dir / "run.strata";
  auto writer = TraceWriter::Create(path);
  REQUIRE_OK(writer);
  auto before = ParseOrDie(kBefore);
  auto after = ParseOrDie(
      R"(
graph step
  x = placeholder : f32[4, 8][8, 1]cpu #1
  b = aten.abs.default(x) #3
  output([b]) #4
)");
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

TEST_CASE("a report contains runs, passes with counts, steps and one detail per change") {
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

/// The parts of a report by id.
std::map<std::string, size_t> PartSizes(const ReportModel& model) {
  std::map<std::string, size_t> sizes;
  for (const ReportPart& part : model.parts)
    sizes[part.id] = part.packed.size();
  return sizes;
}

TEST_CASE("content beyond the limit is omitted by name: lines first, then scenes") {
  const TempDir dir;
  auto trace = TraceReader::Open(WriteTrace(dir));
  REQUIRE_OK(trace);
  const auto whole = MakeReport(**trace);
  REQUIRE_OK(whole);
  CHECK(whole->left_out.empty());
  const auto sizes = PartSizes(*whole);
  CHECK(sizes.contains("data-0"));
  CHECK(sizes.contains("lines-0"));
  CHECK(sizes.contains("texts-0"));

  const size_t lines = sizes.at("lines-0") + sizes.at("texts-0");
  const auto scenes = MakeReport(**trace, {.title = "t", .max_bytes = PageBytes(*whole) - lines});
  REQUIRE_OK(scenes);
  CHECK(scenes->left_out == std::vector<std::string>{"lines of pass drop-neg"});
  CHECK(PartSizes(*scenes).contains("data-0"));
  CHECK(!PartSizes(*scenes).contains("lines-0"));
  CHECK(!PartSizes(*scenes).contains("texts-0"));

  const auto least = MakeReport(**trace, {.title = "t", .max_bytes = 10});
  REQUIRE_OK(least);
  CHECK(least->left_out == std::vector<std::string>{"lines of pass drop-neg", "pass drop-neg"});
  const auto html = ReportHtml(*least);
  REQUIRE_OK(html);
  CHECK(html->find("id=\"data-0\"") == std::string::npos);
  CHECK(html->find("Left out: pass drop-neg") != std::string::npos);
}

TEST_CASE("equal traces give equal bytes") {
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
  model.title = "</title><script>alert(1)</script> & \"q\" \x01 \xff \xe2\x80\xae";
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
  CHECK(html->find("\xe2\x80\xae") == std::string::npos);  // right-to-left override
  // Ours only: two of data or more, then the page's own.
  CHECK(html->find("<script>") == html->rfind("<script>"));
}

TEST_CASE("the columns of a scene have one entry per node") {
  auto before = ParseOrDie(kBefore);
  auto after = ParseOrDie(kBefore);
  const auto diff = Diff(before->graph({0}), after->graph({0}));
  REQUIRE_OK(diff);
  Texts names, lines;
  const SceneData data = SceneJson(*diff, MakeScene(*diff), {}, names, lines);
  CHECK(data.core.starts_with("{\"nodes\": 4"));
  const auto count = [](const std::string& json, std::string_view key) {
    const size_t begin = json.find('[', json.find("\"" + std::string(key) + "\""));
    const std::string list = json.substr(begin, json.find(']', begin) - begin);
    return std::ranges::count(list, ',') + 1;
  };
  for (std::string_view key : {"name", "op", "type", "phase", "seq", "place", "code", "status",
                               "backward", "distance", "cluster", "order"}) {
    CAPTURE(key);
    CHECK(count(data.core, key) == 4);
  }
  CHECK(count(data.lines, "after") == 4);
}

TEST_CASE("a text of megabytes is truncated, and every text is stored once") {
  Texts texts;
  CHECK(texts.Add("") == -1);
  CHECK(texts.Add("a") == 0);
  CHECK(texts.Add(std::string(10 << 20, 'x')) == 1);
  CHECK(texts.Add("a") == 0);
  CHECK(texts.Json(0, texts.size()).size() < 3000);
}

TEST_CASE("the page converts native lines to FX; other lines are stored") {
  auto module = ParseOrDie(
      R"(
graph step
  x = placeholder : f32[4, 8][8, 1]cpu
  a = aten.neg.default(x) : f32[4, 8][8, 1]cpu
  (b, c) = aten.split.Tensor(a, 2) as split : (f32[2, 8][8, 1]cpu, f32[2, 8][8, 1]cpu)
  s = _operator.add(b, c) : f32[2, 8][8, 1]cpu
  output([s])
)");
  const auto diff = Diff(module->graph({0}), module->graph({0}), {.pins = {}, .stable_ids = true});
  REQUIRE_OK(diff);
  Texts names, lines;
  SceneJson(*diff, MakeScene(*diff), {}, names, lines);
  const std::string json = lines.Json(0, lines.size());
  CAPTURE(json);
  CHECK(json.find("\"a = aten.neg.default(x)\"") != std::string::npos);
  CHECK(json.find("a: ") == std::string::npos);
  CHECK(json.find("= b + c") != std::string::npos);
  CHECK(json.find("= split[0]") != std::string::npos);
  CHECK(json.find("\"return [s]\"") != std::string::npos);
}

TEST_CASE("patterns and single hunks are causes, with their deviations") {
  const auto blocks = [](std::string_view op, int but) {
    std::string text = "graph step\n  x0 = placeholder\n";
    for (int i = 0; i < 8; ++i) {
      text += fmt::format("  v{0} = aten.{1}.default(x{0}) {{forward module=layers.{0}}}\n", i,
                          i == but ? "view" : op);
      text += fmt::format("  x{1} = aten.mm.default(v{0}, x0) {{forward module=layers.{0}}}\n", i,
                          i + 1);
    }
    return text + "  output([x8])\n";
  };
  const TempDir dir;
  auto writer = TraceWriter::Create(dir / "run.strata");
  REQUIRE_OK(writer);
  const auto run = (*writer)->BeginRun({});
  REQUIRE_OK(run);
  auto before = ParseOrDie(blocks("view", -1)), after = ParseOrDie(blocks("reshape", 5));
  const auto first = (*writer)->AddSnapshot(*run, "step", before->graph({0}));
  REQUIRE_OK(first);
  PassRecord pass;
  pass.name = "reshape";
  pass.graph = "step";
  pass.before = *first;
  REQUIRE_OK((*writer)->RecordPass(*run, pass, &after->graph({0})));
  REQUIRE_OK((*writer)->EndRun(*run, RunStatus::kFinished));
  REQUIRE_OK((*writer)->Finish());
  auto trace = TraceReader::Open(dir / "run.strata");
  REQUIRE_OK(trace);
  const auto model = MakeReport(**trace);
  REQUIRE_OK(model);
  const std::vector<ReportCause>& causes = model->runs[0].passes[0].causes;
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].title == "change aten.view.default to aten.reshape.default");
  CHECK(causes[0].where == "layers.{0..7}");
  REQUIRE(causes[0].except.size() == 1);
  CHECK(causes[0].except[0].first == "layers.5");
  CHECK(causes[0].places == 7);
  CHECK(causes[0].counts.changed == 7);
}

}  // namespace
}  // namespace strata
