#include "tlparse-export/report/log_tables.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

/// A table as text: its title and words, then a line per row; links as `text>compile#record`.
std::string Text(const LogTable& table) {
  std::string text = table.title + ": " + table.words + "\n";
  for (const auto& row : table.rows) {
    for (const LogTable::Cell& cell : row) {
      text += cell.text;
      for (const LogTable::Link& link : cell.links)
        text += link.text + ">" + link.compile + "#" + std::to_string(link.record);
      text += &cell == &row.back() ? "\n" : " | ";
    }
  }
  return text;
}

LogCompile Compile(std::string id, std::string_view metrics) {
  LogCompile compile = {.id = std::move(id), .status = {}, .caches = {}, .schedule = {}};
  if (!metrics.empty()) JudgeByMetrics(metrics, compile);
  return compile;
}

TEST_CASE("the outcome of an attempt follows from its metrics and those of later attempts") {
  std::vector<LogCompile> compiles = {
      Compile("0/0", R"({"graph_op_count": 3, "fail_type": null})"),
      Compile("1/0", ""),
      Compile("1/0_1", R"({"graph_op_count": 0, "restart_reasons": ["break"]})"),
      Compile("2/0", R"({"fail_type": "Error"})"),
      Compile("3/0", R"({"restart_reasons": ["a", "b"]})"),
      Compile("4/0", ""),
      Compile("-", ""),
      Compile("5/0", "no json"),
  };
  JudgeAttempts(compiles);
  std::vector<std::string> told;
  for (const LogCompile& compile : compiles)
    told.push_back(compile.status);
  CHECK(told == std::vector<std::string>{"compiled", "restarted", "empty graph", "failed",
                                         "restarted", "no metrics", "", "compiled"});
}

LogFacts Rank(int32_t rank, std::string cache, std::string schedule) {
  LogFacts facts;
  facts.run = rank + 1;
  facts.rank = rank;
  facts.compiles = {Compile("0/0", "{}")};
  facts.compiles[0].records = 1200;
  facts.compiles[0].caches = {std::move(cache)};
  facts.compiles[0].schedule = schedule;
  facts.payloads = {{"0/0", "schedule", std::move(schedule), 4}, {"0/0", "same", "s", 5}};
  facts.expected_ms = {{"0/0", 1.5 * (rank + 1)}};
  facts.order = {"0/0", "0/0"};
  return facts;
}

TEST_CASE("ranks are compared by compilation, payload, order and expected time") {
  std::vector<LogFacts> logs = {Rank(0, "hit", "x"), Rank(1, "hit", "x"), Rank(2, "miss", "y")};
  logs[2].order[1] = "7/0";
  const std::vector<LogTable> tables = CompareLogs(logs);
  REQUIRE(tables.size() == 4);
  CHECK(Text(tables[0]) ==
        "Ranks: 1 compilation differ between ranks\n"
        "[0/0] | 1,200 records, compiled, hit>0/0#-1 | 1,200 records, compiled, hit>0/0#-1 | "
        "1,200 records, compiled, miss>0/0#-1\n");
  CHECK(Text(tables[1]) ==
        "Payloads that differ between ranks: records of one name in one compilation\n"
        "[0/0] | schedule | 0, 1>0/0#42>0/0#4\n");
  CHECK(Text(tables[2]) ==
        "Order of execution: ranks differ at 2 of 2 places\n"
        "0 | [0/0] | [0/0] | [0/0] | collectives, cache\n"
        "1 | [0/0] | [0/0] | [7/0] | graph, collectives, cache\n");
  CHECK(Text(tables[3]) ==
        "Expected run time: estimates of Inductor, added up\n"
        "[0/0] | 1.5 ms | 3.0 ms | 4.5 ms | 3.00\n");
}

TEST_CASE("one log, and logs without compilations, are not compared") {
  CHECK(CompareLogs({Rank(0, "hit", "x")}).empty());
  CHECK(CompareLogs({LogFacts(), LogFacts()}).empty());
}

TEST_CASE("collectives of the schedule are compared with those of the code, without comments") {
  const std::vector<LogTable> tables = CollectivesTable(
      {R"(["torch.ops._c10d_functional.all_reduce.default", "wait_tensor", "send"])"},
      {"a = torch.ops._c10d_functional.all_reduce_.default(x)  # "
       "c10d_functional.broadcast.default(\n"
       "b = torch.ops._c10d_functional.all_gather_into_tensor_out.default(a)\n"
       "torch.ops._c10d_functional.wait_tensor.default(a)\n"});
  REQUIRE(tables.size() == 1);
  CHECK(Text(tables[0]) ==
        "Collectives: schedule and code differ, 1 wait missing\n"
        "all_reduce | 1 | 1\nwait_tensor | 1 | 1\nother | 1 | 0\nall_gather | 0 | 1\n");
  CHECK(CollectivesTable({}, {"c10d_functional.all_reduce.default("}).empty());
}

}  // namespace
}  // namespace strata
