#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "cli/core/command.h"
#include "ir/text/native_text.h"
#include "store/trace_reader.h"
#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"

namespace strata::cli {

Result<Exit> RunOpt(Args args);

namespace {

using testing::OrDie;

constexpr std::string_view kGraph = R"(// a comment
graph g
  x = placeholder : f32[2, 3]
  d = aten.detach.default(x) : f32[2, 3]
  relu = aten.relu.default(d) : f32[2, 3]
  dead = aten.neg.default(relu) : f32[2, 3]
  output(relu)
)";

/// A folder that contains `kGraph`.
struct Workplace {
  testing::TempDir folder;
  std::string input = Path("g.txt");

  Workplace() { OrDie(Write(input, kGraph)); }
  std::string Path(const std::string& name) const { return folder / name; }
  static Result<bool> Write(const std::string& path, std::string_view text) {
    STRATA_RETURN_IF_ERROR(WriteFile(path, text));
    return true;
  }
  static std::string ErrorOf(const std::vector<std::string>& words) {
    const Result<Exit> exit = RunOpt(words);
    return exit ? "" : exit.error().message();
  }
};

TEST_CASE("opt records the graph before and after each pass") {
  const Workplace work;
  const std::string trace_path = work.Path("t.strata");
  const Result<Exit> exit = RunOpt(
      std::vector<std::string>{work.input, "--passes", "dce,remove-detach,dce", "-o", trace_path});
  REQUIRE(exit);
  CHECK(*exit == Exit::kOk);
  const auto trace = OrDie(TraceReader::Open(trace_path));
  REQUIRE_EQ(trace->runs().size(), 1);
  const StoredRun& run = trace->runs()[0];
  CHECK(run.info.kind == RunKind::kOpt);
  CHECK(run.status == RunStatus::kFinished);
  CHECK_EQ(run.info.source, work.input);
  CHECK_EQ(run.info.pipeline, "dce,remove-detach,dce");
  CHECK_EQ(run.info.command, fmt::format("strata opt {} --passes dce,remove-detach,dce -o {}",
                                         work.input, trace_path));
  REQUIRE_EQ(run.passes.size(), 3);
  CHECK(run.passes[0].record.outcome == PassOutcome::kOk);
  CHECK(run.passes[1].record.outcome == PassOutcome::kOk);
  CHECK(run.passes[2].record.outcome == PassOutcome::kUnchanged);
  const auto text_after = [&](size_t pass) {
    return PrintText(*OrDie(trace->LoadSnapshot(run.passes[pass].record.after)));
  };
  CHECK_EQ(text_after(0), R"(graph g
  x = placeholder : f32[2, 3]
  d = aten.detach.default(x) : f32[2, 3]
  relu = aten.relu.default(d) : f32[2, 3]
  output(relu)
)");
  CHECK_EQ(text_after(2), R"(graph g
  x = placeholder : f32[2, 3]
  relu = aten.relu.default(x) : f32[2, 3]
  output(relu)
)");
}

TEST_CASE("opt accepts a snapshot of a trace and keeps the ids of its nodes") {
  const Workplace work;
  const std::string first = work.Path("first.strata"), second = work.Path("second.strata");
  REQUIRE(RunOpt(std::vector<std::string>{work.input, "--passes", "dce", "-o", first}));
  REQUIRE(RunOpt(std::vector<std::string>{first + "#pass=0:before", "--passes", "canonicalize",
                                          "-o", second}));
  const auto trace = OrDie(TraceReader::Open(second));
  const PassRecord& pass = trace->runs()[0].passes[0].record;
  const auto before = OrDie(trace->LoadSnapshot(pass.before));
  const auto original = OrDie(TraceReader::Open(first));
  const auto input = OrDie(original->LoadSnapshot(original->runs()[0].passes[0].record.before));
  CHECK_EQ(PrintText(*before, {.stable_ids = true}), PrintText(*input, {.stable_ids = true}));
}

TEST_CASE("opt applies passes to all graphs of a text") {
  const Workplace work;
  const std::string two = work.Path("two.txt"), trace_path = work.Path("t.strata");
  OrDie(Workplace::Write(two, R"(graph step
  x = placeholder
  dead = aten.neg.default(x)
  output(x)
graph optimizer
  x = placeholder
  dead = aten.neg.default(x)
  output(x)
)"));
  REQUIRE(RunOpt(std::vector<std::string>{two, "--passes", "dce", "-o", trace_path}));
  const auto trace = OrDie(TraceReader::Open(trace_path));
  CHECK_EQ(trace->runs()[0].graphs.size(), 2);
  CHECK_EQ(trace->runs()[0].passes.size(), 2);
}

TEST_CASE("opt reports errors and leaves no file") {
  const Workplace work;
  const std::string output = work.Path("t.strata");
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"-o", output});
    const std::string message = Workplace::ErrorOf(words);
    CHECK_FALSE(std::filesystem::exists(output));
    return message.substr(0, message.find('\n'));
  };
  CHECK_EQ(error({}), "no REF: strata opt: name a graph, or list the passes with --list");
  CHECK_EQ(error({work.input}),
           "no passes: strata opt: give --passes \"dce,canonicalize\"; --list shows all");
  CHECK_EQ(error({work.Path("none"), "--passes", "dce"}),
           fmt::format("no such file: {}: check the path", work.Path("none")));
  CHECK_EQ(error({work.folder.path(), "--passes", "dce"}),
           fmt::format("is a directory: {}: give a file", work.folder.path()));
  CHECK(
      error({work.input, "--passes", "dcee"})
          .starts_with("pipeline:1:1: unknown pass 'dcee'; did you mean 'dce'? available: dce, "));
  CHECK_EQ(error({work.input, "--passes", "dce{fast=1}"}),
           "pipeline:1:5: pass 'dce' has no options");
  CHECK_EQ(error({work.input, "--passes", "dce", "--print-on-change", "("}),
           "'(' is not a regular expression: missing ): (: see github.com/google/re2/wiki/Syntax");
  CHECK_EQ(Workplace::ErrorOf({work.input, "--passes", "dce", "-o", work.Path("no/t.strata")}),
           fmt::format("cannot write: {}: no folder '{}', create it first",
                       work.Path("no/t.strata"), work.Path("no")));
  CHECK_EQ(Workplace::ErrorOf({work.input, "--passes", "dce", "-o", work.input}),
           fmt::format("output is the input: {}: give another name", work.input));
}

}  // namespace
}  // namespace strata::cli
