// What static plans must not mistake: who writes to what, whose tensor is whose, how results lie.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/exec/executor.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using testing::OrDie;

Executor BindStatic(std::string_view body, const PlanOptions& options) {
  return OrDie(
      Executor::Bind(OrDie(Lower(*testing::ParseBody(body)->FindGraph("g"), options)), {}));
}

PlanOptions Folding(bool folds) {
  PlanOptions options = PlanOptions::Fastest();
  options.fold_views = folds;
  return options;
}

TEST_CASE("what is written in place is made in each run, read after it or not") {
  Executor executor = BindStatic(R"(
  x = placeholder : f32[3][1]cpu
  one = aten.full.default([3], 1.0, dtype=torch.float32, device=device('cpu')) : f32[3][1]cpu
  two = aten.mul.Scalar(one, 2.0) : f32[3][1]cpu
  sum = aten.add.Tensor(x, two) : f32[3][1]cpu
  mul_ = aten.mul_.Scalar(two, 0.5) : f32[3][1]cpu ~two
  output([sum])
)",
                                 {.hoist_constants = true});
  for (int run = 0; run < 3; ++run)
    CHECK(at::equal(OrDie(executor.Run(Tensors{at::zeros({3})}))[0], at::full({3}, 2.0)));
}

TEST_CASE("an output that an operator wrote in place is the caller's after the run") {
  for (const PlanOptions& options :
       {PlanOptions{.static_memory = true}, Folding(true), Folding(false)}) {
    Executor executor = BindStatic(R"(
  x = placeholder : f32[4][1]cpu
  (values, indices) = aten.sort.default(x) as sorted : (f32[4][1]cpu, i64[4][1]cpu)
  same = aten.view.default(x, [4]) : f32[4][1]cpu ~x
  add_ = aten.add_.Tensor(values, same) : f32[4][1]cpu ~values
  output([add_])
)",
                                   options);
    const auto run = [&](const Tensor& x) { return OrDie(executor.Run(Tensors{x}))[0]; };
    const Tensor x = at::tensor({4.0F, 3.0F, 2.0F, 1.0F}), first = run(x);
    const Tensor y = at::tensor({0.0F, 9.0F, 0.0F, 9.0F}), second = run(y);
    CHECK(at::equal(first, at::full({4}, 5.0)));
    CHECK(at::equal(second, at::tensor({0.0F, 9.0F, 9.0F, 18.0F})));
  }
}

constexpr std::string_view kTwoProducts = R"(
  x = placeholder : f32[32, 32][32, 1]cpu
  a = aten.mm.default(x, x) : f32[32, 32][32, 1]cpu
  b = aten.relu.default(a) : f32[32, 32][32, 1]cpu
  c = aten.mm.default(b, a) : f32[32, 32][32, 1]cpu
  (values, indices) = aten.sort.default(c) as sorted : (f32[32, 32][32, 1]cpu, i64[32, 32][32, 1]cpu)
  row = aten.select.int(values, 0, 3) : f32[32][1]cpu ~values
  output([b, row, x])
)";

TEST_CASE("separate outputs stay while other runs and other plans use the block") {
  PlanOptions options = PlanOptions::Fastest();
  options.separate_outputs = true;
  Executor plain = BindStatic(kTwoProducts, {}), first = BindStatic(kTwoProducts, options),
           second = BindStatic(kTwoProducts, options);
  CHECK_FALSE(first.lends_outputs());
  const ScratchMemory block = first.scratch();
  // c and indices, which are there at once; b and values are separate.
  CHECK_EQ(block.bytes, 32 * 32 * (4 + 8));
  second.Borrow(block);
  CHECK_EQ(second.planned_memory().held, 0);
  const Tensor x = at::randn({32, 32}), y = at::randn({32, 32});
  const Tensors of_x = OrDie(first.Run(Tensors{x})), of_y = OrDie(second.Run(Tensors{y}));
  OrDie(first.Run(Tensors{at::randn({32, 32})}));
  for (const auto& [input, outputs] : {std::pair(x, of_x), {y, of_y}}) {
    const Tensors expected = OrDie(plain.Run(Tensors{input}));
    REQUIRE_EQ(outputs.size(), 3);
    for (size_t i = 0; i < 3; ++i)
      CHECK(at::equal(outputs[i], expected[i]));
  }
  CHECK_EQ(first.scratch().address, block.address);
  CHECK_EQ(of_x[0].storage().use_count(), 1);
}

