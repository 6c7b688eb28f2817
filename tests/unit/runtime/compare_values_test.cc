#include "runtime/exec/compare_values.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>

#include <doctest/doctest.h>

#include "runtime/exec/executor.h"
#include "runtime/exec/profile.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using at::Tensor;
using testing::TempDir;

double Ulps(double before, double after, at::ScalarType type) {
  return Compare(at::full({1}, before, type), at::full({1}, after, type)).max_ulps;
}

TEST_CASE("units in the last place are steps between neighbouring numbers") {
  CHECK_EQ(Ulps(1.0, std::nextafterf(1.0F, 2.0F), at::kFloat), 1.0);
  CHECK_EQ(Ulps(1.0, std::nextafterf(std::nextafterf(1.0F, 0.0F), 0.0F), at::kFloat), 2.0);
  CHECK_EQ(Ulps(1.0, std::nextafter(1.0, 2.0), at::kDouble), 1.0);
  CHECK_EQ(Ulps(1.0, 1.0 + 0x1p-7, at::kBFloat16), 1.0);
  CHECK_EQ(Ulps(1.0, 1.0 + 0x1p-10, at::kHalf), 1.0);
  // Over zero: the two smallest numbers are two apart, and both zeros are one number.
  const double least = std::numeric_limits<float>::denorm_min();
  CHECK_EQ(Ulps(-least, least, at::kFloat), 2.0);
  CHECK_EQ(Ulps(-0.0, 0.0, at::kFloat), 0.0);
  CHECK_EQ(Ulps(-1.0, 1.0, at::kFloat), 2.0 * 0x3f800000);
  CHECK_EQ(Ulps(3, -4, at::kLong), 7.0);
  CHECK_EQ(Ulps(0, 1, at::kBool), 1.0);
  // Integers that one double stands for.
  const int64_t large = int64_t{1} << 60U;
  CHECK_EQ(Compare(at::tensor({large}), at::tensor({large + 1})).max_ulps, 1.0);
  CHECK_EQ(Compare(at::tensor({large}), at::tensor({large})).elements, 0);
}

TEST_CASE("a NaN equals a NaN and nothing else") {
  const double nan = std::nan("");
  CHECK_EQ(Ulps(nan, nan, at::kFloat), 0.0);
  CHECK(std::isinf(Ulps(nan, 1.0, at::kFloat)));
  CHECK_EQ(Ulps(INFINITY, INFINITY, at::kFloat), 0.0);
}

TEST_CASE("the worst element is told, wherever it lies in memory") {
  const Tensor before = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({2, 3});
  Tensor after = before.clone();
  after.select(0, 1).select(0, 0).fill_(std::nextafterf(4.0F, 9.0F));
  after.select(0, 0).select(0, 2).fill_(7.0F);
  const TensorDifference difference = Compare(before.t(), after.t());
  CHECK_EQ(difference.elements, 2);
  CHECK_EQ(difference.max_abs, 4.0);
  CHECK_EQ(difference.where, 4);
  CHECK_EQ(difference.before, 3.0);
  CHECK_EQ(difference.after, 7.0);
}

/// A region whose last step is not its first result.
constexpr std::string_view kRegion = R"(graph g
  x = placeholder : f32[4][1]cpu
  region_0 = attr region_0(graph(1))
  (a, b) = strata.fused.default(region_0, x, region=True) as both : (f32[4][1]cpu, f32[4][1]cpu)
  c = aten.mul.Tensor(a, b) : f32[4][1]cpu
  output([c])
graph region_0 body
  x = placeholder : f32[4][1]cpu
  n = aten.neg.default(x) : f32[4][1]cpu
  e = aten.exp.default(n) : f32[4][1]cpu
  f = aten.full_like.default(e, 7) : f32[4][1]cpu
  output([f, e])
)";

TEST_CASE("results of a region are compared, not what its body has at their places") {
  const auto module = testing::ParseOrDie(kRegion);
  const Graph& graph = *module->FindGraph("g");
  std::vector<ValuePair> pairs;
  for (const std::string_view name : {"a", "b", "c"})
    pairs.push_back({testing::ValueNamed(graph, name), testing::ValueNamed(graph, name)});
  const NamedTensors inputs = {{"x", at::full({4}, 2.0)}};
  const auto same = CompareValues(graph, graph, pairs, inputs, inputs);
  REQUIRE_OK(same);
  CHECK_EQ(same->nodes.compared, 3);
  CHECK_EQ(same->nodes.different(), 0);
}

TEST_CASE("a region is one call, whose values are those of its first result") {
  const auto module = testing::ParseOrDie(kRegion);
  const Graph& graph = *module->FindGraph("g");
  for (const PlanOptions& options : {PlanOptions(), PlanOptions::Fastest()}) {
    Executor executor = testing::OrDie(Executor::Bind(testing::OrDie(Lower(graph, options)), {}));
    NodeProfiler profiler;
    for (const bool with_values : {false, true}) {
      profiler.BeginRun(with_values);
      testing::OrDie(executor.Run(std::vector<Tensor>{at::full({4}, 2.0)}, &profiler));
      profiler.EndRun(executor.plan());
    }
    const NodeProfile region = profiler.nodes().at(testing::NodeNamed(graph, "both"));
    CHECK_EQ(region.calls, 2);
    CHECK_EQ(region.bytes, 32);
    CHECK_EQ(region.values.mean, 7.0);
  }
}

TEST_CASE("tensors of every kind come back from a file") {
  const TempDir dir;
  const Tensor complex = at::view_as_complex(at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).view({2, 2}));
  const std::vector<std::pair<std::string, Tensor>> tensors = {
      {"a.b", at::tensor({1.5F, -2.0F})},
      {"c", complex},
      {"conj", complex.conj()},
      {"i", at::tensor({int64_t{7}})},
      {"h", at::tensor({1.0F}).to(at::kBFloat16)},
      {"s", at::full({}, 2.0, at::kDouble)},
      {"none", Tensor()}};
  REQUIRE_OK(SaveTensors(dir / "t.safetensors", tensors));
  const Result<NamedTensors> loaded = LoadTensors(dir / "t.safetensors");
  REQUIRE_OK(loaded);
  CHECK_EQ(loaded->size(), 6);
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    REQUIRE(loaded->contains(name));
    CHECK((loaded->at(name).scalar_type() == tensor.scalar_type()));
    CHECK((loaded->at(name).sizes() == tensor.sizes()));
    CHECK_EQ(Compare(loaded->at(name), tensor).elements, 0);
  }
}

}  // namespace
}  // namespace strata
