#include "tlparse-export/torch_trace/read/symbol_hints.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "tests/support/results.h"
#include "tests/unit/log/log_text.h"
#include "tlparse-export/torch_trace/read/log.h"

namespace strata {
namespace {

using testing::Record;

constexpr std::string_view kFirst = R"(, "frame_id": 0, "frame_compile_id": 0, "attempt": 0)";
constexpr std::string_view kSecond = R"(, "frame_id": 0, "frame_compile_id": 1, "attempt": 0)";

std::string Created(std::string_view symbol, std::string_view value, std::string_view context) {
  return fmt::format(
      "V1120 18:32:38.396000 14073 torch/x.py:10] {{\"create_symbol\": {{\"symbol\": \"{}\", "
      "\"val\": \"{}\", \"vr\": \"[2, int_oo]\"}}{}}}\n",
      symbol, value, context);
}

std::string DynamicGraph(std::string_view context) {
  return Record("\"aot_joint_graph\": {}",
                "class <lambda>(torch.nn.Module):\n"
                "    def forward(self, x: \"f32[s77, s27][s27, 1]cpu\"):\n"
                "        add: \"f32[s77, s27][s27, 1]cpu\" = torch.ops.aten.add.Tensor(x, 1);  x = "
                "None\n"
                "        return [add]\n",
                context);
}

/// Bytes of the input of a log's only graph, under the hints of its symbols.
std::optional<int64_t> BytesOfInput(const std::string& text) {
  const auto log = ReadLog(text, "a.log");
  REQUIRE_OK(log);
  const LogRun& run = log->runs.at(0);
  const auto document = log->Parse(run, run.graphs.at(0), run.graphs.at(0).snapshots.at(0));
  REQUIRE_OK(document);
  const Graph& graph = document->graph();
  return graph.module().types().Bytes(graph.value(graph.result(graph.first())).type);
}

TEST_CASE("symbol hints: sizes that a compilation's symbols were created with") {
  CHECK_EQ(BytesOfInput(Created("s77", "5", kFirst) + Created("s27", "8", kFirst) +
                        DynamicGraph(kFirst)),
           5 * 8 * 4);
}

TEST_CASE("symbol hints: neither of another compilation nor of a float") {
  CHECK_EQ(BytesOfInput(Created("s77", "5", kFirst) + Created("s27", "8", kSecond) +
                        DynamicGraph(kFirst)),
           std::nullopt);
  CHECK_EQ(BytesOfInput(Created("s77", "5", kFirst) + Created("s27", "8.5", kFirst) +
                        DynamicGraph(kFirst)),
           std::nullopt);
}

}  // namespace
}  // namespace strata
