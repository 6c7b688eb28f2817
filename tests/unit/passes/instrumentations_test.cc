#include "passes/core/instrumentations.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "base/file.h"
#include "ir/text/native_text.h"
#include "passes/core/pass_manager.h"
#include "passes/passes.h"
#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kDetachedRelu = R"(
  x = placeholder : f32[4]
  detach = aten.detach.default(x) : f32[4]
  relu = aten.relu.default(detach) : f32[4]
  output(relu)
)";

class Failing final : public Pass {
 public:
  static constexpr std::string_view kSummary = "fail";
  Result<Changed> Run(Module& /*module*/) override { return Error("always"); }
};

PassManager Pipeline(std::string_view text, PassManager::Options options = {}) {
  PassRegistry registry = AllPasses();
  registry.Add<Failing>("failing");
  PassManager manager(std::move(options));
  for (auto& pass : OrDie(ParsePipeline(text, registry)))
    manager.Add(std::move(pass));
  return manager;
}

TEST_CASE("printing on change shows the graph before and after the passes that changed it") {
  auto module = ParseBody(kDetachedRelu);
  std::string printed;
  auto print = OrDie(PrintOnChange::Create(".*", [&](std::string_view text) { printed += text; }));
  PassManager manager = Pipeline("dce,remove-detach,canonicalize");
  manager.Watch(print);
  OrDie(manager.Run(*module));
  CHECK_EQ(printed, R"(// before pass 1 remove-detach
graph g
  x = placeholder : f32[4]
  detach = aten.detach.default(x) : f32[4]
  relu = aten.relu.default(detach) : f32[4]
  output(relu)
// after pass 1 remove-detach: ok
graph g
  x = placeholder : f32[4]
  relu = aten.relu.default(x) : f32[4]
  output(relu)
)");
}

TEST_CASE("printing on change applies the pattern to the whole name") {
  for (const auto& [pattern, shown] : {std::pair{"remove-.*", true}, {"detach", false}}) {
    auto module = ParseBody(kDetachedRelu);
    std::string printed;
    auto print =
        OrDie(PrintOnChange::Create(pattern, [&](std::string_view text) { printed += text; }));
    PassManager manager = Pipeline("remove-detach");
    manager.Watch(print);
    OrDie(manager.Run(*module));
    CHECK_EQ(!printed.empty(), shown);
  }
}

TEST_CASE("a malformed pattern is an error") {
  const auto print = PrintOnChange::Create("dce(", [](std::string_view) {});
  REQUIRE_FALSE(print);
  CHECK_EQ(print.error().message(),
           "'dce(' is not a regular expression: missing ): dce(: see "
           "github.com/google/re2/wiki/Syntax");
}

TEST_CASE("the times and node counts of each pass are printed") {
  auto module = ParseBody(kDetachedRelu);
  TimePasses times;
  PassManager manager = Pipeline("dce,canonicalize");
  manager.Watch(times);
  OrDie(manager.Run(*module));
  REQUIRE_EQ(times.rows().size(), 2);
  CHECK_EQ(times.rows()[0].pass, "dce");
  CHECK(times.rows()[0].status == PassStatus::kUnchanged);
  CHECK_EQ(times.rows()[1].nodes_before, 4);
  CHECK_EQ(times.rows()[1].nodes_after, 3);
  CHECK(times.rows()[1].wall.count() > 0);
  const std::string table = times.Table();
  CHECK(table.starts_with("pass                  ms      %  status     nodes\n"));
  CHECK(table.find("\ncanonicalize  ") != table.npos);
  CHECK(table.find("  ok         4 -> 3\n") != table.npos);
}

TEST_CASE("a failure leaves an input file with the command that reproduces it") {
  const testing::TempDir folder;
  const std::string path = folder / "reproducer.txt";
  auto module = ParseBody(kDetachedRelu);
  const std::string before = PrintText(*module, {.stable_ids = true});
  PassManager manager = Pipeline("canonicalize,failing", {.input_ref = path});
  Reproducer reproducer(path);
  manager.Watch(reproducer);
  REQUIRE_FALSE(manager.Run(*module));
  const std::string written = OrDie(ReadFile(path));
  CHECK_EQ(written,
           fmt::format("// strata opt {} --passes canonicalize,failing\n{}", path, before));
  CHECK_EQ(PrintText(*OrDie(ParseText(written)), {.stable_ids = true}), before);
}

TEST_CASE("without a failure no input file is written") {
  const testing::TempDir folder;
  const std::string path = folder / "reproducer.txt";
  auto module = ParseBody(kDetachedRelu);
  PassManager manager = Pipeline("canonicalize");
  Reproducer reproducer(path);
  manager.Watch(reproducer);
  OrDie(manager.Run(*module));
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace strata
