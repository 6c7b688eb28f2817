#include "passes/core/fsdp_patterns.h"

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ValueNamed;

std::vector<std::string> OutputsOf(std::string_view body, std::string_view placeholder) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  std::vector<std::string> names;
  for (const ValueId value : OrDie(UnshardOutputs(graph, NodeNamed(graph, placeholder))))
    names.emplace_back(graph.value_name(value));
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("FP-1: a linear chain with a view at its end is saved at the wait") {
  CHECK_EQ(OutputsOf(R"(
  p = placeholder
  x = placeholder
  c = aten._to_copy.default(p, dtype=torch.bfloat16)
  g = _c10d_functional.all_gather_into_tensor.default(c, 2, 'fsdp')
  w = _c10d_functional.wait_tensor.default(g)
  v = aten.t.default(w)
  m = aten.mm.default(x, v)
  output([m])
)",
                     "p"),
           Names{"w"});
}

TEST_CASE("FP-2: a chain that splits and joins what was gathered is saved at the cat") {
  CHECK_EQ(OutputsOf(R"(
  p = placeholder
  x = placeholder
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  w = _c10d_functional.wait_tensor.default(g)
  (a, b) = aten.split.Tensor(w, 2) as split
  j = aten.cat.default([a, b], 1)
  v = aten.reshape.default(j, [4, 4])
  m = aten.mm.default(x, v)
  output([m])
)",
                     "p"),
           Names{"j"});
}

TEST_CASE("FP-3: an all-gather that is read by more than its wait is an error") {
  const auto error_of = [](std::string_view body) {
    const auto module = ParseBody(body);
    const Graph& graph = *module->FindGraph("g");
    return MessageOf(UnshardOutputs(graph, NodeNamed(graph, "p")));
  };
  CHECK_EQ(error_of(R"(
  p = placeholder
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  w = _c10d_functional.wait_tensor.default(g)
  n = aten.neg.default(g)
  output([w, n])
)"),
           "an all-gather must have one user, its wait: graph g: g has 2");
  CHECK_EQ(error_of(R"(
  p = placeholder
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp')
  n = aten.neg.default(g)
  output([n])
)"),
           "an all-gather must be read by its wait: graph g: g is read by n (aten.neg.default)");
}

TEST_CASE("FP-4: a replicated parameter has no chain") {
  CHECK_EQ(OutputsOf(R"(
  p = placeholder
  x = placeholder
  v = aten.t.default(p)
  m = aten.mm.default(x, v)
  output([m])
)",
                     "p"),
           Names{});
}

TEST_CASE("FP-5: a gradient is cut before its first reduction, unless others read it") {
  const auto module = ParseBody(R"(
  g = placeholder
  x = placeholder
  a = aten.neg.default(g)
  ca = aten._to_copy.default(a, dtype=torch.float32)
  ra = _c10d_functional.reduce_scatter_tensor.default(ca, 'sum', 2, 'fsdp')
  wa = _c10d_functional.wait_tensor.default(ra)
  b = aten.neg.default(g)
  rb = _c10d_functional.all_reduce.default(b, 'sum', 'dp')
  wb = _c10d_functional.wait_tensor.default(rb)
  c = aten.mul.Tensor(g, x)
  rc = _c10d_functional.all_reduce.default(c, 'sum', 'dp')
  wc = _c10d_functional.wait_tensor.default(rc)
  sc = _c10d_functional.reduce_scatter_tensor.default(wc, 'sum', 2, 'fsdp')
  vc = _c10d_functional.wait_tensor.default(sc)
  d = aten.mul.Tensor(g, x)
  n = aten.neg.default(d)
  rd = _c10d_functional.reduce_scatter_tensor.default(d, 'sum', 2, 'fsdp')
  wd = _c10d_functional.wait_tensor.default(rd)
  output([wa, wb, vc, wd, n])
)");
  const Graph& graph = *module->FindGraph("g");
  const auto input_of = [&](std::string_view output) {
    const ValueId value = ReductionInput(graph, ValueNamed(graph, output));
    return value.valid() ? graph.value_name(value) : "none";
  };
  CHECK_EQ(input_of("wa"), "ca");
  CHECK_EQ(input_of("wb"), "b");
  CHECK_EQ(input_of("vc"), "c");
  CHECK_EQ(input_of("wd"), "none");
  CHECK_EQ(input_of("n"), "none");
}

}  // namespace
}  // namespace strata