constexpr std::string_view kUpdate = R"(
  small = placeholder : f32[4][1]cpu {+input='gradient'}
  gradient = placeholder : f32[8, 8][8, 1]cpu {+input='gradient'}
  moment = placeholder : f32[8, 8][8, 1]cpu {+input='state'}
  added = aten.add_.Tensor(moment, gradient) : f32[8, 8][8, 1]cpu ~moment
  root = aten.sqrt.default(added) : f32[8, 8][8, 1]cpu
  other = aten.mm.default(root, added) : f32[8, 8][8, 1]cpu
  sum = aten.add_.Tensor(small, 1) : f32[4][1]cpu ~small
  output([other])
)";

TEST_CASE("a result lies in the memory of a donated gradient after its last reader") {
  const Tensor moment = at::rand({8, 8}), gradient = at::rand({8, 8});
  const Tensor all = at::zeros({80});  // the gradient is a part of larger memory
  for (const bool donates : {false, true}) {
    PlanOptions options = PlanOptions::Fastest();
    options.donate_gradients = donates;
    Executor executor = BindStatic(kUpdate, options);
    constexpr int64_t kBytes = 8 * 8 * 4;
    CHECK_EQ(executor.planned_memory().held,
             donates ? kBytes : 2 * kBytes);  // `other` is handed out
    for (const int64_t begin : {0, 7}) {
      const Tensor inner = all.zero_().slice(0, begin, begin + 64).view({8, 8});
      inner.copy_(gradient);
      const Tensor state = moment.clone(), root = (moment + gradient).sqrt();
      const Tensors outputs = OrDie(executor.Run(Tensors{at::zeros({4}), inner, state}));
      CHECK(at::equal(outputs[0], root.mm(moment + gradient)));
      CHECK(at::equal(inner, donates ? root : gradient));
      CHECK_EQ(all.ne(0).sum().item<int64_t>(), 64);
    }
  }
}

TEST_CASE("GR-13: a plan holds neither inputs nor separate outputs after a run") {
  for (const bool separate : {false, true}) {
    PlanOptions options = PlanOptions::Fastest();
    options.separate_outputs = separate;
    Executor executor = BindStatic(kTwoProducts, options);
    const Tensor x = at::randn({32, 32});
    OrDie(executor.Run(Tensors{x}));
    CHECK_EQ(x.use_count(), 1);
    CHECK_EQ(x.storage().use_count(), 1);
  }
}

TEST_CASE("an operator that returns its operand, which no alias says, gives an output of its own") {
  constexpr std::string_view kReturnsOperand = R"(
  x = placeholder : f32[64][1]cpu
  a = aten.sin.default(x) : f32[64][1]cpu
  same = aten.dropout.default(a, 0.5, False) : f32[64][1]cpu
  b = aten.cos.default(x) : f32[64][1]cpu
  c = aten.exp.default(b) : f32[64][1]cpu
  output([same, c])
)";
  PlanOptions options = PlanOptions::Fastest();
  options.separate_outputs = true;
  Executor executor = BindStatic(kReturnsOperand, options);
  const Tensor x = at::arange(64.0F);
  const Tensors outputs = OrDie(executor.Run(Tensors{x}));
  OrDie(executor.Run(Tensors{at::zeros({64})}));
  CHECK(at::equal(outputs[0], at::sin(x)));
  CHECK(at::equal(outputs[1], at::exp(at::cos(x))));
}

