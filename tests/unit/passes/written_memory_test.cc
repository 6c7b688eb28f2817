// Which nodes write to memory that others read, in programs as Dynamo has them.
#include "passes/core/written_memory.h"

#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/budget/reorder_for_peak.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::OrDie;

TEST_CASE("functions that write because a flag says so keep their place among readers") {
  for (const std::string_view write :
       {"relu(a, inplace=True)", "relu(a, True)", "leaky_relu(a, 0.1, True)",
        "hardtanh(a, -1.0, 1.0, True)", "silu(a, inplace=True)", "elu(a, 1.0, inplace=True)",
        "threshold(a, 0.1, 20, True)"}) {
    CAPTURE(write);
    const auto module = testing::ParseOrDie(fmt::format(R"(graph g foreign
  x = placeholder : f32[4, 6][6, 1]cpu
  a = torch.sin(x) : f32[4, 6][6, 1]cpu
  b = _operator.mul(a, 2) : f32[4, 6][6, 1]cpu
  w = torch.nn.functional.{} : f32[4, 6][6, 1]cpu
  c = _operator.mul(a, 3) : f32[4, 6][6, 1]cpu
  i = torch.abs_(w) : f32[4, 6][6, 1]cpu
  d = _operator.mul(a, 4) : f32[4, 6][6, 1]cpu
  e = _operator.sub(b, c) : f32[4, 6][6, 1]cpu
  f = _operator.sub(e, d) : f32[4, 6][6, 1]cpu
  output([f])
)",
                                                        write));
    const Graph& graph = *module->FindGraph("g");
    OrDie(ReorderForPeak().Run(*module));
    std::string order;
    for (const NodeId node : graph.nodes())
      if (std::string_view("bwcid").find(graph.name(node)) != std::string_view::npos)
        order += graph.name(node);
    CHECK_EQ(order, "bwcid");
  }
}

TEST_CASE("batch norms in training write their statistics, tables with a maximal norm their rows") {
  const auto module = testing::ParseOrDie(R"(graph g foreign
  x = placeholder : f32[4, 6][6, 1]cpu
  i = placeholder : i64[4][1]cpu
  m = placeholder : f32[6][1]cpu
  v = placeholder : f32[6][1]cpu
  train = torch.nn.functional.batch_norm(x, m, v, None, None, True, 0.1, 1e-05) : f32[4, 6][6, 1]cpu
  test = torch.nn.functional.batch_norm(x, m, v, None, None, False, 0.1, 1e-05) : f32[4, 6][6, 1]cpu
  own = torch.nn.functional.batch_norm(x, None, None, None, None, True, 0.1, 1e-05) : f32[4, 6][6, 1]cpu
  aten = aten.batch_norm.default(x, None, None, m, v, True, 0.1, 1e-05, True) : f32[4, 6][6, 1]cpu
  rows = torch.nn.functional.embedding(i, x, None, 1.0, 2.0, False, False) : f32[4, 6][6, 1]cpu
  plain = torch.nn.functional.embedding(i, x, None, None, 2.0, False, False) : f32[4, 6][6, 1]cpu
  relu = torch.nn.functional.relu(x, False) : f32[4, 6][6, 1]cpu
  output([train, test, own, aten, rows, plain, relu])
)");
  const Graph& graph = *module->FindGraph("g");
  std::string writers;
  for (const NodeId node : graph.nodes())
    if (Mutates(graph, node)) writers += fmt::format("{} ", graph.name(node));
  CHECK_EQ(writers, "train aten rows ");
}

TEST_CASE("fused nodes write the operands in which their results lie") {
  const auto module = testing::ParseOrDie(R"(graph g
  x = placeholder : f32[4][1]cpu
  y = placeholder : f32[4][1]cpu
  kernel_0 = attr kernel_0(graph(1))
  (u, v) = strata.fused.default(kernel_0, x, y) as fused : (f32[4][1]cpu, f32[4][1]cpu) ~(x, _)
  output([v])

graph kernel_0 body
  a = placeholder : f32[4][1]cpu
  b = placeholder : f32[4][1]cpu
  c = aten.add_.Tensor(a, b) : f32[4][1]cpu ~a
  d = aten.mul.Tensor(c, b) : f32[4][1]cpu
  output([c, d])
)");
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(WrittenMemory(graph), std::set<ValueId>{testing::ValueNamed(graph, "x")});
}

}  // namespace
}  // namespace strata
