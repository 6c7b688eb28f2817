#include <array>
#include <cmath>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/placement/costs/collective_cost.h"
#include "passes/placement/costs/function_cost.h"
#include "passes/placement/costs/placement_cost.h"
#include "passes/placement/costs/topology.h"
#include "tests/support/graphs.h"
#include "tests/unit/passes/cost_models.h"

namespace strata {
namespace {

using testing::H100;
using testing::kExchange;
using testing::kGather;
using testing::kReduce;
using testing::kScatter;
using testing::OrDie;

NetworkSpec Network(const std::string& topology) {
  return OrDie(Topology::Load(topology)).network;
}

std::string Axes(const std::string& topology, std::string_view mesh) {
  std::string text;
  const Topology loaded = OrDie(Topology::Load(topology));
  for (const AxisTopology& axis : OrDie(AxisTopologies(loaded, OrDie(Mesh::Parse(mesh)))))
    text += fmt::format("{}{}x{}", text.empty() ? "" : " ", axis.nodes, axis.ranks_per_node);
  return text;
}

TEST_CASE("a topology is written as it is read, and its cores limit how many ranks work at once") {
  Topology topology = OrDie(Topology::Load("cpu"));
  topology.device.cores = 2;
  topology.device.state_bytes_per_us = 0.5 * topology.device.bytes_per_us;
  topology.device.functions_per_us = {{"exp", 1500}, {"silu", 4500}};
  topology.device.attention_flops_per_us[DType::kF32] = 4e4;
  topology.device.attention_backward_flops_per_us[DType::kF32] = 6e4;
  const Topology again = OrDie(Topology::Parse(topology.ToToml(), "t.toml", "t"));
  CHECK_EQ(again.ToToml(), topology.ToToml());
  CHECK_EQ(again.device.flops_per_us, topology.device.flops_per_us);
  CHECK_EQ(again.device.functions_per_us, topology.device.functions_per_us);
  CHECK_EQ(again.device.attention_flops_per_us, topology.device.attention_flops_per_us);
  CHECK_EQ(again.Crowding(2), 1.0);
  CHECK_EQ(again.Crowding(4), 2.0);
  CHECK_EQ(H100().Crowding(512), 1.0);
}

TEST_CASE("threads exchange by copies and sums of their cores, which ranks share") {
  Topology threads = OrDie(Topology::Load("cpu"));
  threads.device.cores = 2;
  threads.network = {.model = NetworkModel::kMemory,
                     .ranks_per_node = 1024,
                     .intra = 4,  // 4000 bytes in a µs
                     .base_us = 10,
                     .hop_us = 1,
                     .sum = 2};
  const Topology again = OrDie(Topology::Parse(threads.ToToml(), "t.toml", "t"));
  CHECK_EQ(again.ToToml(), threads.ToToml());
  const AxisTopology two{.ranks = 2, .nodes = 1, .ranks_per_node = 2};
  const auto us = [&](CollectiveOp op) { return CollectiveUs(again.network, op, 8000, two); };
  CHECK_EQ(us(kGather), doctest::Approx(11 + 2));
  CHECK_EQ(us(kScatter), doctest::Approx(11 + 4));
  CHECK_EQ(us(kReduce), doctest::Approx(16.5 + 4 + 2));
  CHECK_EQ(us(kExchange), doctest::Approx(11 + 2));
  CHECK_EQ(again.ExchangeCrowding(4), 2.0);
  CHECK_EQ(OrDie(Topology::Load("cpu")).ExchangeCrowding(1024), 1.0);
}

TEST_CASE("T45: the ranks of an axis lie on as many nodes as the axes inside it fill") {
  CHECK_EQ(Axes("h100", "tp=8"), "1x8");
  CHECK_EQ(Axes("h100", "fsdp=2,tp=8"), "2x1 1x8");
  CHECK_EQ(Axes("h100", "dp_replicate=2,fsdp=4,tp=4"), "2x1 2x2 1x4");
  CHECK_EQ(Axes("b200", "fsdp=8,tp=8"), "1x8 1x8");
  const Topology h100 = H100();
  const auto uneven = AxisTopologies(h100, OrDie(Mesh::Parse("fsdp=12")));
  REQUIRE(!uneven);
  CHECK_EQ(uneven.error().message(),
           "nodes of 8 ranks are filled unevenly: mesh fsdp=12 on topology h100: choose sizes that "
           "divide the nodes, or are multiples of them");
}

TEST_CASE("T46: collectives take the times of the reference model") {
  struct Golden {
    const char* topology;
    AxisTopology axis;
    CollectiveOp collective;
    std::array<double, 4> us;  // of 2^12, 2^20, 2^24, 2^30 bytes
  };
  const Golden goldens[] = {
      {"h100", {8, 1, 8}, kGather, {30.010, 32.661, 72.582, 2755.233}},
      {"h100", {8, 1, 8}, kReduce, {31.015, 34.927, 93.836, 4052.505}},
      {"h100", {8, 1, 8}, kExchange, {50.011, 52.759, 94.151, 2875.636}},
      {"h100", {8, 8, 1}, kGather, {41.776, 86.603, 405.722, 19664.539}},
      {"h100", {8, 8, 1}, kReduce, {37.994, 164.297, 1124.168, 37949.725}},
      {"h100", {8, 8, 1}, kExchange, {60.076, 83.973, 382.515, 19944.108}},
      {"h100", {32, 32, 1}, kGather, {161.794, 211.296, 645.421, 22134.154}},
      {"h100", {32, 32, 1}, kReduce, {57.994, 198.297, 1158.168, 43648.006}},
      {"h100", {32, 32, 1}, kExchange, {290.080, 314.065, 639.884, 21383.787}},
      {"h100", {64, 8, 8}, kGather, {101.287, 153.569, 231.110, 3780.950}},
      {"h100", {64, 8, 8}, kReduce, {45.873, 100.224, 271.560, 6819.886}},
      {"h100", {64, 8, 8}, kExchange, {60.076, 85.550, 415.751, 19944.108}},
      {"a100", {8, 1, 8}, kGather, {10.882, 31.724, 199.590, 10745.132}},
      {"a100", {8, 1, 8}, kReduce, {15.163, 56.847, 390.779, 21481.863}},
      {"a100", {8, 1, 8}, kExchange, {35.667, 52.681, 308.889, 17526.100}},
      {"b200", {8, 1, 8}, kGather, {30.005, 31.331, 51.291, 1392.617}},
      {"b200", {8, 1, 8}, kReduce, {31.008, 32.964, 62.418, 2041.752}},
      {"b200", {8, 1, 8}, kExchange, {50.006, 51.553, 74.855, 1640.729}},
  };
  constexpr int kPowers[] = {12, 20, 24, 30};
  for (const Golden& golden : goldens) {
    for (size_t i = 0; i < golden.us.size(); ++i) {
      INFO(fmt::format("{} {} ranks on {} nodes, 2^{} bytes", golden.topology, golden.axis.ranks,
                       golden.axis.nodes, kPowers[i]));
      CHECK_EQ(CollectiveUs(Network(golden.topology), golden.collective, std::exp2(kPowers[i]),
                            golden.axis),
               doctest::Approx(golden.us[i]).epsilon(0.005));
    }
  }
}

TEST_CASE("T47: more bytes take no less time, on any number of nodes") {
  for (const char* topology : {"a100", "h100", "h200", "b200", "cpu"}) {
    const NetworkSpec network = Network(topology);
    for (const CollectiveOp collective : {kGather, kScatter, kReduce, kExchange}) {
      for (const int64_t nodes : {1, 2, 4, 8, 16, 32}) {
        const AxisTopology axis{.ranks = nodes * 8, .nodes = nodes, .ranks_per_node = 8};
        double before = 0;
        for (int power = 10; power <= 32; ++power) {
          // Corrections change at powers of two: within them the fit may fall by a few percent.
          const double us = CollectiveUs(network, collective, std::exp2(power), axis);
          INFO(fmt::format("{} {} nodes, 2^{} bytes", topology, nodes, power));
          CHECK_GE(us, 0.97 * before);
          before = us;
        }
      }
    }
  }
}

TEST_CASE("T48: times do not jump where the tables of the reference model have their entries") {
  for (const char* topology : {"a100", "h100", "h200", "b200", "cpu"}) {
    const NetworkSpec network = Network(topology);
    for (const CollectiveOp collective : {kGather, kScatter, kReduce, kExchange}) {
      for (const int64_t nodes : {1, 2, 4, 8, 16, 32}) {
        const AxisTopology axis{.ranks = nodes * 8, .nodes = nodes, .ranks_per_node = 8};
        for (int power = 10; power <= 32; ++power) {
          const double below = CollectiveUs(network, collective, 0.999 * std::exp2(power), axis),
                       above = CollectiveUs(network, collective, 1.001 * std::exp2(power), axis);
          INFO(fmt::format("{} {} nodes, 2^{} bytes: {} µs, then {} µs", topology, nodes, power,
                           below, above));
          CHECK_LE(above, 1.15 * below);
          CHECK_GE(above, 0.85 * below);
        }
      }
    }
  }
}

TEST_CASE("T49: reducing to all costs more than to one part, which costs what gathering does") {
  const AxisTopology node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  for (const double bytes : {1e5, 1e7, 1e9}) {
    CHECK_EQ(CollectiveUs(Network("h100"), kGather, bytes, node),
             CollectiveUs(Network("h100"), kScatter, bytes, node));
    CHECK_GT(CollectiveUs(Network("h100"), kReduce, bytes, node),
             CollectiveUs(Network("h100"), kScatter, bytes, node));
  }
}

TEST_CASE("T53: node counts that were not measured have finite times") {
  const AxisTopology odd{.ranks = 15, .nodes = 5, .ranks_per_node = 3};
  for (const CollectiveOp collective : {kGather, kScatter, kReduce, kExchange})
    CHECK(std::isfinite(CollectiveUs(Network("h100"), collective, 1e6, odd)));
}

/// A change of a bf16 tensor on H100 nodes.
double RedistributionUs(std::string_view mesh_text, std::string_view type, std::string_view from,
                        std::string_view to) {
  Module module;
  const Mesh mesh = OrDie(Mesh::Parse(mesh_text));
  const CostModel model = OrDie(CostModel::Make(H100(), mesh));
  const Type tensor = module.types()[module.types().Parse(type)];  // parsing adds types
  return model.RedistributionUs(module, tensor, OrDie(ParsePlacements(module, from, mesh)),
                                OrDie(ParsePlacements(module, to, mesh)));
}

TEST_CASE("T58: redistributions on one axis take the times of the reference model") {
  constexpr std::string_view kMesh = "fsdp=8,tp=8";
  constexpr double kStep = CostModel::kTransitionUs;
  const auto check = [&](std::string_view type, std::string_view from, std::string_view to,
                         double us) {
    INFO(fmt::format("{} to {}", from, to));
    CHECK_EQ(RedistributionUs(kMesh, type, from, to), doctest::Approx(us + kStep).epsilon(0.005));
  };
  constexpr std::string_view kMatrix = "bf16[4096, 4096][4096, 1]cpu",
                             kHidden = "bf16[16, 8192, 4096][33554432, 4096, 1]cpu";
  check(kMatrix, "S(0)R", "RR", 717.592);
  check(kMatrix, "RS(0)", "RR", 115.164);
  check(kMatrix, "RS(1)", "RR", 141.191);
  check(kMatrix, "P(sum)R", "S(0)R", 717.592);
  check(kMatrix, "S(0)S(1)", "S(0)R", 47.645);
  check(kMatrix, "P(sum)S(0)", "_S(0, 8)S(0)", 156.556);
  check(kMatrix, "_S(0, 8)S(0)", "RS(0)", 156.556);
  check(kHidden, "S(0)S(1)", "S(0)S(2)", 120.178);
  check(kHidden, "S(0)S(1)", "S(0)R", 474.765);
  check(kHidden, "S(0)P(sum)", "S(0)S(1)", 474.765);
  check(kHidden, "S(0)P(sum)", "S(0)R", 533.688);
  check(kHidden, "S(0)S(1)", "S(2)S(1)", 395.529);
}

TEST_CASE("T61: parts of another dimension than the slowest in memory are copied once") {
  constexpr std::string_view kRows = "bf16[4096, 4096][4096, 1]cpu",
                             kColumns = "bf16[4096, 4096][1, 4096]cpu";
  const auto gather = [&](std::string_view type, std::string_view from) {
    return RedistributionUs("tp=8", type, from, "R");
  };
  CHECK_EQ(gather(kColumns, "S(1)"), doctest::Approx(gather(kRows, "S(0)")));
  CHECK_EQ(gather(kColumns, "S(0)"), doctest::Approx(gather(kRows, "S(1)")));
  const Topology h100 = H100();
  const double copy = 2 * 4096.0 * 4096 * 2 / h100.device.bytes_per_us / h100.device.efficiency;
  CHECK_EQ(gather(kColumns, "S(0)") - gather(kColumns, "S(1)"), doctest::Approx(copy));
}

TEST_CASE("T59: cutting is free, and making summands costs a copy") {
  CHECK_EQ(RedistributionUs("fsdp=8,tp=8", "f32[64, 64][64, 1]cpu", "RR", "S(0)S(1)"),
           CostModel::kTransitionUs);
  CHECK_EQ(RedistributionUs("tp=8", "f32[64, 64][64, 1]cpu", "R", "R"), 0);
  CHECK_EQ(RedistributionUs("tp=8", "f32[64, 64][64, 1]cpu", "R", "P(sum)"),
           7 + CostModel::kTransitionUs);
  // One kind of partial value becomes another by way of the whole one.
  CHECK_GT(RedistributionUs("tp=8", "f32[64, 64][64, 1]cpu", "P(sum)", "P(avg)"),
           RedistributionUs("tp=8", "f32[64, 64][64, 1]cpu", "P(sum)", "R"));
}

/// The time of the first call of a body with everything whole on each rank.
double ComputeUs(std::string_view body, const std::string& topology = "h100") {
  auto module = testing::ParseBody(body);
  Graph& graph = *module->FindGraph("g");
  const Mesh mesh = OrDie(Mesh::Parse("tp=2"));
  const CostModel model = OrDie(CostModel::Make(OrDie(Topology::Load(topology)), mesh));
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const ShardingRule rule = OrDie(ShardingRuleOf(graph, node));
    std::vector<int64_t> sizes;
    for (const Factor& factor : rule.factors)
      sizes.push_back(module->dims().AsConst(factor.size).value_or(-1));
    return model.ComputeUs(graph, node, rule, sizes,
                           std::vector<Placements>(rule.operands.size(), Placements(1)),
                           std::vector<Placements>(rule.results.size(), Placements(1)));
  }
  return -1;
}

double ProductUs(int64_t m, int64_t k, int64_t n) {
  return ComputeUs(fmt::format(R"(
  a = placeholder : bf16[{0}, {1}][{1}, 1]cpu
  b = placeholder : bf16[{1}, {2}][{2}, 1]cpu
  c = aten.mm.default(a, b) : bf16[{0}, {2}][{2}, 1]cpu
  output([c])
)",
                               m, k, n));
}