TEST_CASE("views whose text states no aliases outlive what they view") {
  constexpr std::string_view kText = R"(graph g foreign
  x = placeholder : f32[4, 6][6, 1]cpu
  a = aten.sin.default(x) : f32[4, 6][6, 1]cpu
  flat = aten.view.default(a, [24]) : f32[24][1]cpu
  b = aten.cos.default(x) : f32[4, 6][6, 1]cpu
  turned = aten.t.default(b) : f32[6, 4][1, 6]cpu
  copied = aten.reshape.default(turned, [24]) : f32[24][1]cpu
  rows = aten.select.int(b, 0, 1) : f32[6][1]cpu
  c = aten.tanh.default(x) : f32[4, 6][6, 1]cpu
  d = aten.exp.default(c) : f32[4, 6][6, 1]cpu
  e = aten.mm.default(turned, d) : f32[6, 6][6, 1]cpu
  added = aten.add_.Tensor(rows, 1) : f32[6][1]cpu
  both = aten.add.Tensor(flat, copied) : f32[24][1]cpu
  output([flat, e, both, b, added])
)";
  const auto module = testing::ParseOrDie(kText);
  const auto run = [&](const PlanOptions& options) {
    Executor executor = OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"), options)), {}));
    OrDie(executor.Run(Tensors{at::zeros({4, 6})}));
    return OrDie(executor.Run(Tensors{at::arange(24.0F).view({4, 6})}));
  };
  const Tensors expected = run({});
  for (const PlanOptions& options :
       {PlanOptions{.fold_views = true}, PlanOptions{.static_memory = true}, Folding(true)}) {
    const Tensors outputs = run(options);
    REQUIRE_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      CHECK_MESSAGE(at::equal(outputs[i], expected[i]), i);
  }
}

TEST_CASE("what an operator lays out otherwise than was traced is laid out as traced") {
  PlanOptions adopts = PlanOptions::Fastest();
  adopts.arena_results = adopts.dynamic_arena = false;
  for (const PlanOptions& options :
       {PlanOptions{.fold_views = true}, PlanOptions{.static_memory = true}, adopts,
        PlanOptions::Fastest()}) {
    Executor executor = BindStatic(R"(
  x = placeholder : f32[2, 3][1, 2]cpu
  (values, indices) = aten.sort.default(x) as sorted : (f32[2, 3][3, 1]cpu, i64[2, 3][3, 1]cpu)
  row = aten.view.default(values, [6]) : f32[6][1]cpu ~values
  output([row])
)",
                                   options);
    const Tensor x = at::rand({3, 2}).t();
    CHECK(at::equal(OrDie(executor.Run(Tensors{x}))[0],
                    std::get<0>(x.contiguous().sort()).view({6})));
  }
}

struct Size {
  int64_t rows, inner, columns;
};

TEST_CASE("the statistics of a norm of mixed types are f32, whatever the graph states") {
  for (const PlanOptions& options :
       {PlanOptions(), PlanOptions{.static_memory = true}, PlanOptions::Fastest()}) {
    Executor executor = BindStatic(R"(
  x = placeholder : bf16[3, 8][8, 1]cpu
  w = placeholder : f32[8][1]cpu
  (y, mean, rstd) = aten.native_layer_norm.default(x, [8], w, w, 1e-05) as norm : (bf16[3, 8][8, 1]cpu, bf16[3, 1][1, 1]cpu, bf16[3, 1][1, 1]cpu)
  (gx, gw, gb) = aten.native_layer_norm_backward.default(y, x, [8], mean, rstd, w, w, [True, True, True]) as back : (bf16[3, 8][8, 1]cpu, f32[8][1]cpu, f32[8][1]cpu)
  output([y, mean, rstd, gx, gw])
)",
                                   options);
    const Tensor x = at::randn({3, 8}).to(at::kBFloat16), w = at::rand({8});
    const Tensors out = OrDie(executor.Run(Tensors{x, w}));
    const auto [y, mean, rstd] = at::native_layer_norm(x, {8}, w, w, 1e-5);
    const auto [gx, gw, gb] =
        at::native_layer_norm_backward(y, x, {8}, mean, rstd, w, w, {true, true, true});
    CHECK(at::equal(out[0], y));
    CHECK(at::equal(out[1], mean));
    CHECK(at::equal(out[2], rstd));
    CHECK(at::equal(out[3], gx));
    CHECK(at::equal(out[4], gw));
  }
}

TEST_CASE("a result of another type than the graph states is converted, not read as that type") {
  for (const PlanOptions& options : {PlanOptions{.static_memory = true}, PlanOptions::Fastest()}) {
    Executor executor = BindStatic(R"(
  w = placeholder : f32[4, 1][1, 1]cpu
  i = placeholder : i64[4][1]cpu
  y = aten.embedding.default(w, i) : bf16[4, 1][1, 1]cpu
  z = aten.mul.Tensor(y, y) : bf16[4, 1][1, 1]cpu
  output([z])
)",
                                   options);
    const Tensor w = at::arange(4, at::kFloat).view({4, 1});
    const Tensors out = OrDie(executor.Run(Tensors{w, at::arange(4)}));
    CHECK(at::equal(out[0].to(at::kFloat), w * w));
  }
}

