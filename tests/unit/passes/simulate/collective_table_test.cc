#include "passes/simulate/collective_table.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "passes/simulate/node_cost.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kTable =
    R"(  Group    Group Size  Collective      1MB (ms)    4MB (ms)    8MB (ms)
-------  ------------  ----------  ----------  ----------  ----------
      0             8  all_reduce         0.1         0.4         1.2
      1             2  all_gather_into_tensor         0.5         0.6         0.7
)";

std::string TableError(std::string_view text) {
  const auto table = CollectiveTable::Parse(text, "c.table");
  return table ? "" : table.error().message();
}

TEST_CASE("collective table: times lie on the lines through what was measured") {
  const CollectiveTable table = OrDie(CollectiveTable::Parse(kTable, "c.table"));
  constexpr double kMiB = 1 << 20;
  const auto us = [&](double mib) {
    return table.Us("0", 8, "all_reduce", mib * kMiB).value_or(-1);
  };
  CHECK_EQ(us(0.01), doctest::Approx(100));
  CHECK_EQ(us(1), doctest::Approx(100));
  CHECK_EQ(us(2), doctest::Approx(200));
  CHECK_EQ(us(4), doctest::Approx(400));
  CHECK_EQ(us(8), doctest::Approx(1200));
  CHECK_EQ(us(10), doctest::Approx(1600));
  CHECK_EQ(table.Us("0", 0, "all_reduce", kMiB), table.Us("0", 8, "all_reduce", kMiB));
  CHECK_FALSE(table.Us("0", 4, "all_reduce", kMiB).has_value());
  CHECK_FALSE(table.Us("2", 8, "all_reduce", kMiB).has_value());
  CHECK_FALSE(table.Us("0", 8, "all_gather_into_tensor", kMiB).has_value());
}

TEST_CASE("collective table: errors name the place") {
  CHECK_EQ(TableError(""), "no table of collectives: the text is empty");
  CHECK_EQ(TableError("Group Size 1MB (ms)\n"),
           "c.table:1:1: expected the columns Group, Group Size, Collective and sizes\n"
           "  Group Size 1MB (ms)\n  ^");
  const std::string header = "Group Group Size Collective 1MB (ms) 2MB (ms)\n";
  CHECK_EQ(TableError("Group Group Size Collective 1KB (ms)\n"),
           "c.table:1:29: expected a column of times: 16MB (ms)\n"
           "  Group Group Size Collective 1KB (ms)\n                              ^");
  CHECK(TableError("Group Group Size Collective 2MB (ms) 1MB (ms)\n")
            .starts_with("c.table:1:38: expected sizes in rising order"));
  CHECK(TableError(header + "0 8 all_reduce 1\n")
            .starts_with("c.table:2:1: expected 5 columns, and there are 4"));
  CHECK(TableError(header + "0 x all_reduce 1 2\n")
            .starts_with("c.table:2:3: expected a number of ranks"));
  CHECK(TableError(header + "0 8 all_reduce 1 -2\n")
            .starts_with("c.table:2:18: expected a time in ms"));
  CHECK(TableError(header + "0 8 all_reduce 1 nan\n").starts_with("c.table:2:18: expected a time"));
  CHECK(TableError(header + "0 8 a 1 2\n0 8 a 1 2\n")
            .starts_with("c.table:3:1: the collective is there twice"));
}

TEST_CASE("collective table: any damaged byte gives a table or an error") {
  for (size_t at = 0; at < kTable.size(); ++at) {
    for (const char byte : {' ', '\n', '9', 'x', '-'}) {
      std::string text(kTable);
      text[at] = byte;
      const auto table = CollectiveTable::Parse(text, "c.table");
      if (table) CHECK(table->Us("0", 8, "all_reduce", 3e6).value_or(0) >= 0);
    }
  }
}

TEST_CASE(
    "collective table: collectives that it has take its times, others those of the topology") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[1048576][1]cuda:0
  a = _c10d_functional.all_reduce.default(x, 'sum', '0') : f32[1048576][1]cuda:0
  b = _c10d_functional.all_reduce.default(x, 'sum', '1') : f32[1048576][1]cuda:0
  output([a, b])
)");
  const Graph& graph = *module->FindGraph("g");
  const Topology topology = OrDie(Topology::Load("h100"));
  NodeCost cost = NodeCost::OnMesh(topology, graph, OrDie(Mesh::Parse("0=8,1=8")));
  const double modelled = OrDie(cost.CollectiveUs(graph, NodeNamed(graph, "b")));
  CHECK_GT(OrDie(cost.CollectiveUs(graph, NodeNamed(graph, "a"))), modelled);  // between nodes
  cost.UseTable(OrDie(CollectiveTable::Parse(kTable, "c.table")));
  CHECK_EQ(OrDie(cost.CollectiveUs(graph, NodeNamed(graph, "a"))), doctest::Approx(400));
  CHECK_EQ(OrDie(cost.CollectiveUs(graph, NodeNamed(graph, "b"))), doctest::Approx(modelled));
}

}  // namespace
}  // namespace strata
