#include "passes/placement/redistribution.h"

#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "passes/placement/lowering/lower_redistribution.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;

/// The changes, as "1:S(0)>R" for axis 1.
std::string Changes(std::string_view from, std::string_view to, std::string_view mesh_text) {
  Module module;
  const Mesh mesh = OrDie(Mesh::Parse(mesh_text));
  std::string text;
  for (const AxisChange& change : PlanRedistribution(OrDie(ParsePlacements(module, from, mesh)),
                                                     OrDie(ParsePlacements(module, to, mesh)))) {
    text += fmt::format("{}{}:{}>{}", text.empty() ? "" : " ", change.axis,
                        PlacementsText(module, {change.from}), PlacementsText(module, {change.to}));
  }
  return text;
}

TEST_CASE("redistribution: one axis changes by one collective") {
  CHECK_EQ(Changes("R", "R", "fsdp=2"), "");
  CHECK_EQ(Changes("S(0)", "R", "fsdp=2"), "0:S(0)>R");
  CHECK_EQ(Changes("R", "S(1)", "fsdp=2"), "0:R>S(1)");
  CHECK_EQ(Changes("S(0)", "S(1)", "fsdp=2"), "0:S(0)>S(1)");
  CHECK_EQ(Changes("P(sum)", "S(0)", "fsdp=2"), "0:P(sum)>S(0)");
  CHECK_EQ(Changes("P(sum)", "R", "fsdp=2"), "0:P(sum)>R");
}

TEST_CASE(
    "redistribution: an inner axis is gathered before an outer one of its dimension changes") {
  CHECK_EQ(Changes("S(0)S(0)", "RS(0)", "fsdp=2,tp=2"), "1:S(0)>R 0:S(0)>R 1:R>S(0)");
  CHECK_EQ(Changes("S(0)S(0)", "S(0)R", "fsdp=2,tp=2"), "1:S(0)>R");
  CHECK_EQ(Changes("S(0)S(1)", "RS(1)", "fsdp=2,tp=2"), "0:S(0)>R");
}

TEST_CASE("T65: axes whose parts lie in the reversed order are not one collective") {
  Module module;
  const Mesh mesh = OrDie(Mesh::Parse("fsdp=4,ep=2"));  // efsdp=2, ep=2, together fsdp
  const auto joined = [&](std::string_view from, std::string_view to) {
    MeshAxis group;
    return CountJoined(PlanRedistribution(OrDie(ParsePlacements(module, from, mesh)),
                                          OrDie(ParsePlacements(module, to, mesh))),
                       0, mesh, group);
  };
  CHECK_EQ(joined("S(0)S(0)", "RR"), 2);
  CHECK_EQ(joined("P(sum)P(sum)", "S(0)S(0)"), 2);
  CHECK_EQ(joined("_S(0, 2)S(0)", "RR"), 1);
  CHECK_EQ(joined("P(sum)P(sum)", "_S(0, 2)S(0)"), 1);
}

TEST_CASE("T67: the order of the axes in a dimension is a part of a placement and of its text") {
  Module module;
  const Mesh mesh = OrDie(Mesh::Parse("dp_replicate=2,fsdp=4,tp=2"));
  for (const char* text : {"RRR", "S(0)S(0)S(0)", "_S(0, 8)S(0)S(0)", "_S(1, 2)S(0)S(1)"})
    CHECK_EQ(PlacementsText(module, OrDie(ParsePlacements(module, text, mesh))), text);
  CHECK(!(OrDie(ParsePlacements(module, "S(0)S(0)R", mesh)) ==
          OrDie(ParsePlacements(module, "_S(0, 4)S(0)R", mesh))));
}

TEST_CASE("T64: a strided shard lies inside the shards of inner axes") {
  CHECK_EQ(Changes("_S(0, 2)S(0)", "RS(0)", "fsdp=2,tp=2"), "0:_S(0, 2)>R");
  CHECK_EQ(Changes("P(sum)S(0)", "_S(0, 2)S(0)", "fsdp=2,tp=2"), "0:P(sum)>_S(0, 2)");
}

TEST_CASE("redistribution: an innermost part of one dimension becomes one of another") {
  CHECK_EQ(Changes("S(1)S(0)", "_S(0, 2)S(0)", "fsdp=2,tp=2"), "0:S(1)>_S(0, 2)");
  CHECK_EQ(Changes("_S(0, 2)S(0)", "S(1)S(0)", "fsdp=2,tp=2"), "0:_S(0, 2)>S(1)");
  CHECK_EQ(Changes("S(1)S(0)", "S(0)S(0)", "fsdp=2,tp=2"), "1:S(0)>R 0:S(1)>S(0) 1:R>S(0)");
  CHECK_EQ(Changes("S(1)S(1)", "_S(0, 2)S(0)", "fsdp=2,tp=2"), "1:S(1)>S(0) 0:S(1)>_S(0, 2)");
}

TEST_CASE("redistribution: parts of blocks lie inside the shards of other axes") {
  CHECK_EQ(Changes("S(0)F(0, 4)", "RR", "fsdp=2,tp=2"), "1:F(0, 4)>R 0:S(0)>R");
  CHECK_EQ(Changes("P(sum)P(sum)", "S(0)F(0, 4)", "fsdp=2,tp=2"), "0:P(sum)>S(0) 1:P(sum)>F(0, 4)");
}