TEST_CASE("losses that reduce have ATen's bits") {
  const Tensor x = at::rand({3, 4}), y = at::rand({3, 4});
  for (const std::string_view loss :
       {"binary_cross_entropy", "huber_loss", "mse_loss", "smooth_l1_loss", "soft_margin_loss"}) {
    const bool is_weighted = loss == "binary_cross_entropy";
    for (const int64_t reduction : {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum}) {
      CAPTURE(loss);
      CAPTURE(reduction);
      const std::string_view type =
          reduction == at::Reduction::None ? "f32[3, 4][4, 1]cpu" : "f32[][]cpu";
      const std::string body =
          fmt::format(R"(
  x = placeholder : f32[3, 4][4, 1]cpu
  y = placeholder : f32[3, 4][4, 1]cpu
  z = aten.{}.default(x, y, {}{}) : {}
  w = aten.neg.default(z) : {}
  output([w])
)",
                      loss, is_weighted ? "None, " : "", reduction, type, type);
      Executor executor = BindStatic(body, PlanOptions::Fastest());
      const Tensor expected = loss == "binary_cross_entropy"
                                  ? at::binary_cross_entropy(x, y, {}, reduction)
                              : loss == "huber_loss"     ? at::huber_loss(x, y, reduction)
                              : loss == "mse_loss"       ? at::mse_loss(x, y, reduction)
                              : loss == "smooth_l1_loss" ? at::smooth_l1_loss(x, y, reduction)
                                                         : at::soft_margin_loss(x, y, reduction);
      CHECK(at::equal(OrDie(executor.Run(Tensors{x, y}))[0], -expected));
    }
  }
}

TEST_CASE("products have ATen's bits, however their operands lie") {
  for (const Size size : {Size{32, 64, 128}, Size{7, 300, 5}, Size{2, 3, 2}, Size{1, 8, 4},
                          Size{4, 1, 4}, Size{4, 8, 1}}) {
    for (const bool left_lies_across : {false, true}) {
      for (const bool right_lies_across : {false, true}) {
        CAPTURE(size.rows);
        CAPTURE(size.inner);
        CAPTURE(size.columns);
        CAPTURE(left_lies_across);
        CAPTURE(right_lies_across);
        const auto type = [](int64_t rows, int64_t columns, bool across) {
          return across ? fmt::format("f32[{}, {}][1, {}]cpu", rows, columns, rows)
                        : fmt::format("f32[{}, {}][{}, 1]cpu", rows, columns, columns);
        };
        Executor executor =
            BindStatic(fmt::format(R"(
  a = placeholder : {}
  b = placeholder : {}
  c = aten.mm.default(a, b) : {}
  output([c])
)",
                                   type(size.rows, size.inner, left_lies_across),
                                   type(size.inner, size.columns, right_lies_across),
                                   type(size.rows, size.columns, false)),
                       PlanOptions::Fastest());
        const auto matrix = [](int64_t rows, int64_t columns, bool across) {
          return across ? at::randn({columns, rows}).t() : at::randn({rows, columns});
        };
        for (int run = 0; run < 2; ++run) {  // the second has other addresses
          const Tensor a = matrix(size.rows, size.inner, left_lies_across);
          const Tensor b = matrix(size.inner, size.columns, right_lies_across);
          CHECK(at::equal(OrDie(executor.Run(Tensors{a, b}))[0], at::mm(a, b)));
        }
      }
    }
  }
}

TEST_CASE("products of parts of matrices have ATen's bits") {
  Executor executor = BindStatic(R"(
  a = placeholder : f32[24, 40][40, 1]cpu
  b = placeholder : f32[40, 16][1, 40]cpu
  left = aten.slice.Tensor(a, 1, 3, 19) : f32[24, 16][40, 1]cpu ~a
  right = aten.slice.Tensor(b, 0, 8, 24) : f32[16, 16][1, 40]cpu ~b
  spread = aten.slice.Tensor(a, 1, 0, 32, 2) : f32[24, 16][40, 2]cpu ~a
  c = aten.mm.default(left, right) : f32[24, 16][16, 1]cpu
  d = aten.mm.default(spread, right) : f32[24, 16][16, 1]cpu
  output([c, d])
)",
                                 PlanOptions::Fastest());
  for (int run = 0; run < 2; ++run) {
    const Tensor a = at::randn({24, 40}), b = at::randn({16, 40}).t();
    const Tensor right = b.slice(0, 8, 24);
    const Tensors results = OrDie(executor.Run(Tensors{a, b}));
    CHECK(at::equal(results[0], at::mm(a.slice(1, 3, 19), right)));
    CHECK(at::equal(results[1], at::mm(a.slice(1, 0, 32, 2), right)));
  }
}

