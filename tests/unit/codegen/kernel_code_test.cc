#include "runtime/codegen/kernel_code.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/module.h"
#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fuse.h"
#include "passes/regions/compile_regions.h"
#include "runtime/codegen/cpp_source.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::ParseOrDie;

/// The first fused node of the graph.
NodeId FusedIn(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    if (graph.op(node) == "strata.fused.default") return node;
  }
  return {};
}

size_t CountOf(std::string_view part, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST_CASE("the code of a fused call is the function that is compiled, named after its body") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  w = placeholder : f32[600][1]cpu
  a = aten.mul.Tensor(x, w) : f32[4, 600][600, 1]cpu
  b = aten.add.Scalar(a, 0.5) : f32[4, 600][600, 1]cpu
  output([b])
)");
  OrDie(Fuse({.numerics = Fuse::Numerics::kFast}).Run(*module));
  const Graph& graph = *module->FindGraph("g");
  KernelCode code;
  const Graph& body = module->graph(GraphId{1});
  CHECK_EQ(code.Of(graph, FusedIn(graph)), CppFunction(OrDie(MakeKernel(body)), body.name_text()));
  CHECK_EQ(code.Of(graph, NodeNamed(graph, "x")), "");
}

TEST_CASE("the code of a dynamic size is the same for every size") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[s0, 600][600, 1]cpu
  a = aten.mul.Scalar(x, 2.0) : f32[s0, 600][600, 1]cpu
  b = aten.add.Scalar(a, 0.5) : f32[s0, 600][600, 1]cpu
  output([b])
)");
  OrDie(Fuse({.numerics = Fuse::Numerics::kFast}).Run(*module));
  const Graph& graph = *module->FindGraph("g");
  const Graph& body = module->graph(GraphId{1});
  KernelCode code;
  for (const int64_t size : {2, 64, 1000}) {
    CHECK_EQ(code.Of(graph, FusedIn(graph)),
             CppFunction(OrDie(MakeKernel(body, false, {{"s0", size}})), body.name_text()));
  }
}

TEST_CASE("the code of a region is that of the calls inside, each once") {
  const std::string mark = "{forward module=m +%'custom.compile_with_inductor'='{}'}";
  const auto call = [&](std::string_view result, std::string_view op, std::string_view operands,
                        std::string_view type) {
    return fmt::format("  {} = aten.{}({}) : {} {}\n", result, op, operands, type, mark);
  };
  constexpr std::string_view kType = "f32[8, 8][8, 1]cpu";
  const auto module = ParseOrDie(
      "graph g\n  x = placeholder : f32[8, 8][8, 1]cpu\n" +
      call("a", "mul.Scalar", "x, 2.0", kType) + call("b", "add.Scalar", "a, 0.5", kType) +
      call("c", "mm.default", "b, b", kType) + call("d", "mul.Scalar", "c, 2.0", kType) +
      call("e", "add.Scalar", "d, 0.5", kType) + "  output([e])\n");
  OrDie(CompileRegions(CompileRegions::Options()).Run(*module));
  OrDie(Fuse({.numerics = Fuse::Numerics::kFast}).Run(*module));
  const Graph& graph = *module->FindGraph("g");
  KernelCode code;
  const std::string& of_region = code.Of(graph, FusedIn(graph));
  CHECK_EQ(CountOf("extern \"C\" void", of_region), 1);
  CHECK_EQ(CountOf(" * ", of_region) > 0, true);
}

constexpr std::string_view kFlex = R"(graph g
  q = placeholder : f32[1, 2, 64, 16][2048, 1024, 16, 1]cpu
  mask_mod = attr mask_mod(graph(1))
  score_mod = attr score_mod(graph(2))
  (a0, a1, a2, a3, a4, a5, a6, a7) = strata.create_block_mask.default(mask_mod, [1, 1, 64, 64, 32, 32], (), device('cpu')) as blocks : (i32[1, 1, 2][2, 2, 1]cpu, i32[1, 1, 2, 2][4, 4, 2, 1]cpu, i32[1, 1, 2][2, 2, 1]cpu, i32[1, 1, 2, 2][4, 4, 2, 1]cpu, i32[1, 1, 2][2, 2, 1]cpu, i32[1, 1, 2, 2][4, 4, 2, 1]cpu, i32[1, 1, 2][2, 2, 1]cpu, i32[1, 1, 2, 2][4, 4, 2, 1]cpu)
  (out, lse) = higher_order.flex_attention(q, q, q, score_mod, (64, 64, a0, a1, a2, a3, a4, a5, a6, a7, 32, 32, mask_mod), 0.25, {}, (), ()) as flex : (f32[1, 2, 64, 16][2048, 1024, 16, 1]cpu, f32[1, 2, 64][128, 64, 1]cpu)
  output([out])
graph mask_mod body
  b = placeholder : i32[][]cpu
  h = placeholder : i32[][]cpu
  q_idx = placeholder : i32[][]cpu
  kv_idx = placeholder : i32[][]cpu
  mask = aten.ge.Tensor(q_idx, kv_idx) : b8[][]cpu
  output(mask)
graph score_mod body
  score = placeholder : f32[][]cpu
  b = placeholder : i32[][]cpu
  h = placeholder : i32[][]cpu
  q_idx = placeholder : i32[][]cpu
  kv_idx = placeholder : i32[][]cpu
  output(score)
)";

TEST_CASE("the code of flex attention is its own function") {
  const auto module = ParseOrDie(kFlex);
  const Graph& graph = *module->FindGraph("g");
  KernelCode code;
  CHECK_EQ(CountOf("flex_attention", code.Of(graph, NodeNamed(graph, "flex"))) > 0, true);
  CHECK_EQ(CountOf("create_block_mask", code.Of(graph, NodeNamed(graph, "blocks"))) > 0, true);
}

TEST_CASE("flex attention has no code where its graph takes the output only, as Dynamo's does") {
  std::string text(kFlex);
  text.replace(text.find("(out, lse)"), 10, "(out,)");
  constexpr std::string_view kSums = ", f32[1, 2, 64][128, 64, 1]cpu)";
  text.replace(text.find(kSums), kSums.size(), ",)");
  const auto module = ParseOrDie(text);
  const Graph& graph = *module->FindGraph("g");
  KernelCode code;
  CHECK_EQ(CountOf("flex_attention", code.Of(graph, NodeNamed(graph, "flex"))), 0);
}

}  // namespace
}  // namespace strata
