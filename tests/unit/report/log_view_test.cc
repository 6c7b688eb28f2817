#include "tlparse-export/report/log_view.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/base64.h"
#include "base/file.h"
#include "tests/support/graphs.h"
#include "tests/support/import_path.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/md5.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

constexpr std::string_view kGraph = R"(class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2][1]cpu"):
        return (x,)
)";
constexpr size_t kEnough = size_t{25} << 20;

std::string Record(std::string_view event, std::string_view payload, std::string_view compile) {
  std::string text =
      fmt::format("V1120 18:32:38.396000 14073 torch/x.py:10] {{{}{}", event, compile);
  if (payload.empty()) return text + "}\n";
  text += fmt::format(", \"has_payload\": \"{}\"}}\n\t", Md5Hex(payload));
  for (char c : payload) {
    text += c;
    if (c == '\n') text += '\t';
  }
  return text + "\n";
}

std::string Artifact(std::string_view name, std::string_view payload) {
  return Record(fmt::format(R"("artifact": {{"name": "{}", "encoding": "string"}})", name), payload,
                R"(, "frame_id": 0, "frame_compile_id": 1, "attempt": 0)");
}

class Imported {
 public:
  explicit Imported(const std::string& text) {
    OrDie(WriteFile(folder_ / "x.log", text));
    trace_ = testing::ImportPath(folder_ / "x.log", folder_ / "t");
  }
  LogView View(size_t max_bytes = kEnough) {
    return OrDie(MakeLogView(*trace_, trace_->runs()[0], max_bytes));
  }

 private:
  TempDir folder_;
  std::unique_ptr<TraceReader> trace_;
};

/// The JSON of a part; empty when there is none.
std::string Json(const LogView& view, std::string_view id) {
  for (const ReportPart& part : view.parts) {
    if (part.id == id) return OrDie(Decompress(FromBase64(part.packed).value_or(""), "part"));
  }
  return {};
}

/// A record of the list, as JSON.
std::string RecordOf(const LogView& view, std::string_view name) {
  const std::string text = Json(view, "log-1");
  const auto records = ReadJsonArray(ReadJsonObject(text)->at(2).value);
  for (std::string_view record : *records) {
    if (record.find(fmt::format("\"{}\"", name)) != std::string_view::npos)
      return std::string(record);
  }
  return {};
}

TEST_CASE("log view: records with their payloads, graphs with their REF") {
  Imported imported(Artifact("before_dce", kGraph) + Artifact("after_dce", kGraph) +
                    Artifact("joint", kGraph) + Artifact("code", "x = 1\ny = 2") +
                    Record(R"("link": {"name": "l", "url": "u"})", "", ""));
  const LogView view = imported.View();
  CHECK(view.left_out.empty());
  REQUIRE_EQ(view.parts.size(), 2);
  CHECK_EQ(RecordOf(view, "before_dce"),
           R"([1, "0/1", "artifact", "before_dce", "V1120 18:32:38.396000 14073 torch/x.py:10] ", )"
           R"("{\"name\": \"before_dce\", \"encoding\": \"string\"}", -1, -1, -1, )"
           R"("run=1,graph=dce,pass=0:before", 2, 1])");
  CHECK_NE(RecordOf(view, "after_dce").find("\"run=1,graph=dce,pass=0:after\", 2, 1]"),
           std::string::npos);
  CHECK_NE(RecordOf(view, "joint").find("\"run=1,graph=joint\", 2, 1]"), std::string::npos);
  CHECK_NE(RecordOf(view, "code").find(", 11, 0, 0, \"\", 0, 1]"), std::string::npos);
  CHECK_NE(RecordOf(view, "link").find(R"("{\"name\": \"l\", \"url\": \"u\"}", -1, -1, -1, "")"),
           std::string::npos);
  CHECK_EQ(Json(view, "log-1-0"), R"(["x = 1\ny = 2"])");
}

TEST_CASE("log view: descriptions are grouped, events are separate") {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += Record(fmt::format(R"("describe_tensor": {{"id": {}}})", i), "", "");
    text += Record(R"("chromium_event": {})", fmt::format("{{\"ts\": {}}}", i), "");
  }
  const LogView view = Imported(text).View();
  CHECK_NE(RecordOf(view, "describe_tensor").find(", 0, 0, \"\", 0, 5]"), std::string::npos);
  CHECK_EQ(Json(view, "log-1-events"),
           R"(["{\"ts\": 0}", "{\"ts\": 1}", "{\"ts\": 2}", "{\"ts\": 3}", "{\"ts\": 4}"])");
  CHECK(Json(view, "log-1").starts_with(R"({"events": 5,)"));
}

/// Text that does not compress.
std::string Noise(size_t bytes, uint64_t seed) {
  std::string text;
  while (text.size() < bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    text += static_cast<char>('!' + (seed >> 33) % 90);
  }
  return text;
}

TEST_CASE("log view: omitted records are reported; the largest are omitted first") {
  std::string text = Artifact("small", "kept");
  for (int i = 0; i < 6; ++i)
    text += Artifact(fmt::format("large{}", i), Noise(300'000 + static_cast<size_t>(i), i + 1u));
  Imported imported(text);
  const size_t budget = 1'000'000;
  const LogView view = imported.View(budget);
  size_t bytes = 0;
  for (const ReportPart& part : view.parts)
    bytes += part.packed.size();
  CHECK_LE(bytes, budget);
  CHECK_GE(bytes, budget / 2);
  REQUIRE_EQ(view.left_out.size(), 4);
  CHECK_EQ(view.left_out[0], "run 1, record large2 of [0/1]: 293 KiB");
  CHECK_EQ(view.left_out[3], "run 1, record large5 of [0/1]: 293 KiB");
  CHECK_NE(RecordOf(view, "large5").find(", 300005, -1, -1,"), std::string::npos);
  CHECK_NE(RecordOf(view, "small").find(", 4, 0, 0,"), std::string::npos);
  CHECK(imported.View(kEnough).left_out.empty());
}

TEST_CASE("log view: a run without a log and artifacts has none") {
  const TempDir folder;
  const auto writer = OrDie(TraceWriter::Create(folder / "t"));
  const RunId run = OrDie(writer->BeginRun({}));
  OrDie(writer->EndRun(run, RunStatus::kFinished));
  OrDie(writer->Finish());
  const auto trace = OrDie(TraceReader::Open(folder / "t"));
  CHECK(OrDie(MakeLogView(*trace, trace->runs()[0], kEnough)).parts.empty());
}

}  // namespace
}  // namespace strata