TEST_CASE("T40: products and copies take the times of the reference model") {
  CHECK_EQ(ProductUs(16384, 4096, 4096), doctest::Approx(794.10).epsilon(1e-4));
  CHECK_EQ(ProductUs(2048, 4096, 4096), doctest::Approx(99.26).epsilon(1e-4));
  CHECK_EQ(ProductUs(16384, 4096, 512), doctest::Approx(99.26).epsilon(1e-4));
  CHECK_EQ(ComputeUs(R"(
  a = placeholder : bf16[16384, 4096][4096, 1]cpu
  b = aten.relu.default(a) : bf16[16384, 4096][4096, 1]cpu
  output([b])
)"),
           doctest::Approx(104.11).epsilon(1e-4));
}

TEST_CASE("T41: views are free") {
  CHECK_EQ(ComputeUs(R"(
  a = placeholder : bf16[16384, 4096][4096, 1]cpu
  b = aten.t.default(a) : bf16[4096, 16384][1, 4096]cpu ~a
  output([b])
)"),
           0);
}

TEST_CASE("T42: a kernel takes at least the time of its launch") {
  CHECK_EQ(ComputeUs(R"(
  a = placeholder : bf16[2, 2][2, 1]cpu
  b = aten.relu.default(a) : bf16[2, 2][2, 1]cpu
  output([b])
)"),
           7.0);
}