TEST_CASE("elementwise operators have ATen's bits, of numbers, rows and complex numbers") {
  Executor executor = BindStatic(R"(
  x = placeholder : f32[5, 24][24, 1]cpu
  row = placeholder : f32[24][1]cpu
  number = placeholder : f32[][]cpu
  angles = placeholder : c64[1, 12][12, 1]cpu
  pairs = aten.view.default(x, [5, 12, 2]) : f32[5, 12, 2][24, 2, 1]cpu ~x
  points = aten.view_as_complex.default(pairs) : c64[5, 12][12, 1]cpu ~x
  turned = aten.mul.Tensor(points, angles) : c64[5, 12][12, 1]cpu
  by_row = aten.mul.Tensor(x, row) : f32[5, 24][24, 1]cpu
  by_number = aten.mul.Tensor(by_row, number) : f32[5, 24][24, 1]cpu
  silu = aten.silu.default(by_number) : f32[5, 24][24, 1]cpu
  slope = aten.silu_backward.default(by_row, x) : f32[5, 24][24, 1]cpu
  output([turned, by_number, silu, slope])
)",
                                 PlanOptions::Fastest());
  for (int run = 0; run < 2; ++run) {  // the second has other addresses
    const Tensor x = at::randn({5, 24}), row = at::randn({24}), number = at::randn({});
    const Tensor angles = at::view_as_complex(at::randn({1, 12, 2}));
    const Tensors results = OrDie(executor.Run(Tensors{x, row, number, angles}));
    CHECK(at::equal(results[0], at::view_as_complex(x.view({5, 12, 2})) * angles));
    CHECK(at::equal(results[1], x * row * number));
    CHECK(at::equal(results[2], at::silu(x * row * number)));
    CHECK(at::equal(results[3], at::silu_backward(x * row, x)));
  }
}

TEST_CASE("roots and norms have ATen's bits") {
  constexpr int64_t kSize = 5000;  // ATen takes roots of 2048 at a time in several threads
  Executor executor = BindStatic(R"(
  x = placeholder : f32[5000][1]cpu
  root = aten.sqrt.default(x) : f32[5000][1]cpu
  norm = aten.linalg_vector_norm.default(x, 2.0) : f32[][]cpu
  sum = aten.linalg_vector_norm.default(x, 1.0) : f32[][]cpu
  output([root, norm, sum])
)",
                                 PlanOptions::Fastest());
  for (int run = 0; run < 2; ++run) {
    const Tensor x = at::rand({kSize}) * 1e-3;
    const Tensors results = OrDie(executor.Run(Tensors{x}));
    CHECK(at::equal(results[0], at::sqrt(x)));
    CHECK(at::equal(results[1], at::linalg_vector_norm(x, 2.0)));
    CHECK(at::equal(results[2], at::linalg_vector_norm(x, 1.0)));
  }
}

TEST_CASE("a reshape whose strides are not those of the graph is an error, not a copy") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[2, 3][3, 1]cpu
  a = aten.mul.Scalar(x, 2) : f32[2, 3][3, 1]cpu
  t = aten.t.default(a) : f32[3, 2][2, 1]cpu ~a
  r = aten.reshape.default(t, [6]) : f32[6][1]cpu ~a
  y = aten.neg.default(r) : f32[6][1]cpu
  output(y)
)";
  const auto module = testing::ParseBody(kBody);
  const auto bound = Executor::Bind(
      testing::OrDie(Lower(*module->FindGraph("g"), PlanOptions{.fold_views = true})), {});
  CHECK(testing::MessageOf(bound).find("view size is not compatible") != std::string::npos);
}

}  // namespace
}  // namespace strata
