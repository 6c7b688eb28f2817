#include <filesystem>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "diff/history/bisect.h"
#include "diff/history/history.h"
#include "diff/history/history_code.h"
#include "refs/histories.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/log/log_text.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::TempDir;

std::string CodeOf(int graph, int addend) {
  return fmt::format("# AOT ID: ['{}_inference']\nadd({})\n", graph, addend);
}

/// What TORCH_TRACE writes of two compilations: each adds to its input.
std::string LogOf(int first, int second) {
  std::string log;
  for (const int graph : {0, 1}) {
    const int addend = graph == 0 ? first : second;
    const std::string compile = fmt::format(R"(, "frame_id": {}, "frame_compile_id": 0)", graph);
    log += testing::Artifact("dynamo_output_graph", testing::GraphText(addend), compile);
    log += testing::Artifact("before_post_grad_graph", testing::GraphText(addend + 10), compile);
    log += testing::Artifact("inductor_post_grad_graph", testing::GraphText(addend), compile);
    log += testing::Record(R"("inductor_output_code": {"filename": "x.py"})", CodeOf(graph, addend),
                           compile);
  }
  return log;
}

/// What TORCH_COMPILE_DEBUG writes of the same: texts without strides, the first ones before views
/// became reshapes.
void WriteDebugFolder(const std::string& folder, int first, int second) {
  for (const int graph : {0, 1}) {
    const int addend = graph == 0 ? first : second;
    const std::string path = fmt::format("{}/run_1/torchinductor/model__{}_inference_{}.{}", folder,
                                         graph, graph + 4, graph);
    std::filesystem::create_directories(path);
    const auto text = [](int number) {
      std::string graph_text = testing::GraphText(number);
      for (size_t at = 0; (at = graph_text.find("[1]cpu")) != std::string::npos;)
        graph_text.erase(at, 6);
      return graph_text;
    };
    REQUIRE_OK(WriteFile(path + "/fx_graph_readable.py", text(addend + 20)));
    REQUIRE_OK(WriteFile(path + "/fx_graph_transformed.py", text(addend)));
    REQUIRE_OK(WriteFile(path + "/output_code.py", CodeOf(graph, addend)));
  }
}

TEST_CASE("graphs of a debug folder are those of a log that have their ids") {
  const TempDir folder;
  WriteDebugFolder(folder / "debug", 1, 2);
  REQUIRE_OK(WriteFile(folder / "a.log", LogOf(1, 2)));
  const History debug = OrDie(LoadHistory(folder / "debug"));
  const History log = OrDie(LoadHistory(folder / "a.log"));
  const GraphNames names = MatchGraphNames(debug, log);
  CHECK(names.a == std::vector<std::string>{"post_grad_graph", "post_grad_graph@1/0"});
  CHECK_EQ(names.b, log.graphs);
  for (const bool debug_first : {true, false}) {
    const History &a = debug_first ? debug : log, &b = debug_first ? log : debug;
    const auto divergence = OrDie(FindDivergence(a, b));
    CHECK_MESSAGE(!divergence, divergence.value_or(Divergence()).what);
    CHECK(OrDie(DiffGeneratedCode(a, b)).empty());
  }
}

TEST_CASE("a debug folder and a log part at the graph that differs") {
  const TempDir folder;
  WriteDebugFolder(folder / "debug", 1, 2);
  REQUIRE_OK(WriteFile(folder / "a.log", LogOf(1, 3)));
  const History debug = OrDie(LoadHistory(folder / "debug"));
  const History log = OrDie(LoadHistory(folder / "a.log"));
  const auto divergence = OrDie(FindDivergence(debug, log));
  REQUIRE(divergence);
  CHECK_EQ(divergence->graph, "post_grad_graph@1/0");
  CHECK_EQ(divergence->what, "change args[1] of aten.add.Tensor: 2 → 3");
  const auto code = OrDie(DiffGeneratedCode(debug, log));
  REQUIRE_EQ(code.size(), 1);
  CHECK_EQ(code[0].label, "inductor_output_code [1/0]");
}

TEST_CASE("a graph that only a debug folder or its log has is a difference") {
  const TempDir folder;
  WriteDebugFolder(folder / "debug", 1, 2);
  const std::string both = LogOf(1, 2);
  REQUIRE_OK(WriteFile(folder / "a.log", both));
  std::filesystem::remove_all(folder / "debug/run_1/torchinductor/model__1_inference_5.1");
  const History debug = OrDie(LoadHistory(folder / "debug"));
  const History log = OrDie(LoadHistory(folder / "a.log"));
  const auto divergence = OrDie(FindDivergence(debug, log));
  REQUIRE(divergence);
  CHECK_EQ(divergence->graph, "post_grad_graph@1/0");
}

}  // namespace
}  // namespace strata