TEST_CASE("functions of elements and attention take the time of rates of their own") {
  Topology topology = OrDie(Topology::Load("cpu"));
  topology.device.functions_per_us = {{"softmax", 100}, {"silu", 400}};
  topology.device.attention_flops_per_us[DType::kF32] = 1000;
  topology.device.attention_backward_flops_per_us[DType::kF32] = 2000;
  const DeviceSpec& device = topology.device;
  CHECK_EQ(FunctionUs(device, "_softmax", 800), 8.0);
  CHECK_EQ(FunctionUs(device, "silu_backward", 800), 2.0);
  CHECK_EQ(FunctionUs(device, "tanh", 800), 0.0);  // no rate
  CHECK_EQ(FunctionUs(device, "mul", 800), 0.0);
  CHECK_EQ(FlopsRate(device, "_scaled_dot_product_flash_attention_for_cpu", DType::kF32), 1000);
  CHECK_EQ(FlopsRate(device, "_scaled_dot_product_flash_attention_for_cpu_backward", DType::kF32),
           2000);
  CHECK_EQ(FlopsRate(device, "mm", DType::kF32), device.flops_per_us.at(DType::kF32));
  CHECK_EQ(FlopsRate(device, "_scaled_dot_product_flash_attention_for_cpu", DType::kF64),
           device.flops_per_us.at(DType::kF64));

  const auto unknown = Topology::Parse(
      "[device]\nmemory_tib_per_s = 1\nfunctions_g_per_s = { sinh = 1 }\n[network]\n"
      "intra_gb_per_s = 1\n",
      "t.toml", "t");
  REQUIRE(!unknown);
  CHECK(unknown.error().message().starts_with(
      "t.toml:3:30: expected a number above 0 of one of exp, log, sigmoid, silu, softmax, sqrt, "
      "tanh\n"));
}

TEST_CASE("T43: an unknown topology is an error that names those that are known") {
  const auto loaded = Topology::Load("h1000");
  REQUIRE(!loaded);
  CHECK_EQ(loaded.error().message(),
           "no topology 'h1000': name one of a100, b200, cpu, h100, h200, or a TOML file, did you "
           "mean 'h100'");
  const auto parsed = Topology::Parse("[device]\nspeed = 1\n[network]\n", "t.toml", "t");
  REQUIRE(!parsed);
  CHECK(parsed.error().message().find("[device] has memory_gib, memory_tib_per_s") !=
        std::string::npos);
}

}  // namespace
}  // namespace strata
