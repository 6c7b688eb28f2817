#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "runtime/exec/executor.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using testing::OrDie;
using testing::ParseBody;

Tensors RunPrims(std::string_view body, const Tensors& inputs) {
  auto executor = Executor::Bind(OrDie(Lower(*ParseBody(body)->FindGraph("g"))), {});
  return OrDie(OrDie(std::move(executor)).Run(inputs));
}

TEST_CASE("operators of Inductor's decompositions compute what PyTorch's Python does") {
  const Tensor x = at::rand({2, 3}), y = at::rand({2, 3}), z = at::rand({2, 3});
  const Tensors out = RunPrims(R"(
  x = placeholder : f32[2, 3]
  y = placeholder : f32[2, 3]
  z = placeholder : f32[2, 3]
  a = prims.iota.default(4, start=3, step=2, dtype=torch.int64, device=device('cpu'), requires_grad=False) : i64[4]
  b = prims.convert_element_type.default(x, torch.float64) : f64[2, 3]
  c = prims.fma.default(x, y, z) : f32[2, 3]
  d = prims.rev.default(x, [1]) : f32[2, 3]
  e = prims.broadcast_in_dim.default(x, [5, 2, 3], [1, 2]) : f32[5, 2, 3]
  (f, g) = prims.prepare_softmax_online.default(x, 1) as s : (f32[2, 1], f32[2, 1])
  h = prims.inductor_force_stride_order.default(x, [1, 2])
  output([a, b, c, d, e, f, g, h])
)",
                               {x, y, z});
  CHECK(at::equal(out[0], at::arange(3, 11, 2)));
  CHECK(at::equal(out[1], x.to(at::kDouble)));
  CHECK(at::equal(out[2], x * y + z));
  CHECK(at::equal(out[3], x.flip({1})));
  CHECK(at::equal(out[4], x.expand({5, 2, 3})));
  CHECK(at::equal(out[5], x.amax({1}, true)));
  CHECK(at::equal(out[6], (x - x.amax({1}, true)).exp().sum({1}, true)));
  CHECK(at::equal(out[7], x));
  CHECK_EQ(out[7].strides(), at::IntArrayRef({1, 2}));
}

TEST_CASE("offsets of a pooling lead back to the indices of its maxima") {
  const Tensor x = at::rand({2, 3, 9, 8});
  const Tensors out = RunPrims(R"(
  x = placeholder : f32[2, 3, 9, 8]
  (v, o) = prims._low_memory_max_pool_with_offsets.default(x, [3, 2], [2, 2], [1, 0], [1, 2], False) as pooled
  b = prims._low_memory_max_pool_offsets_to_indices.default(o, [3, 2], [9, 8], [2, 2], [1, 0], [1, 2])
  output([v, o, b])
)",
                               {x});
  const auto [values, indices] =
      at::max_pool2d_with_indices(x, {3, 2}, {2, 2}, {1, 0}, {1, 2}, false);
  CHECK(at::equal(out[0], values));
  CHECK_EQ(c10::toString(out[1].scalar_type()), std::string_view("Char"));
  CHECK(at::equal(out[2], indices));
}

TEST_CASE("random numbers of Inductor's operators are drawn as by PyTorch") {
  at::manual_seed(7);
  const Tensors out = RunPrims(R"(
  a = prims.inductor_seeds.default(2, device('cpu')) : i64[2]
  b = prims.inductor_lookup_seed.default(a, 1) : i64[]
  c = prims.inductor_random.default([2, 3], b, 'rand') : f32[2, 3]
  d = prims.inductor_randint.default(2, 9, [5], b) : i64[5]
  output([a, b, c, d])
)",
                               {});
  at::manual_seed(7);
  const auto second = [](const auto& draw) {
    draw();
    return draw();
  };
  const Tensor seeds = second([] { return at::randint(INT64_MAX, {2}, at::kLong); });
  CHECK(at::equal(out[0], seeds));
  CHECK(at::equal(out[1], seeds[1]));
  CHECK(at::equal(out[2], second([] { return at::rand({2, 3}); })));
  CHECK(at::equal(out[3], second([] { return at::randint(2, 9, {5}, at::kLong); })));
}

}  // namespace
}  // namespace strata
