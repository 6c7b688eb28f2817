#include "tlparse-export/torch_trace/import/follow.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/log/log_text.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::Artifact;
using testing::GraphText;
using testing::TempDir;

std::unique_ptr<TraceReader> OpenTrace(const std::string& path) {
  auto reader = TraceReader::Open(path);
  REQUIRE_OK(reader);
  return std::move(*reader);
}

/// Follows logs into the trace `path` while `steps` write them: each step runs after a look at the
/// logs without news. Following ends after the last step.
class Followed {
 public:
  Followed(const std::string& path, const std::vector<std::string>& words,
           std::vector<std::function<void()>> steps) {
    auto writer = TraceWriter::Create(path);
    REQUIRE_OK(writer);
    FollowOptions options;
    size_t next = 0;
    int patience = 0;
    options.wait = [&](int ms) {
      // After two looks without news, the follower has seen the end of each log.
      patience = ms > 0 ? patience + 1 : 0;
      if (patience < 2) return false;
      patience = 0;
      if (next == steps.size()) return true;
      steps[next++]();
      return false;
    };
    status = FollowLogs(words, options, **writer, summary);
    if (status) CHECK_OK((*writer)->Finish());
    writer->reset();
    trace = OpenTrace(path);
  }

  Status status;
  ImportSummary summary;
  std::unique_ptr<TraceReader> trace;
};

void Append(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

TEST_CASE("follow: a log that grows, starting before it exists") {
  const TempDir folder;
  const std::string log = folder / "a.log", trace_path = folder / "t.strata";
  const std::string before = Artifact("before_a", GraphText(1));
  const std::string after = Artifact("after_a", GraphText(2));
  std::vector<size_t> passes;
  const auto look = [&] {
    const auto trace = OpenTrace(trace_path);
    passes.push_back(trace->runs().empty() ? 99 : trace->runs()[0].passes.size());
  };
  const Followed followed(trace_path, {log},
                          {look, [&] { Append(log, before.substr(0, 30)); }, look,
                           [&] { Append(log, before.substr(30)); }, look,
                           [&] { Append(log, after.substr(0, after.size() - 10)); }, look,
                           [&] { Append(log, after.substr(after.size() - 10)); }, look});
  CHECK_OK(followed.status);
  // The pass appears once its last record is complete, before another record follows.
  CHECK_EQ(passes, std::vector<size_t>{99, 99, 0, 0, 1});
  CHECK_EQ(followed.summary.num_warnings, 0);
  REQUIRE_EQ(followed.trace->runs().size(), 1);
  CHECK_EQ(followed.trace->runs()[0].status, RunStatus::kFinished);
  CHECK_EQ(followed.trace->runs()[0].info.source, log);
}

TEST_CASE("follow: ranks of a folder come one by one") {
  const TempDir folder, out;
  const Followed followed(
      out / "t.strata", {folder.path()},
      {[&] { Append(folder / "x_rank_1.log", Artifact("g", GraphText(1), R"(, "rank": 1)")); },
       [&] { Append(folder / "x_rank_0.log", Artifact("g", GraphText(1), R"(, "rank": 0)")); }});
  CHECK_OK(followed.status);
  REQUIRE_EQ(followed.trace->runs().size(), 2);
  CHECK_EQ(followed.trace->runs()[0].info.rank, 1);
  CHECK_EQ(followed.trace->runs()[1].info.world, 2);
}

TEST_CASE("follow: a truncated log and a replaced log") {
  const TempDir folder;
  const std::string log = folder / "a.log";
  const std::string first = Artifact("first", GraphText(1)) + Artifact("second", GraphText(2));
  const Followed followed(
      folder / "t.strata", {log},
      {[&] { Append(log, first); },
       [&] { std::ofstream(log, std::ios::trunc) << Artifact("third", GraphText(3)); },
       [&] {
         Append(folder / "new", Artifact("fourth", GraphText(4)));
         fs::rename(log, folder / "a.log.1");
         fs::rename(folder / "new", log);
       }});
  CHECK_OK(followed.status);
  CHECK_EQ(followed.summary.num_warnings, 0);
  REQUIRE_EQ(followed.trace->runs().size(), 1);
  std::vector<std::string> names;
  for (const StoredGraph& graph : followed.trace->runs()[0].graphs)
    names.push_back(graph.name);
  CHECK_EQ(names, std::vector<std::string>{"first", "second", "third", "fourth"});
}

TEST_CASE("follow: following ends after idle time, and fails without records") {
  const TempDir folder;
  auto writer = TraceWriter::Create(folder / "t.strata");
  REQUIRE_OK(writer);
  ImportSummary summary;
  int waits = 0;
  FollowOptions options;
  options.idle_s = 2;
  options.wait = [&](int) { return ++waits > 1000; };
  CHECK_EQ(testing::MessageOf(FollowLogs({"/no/such.log"}, options, **writer, summary)),
           "nothing to import: /no/such.log: no records came");
  CHECK_EQ(waits, 20);
}

TEST_CASE("follow: a graph is no log") {
  const TempDir folder;
  const std::string graph = folder / "graph.txt";
  std::ofstream(graph) << GraphText(1);
  const Followed followed(folder / "t.strata", {graph}, {});
  CHECK_EQ(testing::MessageOf(followed.status),
           "a graph: " + graph + ": only logs can be followed; import it without --follow");
}

}  // namespace
}  // namespace strata