TEST_CASE("redistribution: rows go to their experts and back, and are not gathered") {
  CHECK_EQ(Changes("T(0)T(0)", "T(0)E(0)", "fsdp=2,tp=2"), "1:T(0)>E(0)");
  CHECK_EQ(Changes("E(0)T(0)", "T(0)T(0)", "fsdp=2,tp=2"), "0:E(0)>T(0)");
  Module module;
  const Mesh mesh = OrDie(Mesh::Parse("fsdp=2"));
  const auto cost = [&](std::string_view from, std::string_view to) {
    return RedistributionCost(OrDie(ParsePlacements(module, from, mesh)),
                              OrDie(ParsePlacements(module, to, mesh)), 1e6, mesh);
  };
  CHECK_LT(cost("T(0)", "E(0)"), 1e6);
  CHECK(std::isinf(cost("T(0)", "R")));
  CHECK(std::isinf(cost("S(0)", "T(0)")));
}

TEST_CASE("T60: partial values are scattered before they are summed up, on inner axes first") {
  CHECK_EQ(Changes("P(sum)P(sum)", "S(0)R", "fsdp=2,tp=2"), "0:P(sum)>S(0) 1:P(sum)>R");
}

TEST_CASE("redistribution: a gather of a transposed tensor leaves its other dimensions whole") {
  for (const char* rows : {"T(1)", "_S(1, 2)", "S(1)"}) {
    CAPTURE(rows);
    // The part [8, 64] of [16, 128].
    auto module = testing::ParseBody(R"(
  x = placeholder : f32[8, 64][1, 8]cpu
  output(x)
)");
    Graph& graph = *module->FindGraph("g");
    const Mesh mesh = OrDie(Mesh::Parse("fsdp=2,tp=2"));
    Type whole = module->types()[graph.value(testing::ValueNamed(graph, "x")).type];
    whole.sizes = {module->dims().Const(16), module->dims().Const(128)};
    whole.strides = {module->dims().Const(1), module->dims().Const(16)};
    Rewriter rewriter(graph);
    rewriter.SetCursorToEnd();
    const ValueId x = testing::ValueNamed(graph, "x");
    const ValueId y = OrDie(LowerRedistribution(
        rewriter, x, whole, OrDie(ParsePlacements(*module, std::string(rows) + "S(0)", mesh)),
        OrDie(ParsePlacements(*module, std::string(rows) + "R", mesh)), mesh, graph.value(x).def));
    CHECK_EQ(module->types().ToString(graph.value(y).type), "f32[16, 64][1, 16]cpu");
  }
}

TEST_CASE("T62, T63: axes of a group are one collective, where no zeros are between their parts") {
  const auto gathers = [](std::string_view part, std::string_view whole) {
    auto module = testing::ParseBody(fmt::format(R"(
  x = placeholder : f32[{}][1]cpu
  whole = placeholder : f32[{}][1]cpu
  output(x)
)",
                                                 part, whole));
    Graph& graph = *module->FindGraph("g");
    const Mesh mesh = OrDie(Mesh::Parse("fsdp=4,ep=2"));  // efsdp=2, ep=2
    Rewriter rewriter(graph);
    rewriter.SetCursorToEnd();
    const ValueId x = testing::ValueNamed(graph, "x");
    const Type type = module->types()[graph.value(testing::ValueNamed(graph, "whole")).type];
    const ValueId y =
        OrDie(LowerRedistribution(rewriter, x, type, {Shard(0), Shard(0)},
                                  {Replicate(), Replicate()}, mesh, graph.value(x).def));
    CHECK_EQ(module->types().ToString(graph.value(y).type), fmt::format("f32[{}][1]cpu", whole));
    std::string groups;
    for (const NodeId node : graph.nodes())
      if (graph.op(node) == "_c10d_functional.all_gather_into_tensor.default")
        groups += fmt::format("{} ", module->str(graph.args(node)[2].str()));
    return groups;
  };
  CHECK_EQ(gathers("2", "8"), "fsdp ");
  // Of 6, each of two ranks has 3, and of these two have 2 and 1: [0 1] [2 _] [3 4] [5 _].
  CHECK_EQ(gathers("2", "6"), "ep efsdp ");
}

TEST_CASE("redistribution: gathered dimensions have the order in memory that the whole has") {
  // One of two heads, which lie inside the positions: [heads, positions, width].
  auto module = testing::ParseBody(R"(
  x = placeholder : f32[1, 8, 4][4, 4, 1]cpu
  whole = placeholder : f32[2, 8, 4][4, 8, 1]cpu
  output(x)
)");
  Graph& graph = *module->FindGraph("g");
  const Mesh mesh = OrDie(Mesh::Parse("tp=2"));
  Rewriter rewriter(graph);
  rewriter.SetCursorToEnd();
  const ValueId x = testing::ValueNamed(graph, "x");
  const Type whole = module->types()[graph.value(testing::ValueNamed(graph, "whole")).type];
  const ValueId y = OrDie(
      LowerRedistribution(rewriter, x, whole, {Shard(0)}, {Replicate()}, mesh, graph.value(x).def));
  CHECK_EQ(module->types().ToString(graph.value(y).type), "f32[2, 8, 4][4, 8, 1]cpu");
}

}  // namespace
}  // namespace strata
