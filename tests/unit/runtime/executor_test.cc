#include "runtime/exec/executor.h"

#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/library.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/compile/fast_products.h"
#include "passes/compile/fuse.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

Result<Executor> Bind(std::string_view body, const Constants& constants = {}) {
  return Executor::Bind(OrDie(Lower(*ParseBody(body)->FindGraph("g"))), constants);
}

Tensors RunBody(std::string_view body, const Tensors& inputs) {
  return OrDie(OrDie(Bind(body)).Run(inputs));
}

TEST_CASE("literals of every kind reach the operator, defaults are filled in") {
  const Tensor x = at::rand({2, 3});
  const Tensors out = RunBody(R"(
  x = placeholder : f32[2, 3]
  a = aten.add.Tensor(x, x, alpha=2)
  b = aten.sum.dim_IntList(a, [0], True, dtype=torch.float64)
  c = aten.clamp.default(b, None, 1.5)
  d = aten.zeros.default([2], dtype=torch.int64, device=device('cpu'))
  e = aten.ones_like.default(x, memory_format=raw('torch.contiguous_format'))
  f = aten.linalg_vector_norm.default(x, 2, [1])
  g = aten.div.Tensor_mode(x, x, rounding_mode='floor')
  output([c, d, e, f, g])
)",
                              {x});
  CHECK(at::equal(out[0], at::clamp(at::add(x, x, 2).sum({0}, true, at::kDouble), {}, 1.5)));
  CHECK(at::equal(out[1], at::zeros({2}, at::kLong)));
  CHECK(at::equal(out[2], at::ones({2, 3})));
  CHECK(at::equal(out[3], at::linalg_vector_norm(x, 2, at::IntArrayRef{1})));
  CHECK(at::equal(out[4], at::div(x, x, "floor")));
}

TEST_CASE("a number in place of a tensor promotes as a number") {
  const Tensor x = at::ones({2}, at::kInt);
  const Tensors out = RunBody(R"(
  x = placeholder : i32[2]
  a = aten.mul.Tensor(x, 2)
  b = aten.mul.Tensor(x, 2.5)
  c = aten.mul.Tensor(x, raw('(1-2j)'))
  d = aten.full.default([2], raw('2j'), dtype=torch.complex64)
  output([a, b, c, d])
)",
                              {x});
  CHECK(at::equal(out[0], at::full({2}, 2, at::kInt)));
  CHECK(at::equal(out[1], at::full({2}, 2.5, at::kFloat)));
  CHECK(at::equal(out[2], at::full({2}, c10::complex<double>(1, -2), at::kComplexFloat)));
  CHECK(at::equal(out[3], at::full({2}, c10::complex<double>(0, 2), at::kComplexFloat)));
}

TEST_CASE("lists in and out, optional lists, tuples, None") {
  const Tensor x = at::rand({4, 2});
  const Tensor index = at::tensor({1, 0}, at::kLong);
  const Tensors out = RunBody(R"(
  x = placeholder : f32[4, 2]
  i = placeholder : i64[2]
  (first, _, last) = aten.split_with_sizes.default(x, [1, 2, 1]) as split
  both = aten.cat.default([first, last])
  picked = aten.index.Tensor(x, [None, i])
  (values, indices) = aten.max.dim(x, 1) as max_1
  output([both, picked, values, indices, None])
)",
                              {x, index});
  REQUIRE_EQ(out.size(), 5);
  CHECK(at::equal(out[0], at::cat({x.narrow(0, 0, 1), x.narrow(0, 3, 1)})));
  CHECK(at::equal(out[1], x.index_select(1, index)));
  CHECK(at::equal(out[2], std::get<0>(x.max(1))));
  CHECK(at::equal(out[3], std::get<1>(x.max(1))));
  CHECK_FALSE(out[4].defined());
}

TEST_CASE("a value twice in one call is there both times") {
  const Tensor x = at::rand({3});
  const Tensors out = RunBody(R"(
  x = placeholder : f32[3]
  a = aten.neg.default(x)
  b = aten.mul.Tensor(a, a)
  c = aten.exp.default(x)
  d = aten.stack.default([c, c])
  output([b, d])
)",
                              {x});
  CHECK(at::equal(out[0], x * x));
  CHECK(at::equal(out[1], at::stack({x.exp(), x.exp()})));
}

TEST_CASE("in-place operators write to the input, and views see it") {
  const Tensor x = at::zeros({4});
  const Tensors out = RunBody(R"(
  x = placeholder : f32[4]
  v = aten.view.default(x, [2, 2])
  add_ = aten.add_.Tensor(x, 1)
  s = aten.sum.default(v)
  output([s])
)",
                              {x});
  CHECK(at::equal(x, at::ones({4})));
  CHECK_EQ(out[0].item<float>(), 4.0F);
}

TEST_CASE("constants serve every run") {
  const Constants constants = {{"table", at::tensor({0.0F, 1.0F, 2.0F})}};
  Executor executor = OrDie(Bind(R"(
  x = placeholder : f32[3]
  t = attr table
  a = aten.add.Tensor(x, t)
  output([a])
)",
                                 constants));
  for (int run = 0; run < 2; ++run) {
    CHECK(at::equal(OrDie(executor.Run(Tensors{at::ones({3})}))[0], constants[0].second + 1));
  }
}

/// Counts at each step how many results of the run live.
class LiveResults final : public ExecutionObserver {
 public:
  void OnStep(const PlanStep& /*step*/, std::span<const Tensor> results) override {
    for (const Tensor& result : results)
      seen_.emplace_back(result.getIntrusivePtr());
    counts.push_back(0);
    for (const auto& tensor : seen_)
      counts.back() += tensor.expired() ? 0 : 1;
  }
  std::vector<int> counts;

 private:
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> seen_;
};

TEST_CASE("a value's memory goes at its last use, and the executor keeps nothing") {
  Executor executor = OrDie(Bind(R"(
  x = placeholder : f32[8]
  a = aten.neg.default(x)
  b = aten.neg.default(a)
  c = aten.cat.default([b, b])
  d = aten.neg.default(c)
  output([d])
)"));
  LiveResults live;
  const Tensor x = at::rand({8});
  const Tensors out = OrDie(executor.Run(Tensors{x}, &live));
  // A direct operand is gone when its last result is there; a list goes right after.
  CHECK_EQ(live.counts, std::vector<int>{1, 1, 2, 1});
  CHECK_EQ(out[0].use_count(), 1);
  CHECK_EQ(x.use_count(), 1);
}

TEST_CASE("own products, norms and joins read inputs where they lie in this run") {
  const Plan plan = OrDie(Lower(*ParseBody(R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  y = placeholder : f32[8, 4][4, 1]cpu
  k = attr k : f32[8, 4][4, 1]cpu
  a = aten.mm.default(x, y) : f32[4, 4][4, 1]cpu
  b = aten.mm.default(x, k) : f32[4, 4][4, 1]cpu
  n = aten.linalg_vector_norm.default(x, 2.0) : f32[][]cpu
  m = aten.linalg_vector_norm.default(y, 2.0) : f32[][]cpu
  s = aten.stack.default([n, m]) : f32[2][1]cpu
  output([a, b, s])
)")
                                     ->FindGraph("g"),
                                PlanOptions::Fastest()));
  const Tensor k = at::rand({8, 4});
  Executor executor = OrDie(Executor::Bind(plan, {{"k", k}}));
  const auto check = [&](const Tensor& x, const Tensor& y) {
    const Tensors out = OrDie(executor.Run(std::vector<Tensor>{x, y}));
    CHECK(at::equal(out[0], at::mm(x, y)));
    CHECK(at::equal(out[1], at::mm(x, k)));
    CHECK(at::equal(out[2],
                    at::stack({at::linalg_vector_norm(x, 2.0), at::linalg_vector_norm(y, 2.0)})));
  };
  const Tensor x = at::rand({4, 8}), y = at::rand({8, 4}), many = at::rand({3, 4, 8});
  check(x, y);
  check(many[1], y);
  check(many[2], at::rand({8, 4}));
  // The same storage, other memory.
  Tensor other = at::rand({4, 8});
  std::swap(x.storage().unsafeGetStorageImpl()->mutable_data_ptr(),
            other.storage().unsafeGetStorageImpl()->mutable_data_ptr());
  check(x, y);
}

TEST_CASE(
    "a static plan refers to inputs only while it runs; outputs that are views of them own them") {
  for (const bool folds : {true, false}) {
    CAPTURE(folds);
    PlanOptions options = PlanOptions::Fastest();
    options.fold_views = folds;
    const Plan plan = OrDie(Lower(*ParseBody(R"(
  x = placeholder : f32[4, 8][8, 1]cpu
  y = placeholder : f32[8][1]cpu
  t = aten.t.default(x) : f32[8, 4][1, 8]cpu ~x
  n = aten.neg.default(y) : f32[8][1]cpu
  output([t, n, y])
)")
                                       ->FindGraph("g"),
                                  options));
    Executor executor = OrDie(Executor::Bind(plan, {}));
    Tensor x = at::rand({4, 8}), y = at::rand({8});
    const Tensor expected_t = x.t().clone(), expected_y = y.clone();
    const Tensors out = OrDie(executor.Run(std::vector<Tensor>{x, y}));
    CHECK_EQ(x.storage().use_count(), 2);
    CHECK_EQ(y.storage().use_count(), 2);
    x.reset();
    y.reset();
    CHECK(at::equal(out[0], expected_t));
    CHECK(at::equal(out[2], expected_y));
    const Tensor x2 = at::rand({4, 8}), y2 = at::rand({8});
    const Tensors out2 = OrDie(executor.Run(std::vector<Tensor>{x2, y2}));
    CHECK(at::equal(out[0], expected_t));
    CHECK(at::equal(out[1], -expected_y));
    CHECK(at::equal(out2[0], x2.t()));
    CHECK(at::equal(out2[1], -y2));
    CHECK(out2[2].is_alias_of(y2));
  }
}

TEST_CASE("results need no gradient even if inputs do") {
  const Tensors out = RunBody(R"(
  x = placeholder : f32[2]
  a = aten.neg.default(x)
  output([a])
)",
                              {at::rand({2}).requires_grad_(true)});
  CHECK_FALSE(out[0].requires_grad());
}

TEST_CASE("T106: inputs of another shape, dtype or layout are refused") {
  Executor executor = OrDie(Bind(R"(
  x = placeholder : f32[2, 3][3, 1]cpu
  a = aten.neg.default(x)
  output([a])
)"));
  const auto message = [&](const Tensor& x) { return MessageOf(executor.Run(Tensors{x})); };
  CHECK_EQ(message(at::zeros({3, 2})),
           "input x of graph g is f32[3, 2][2, 1]cpu, not f32[2, 3][3, 1]cpu");
  CHECK_EQ(message(at::zeros({2, 3}, at::kLong)),
           "input x of graph g is i64[2, 3][3, 1]cpu, not f32[2, 3][3, 1]cpu");
  CHECK_EQ(message(at::zeros({3, 2}).t()),
           "input x of graph g is f32[2, 3][1, 2]cpu, not f32[2, 3][3, 1]cpu");
  CHECK_EQ(MessageOf(executor.Run(Tensors{})), "graph g has 1 inputs, not 0");
}

TEST_CASE("what an operator throws is told with node, types, place, reason; the next run works") {
  Executor executor = OrDie(Bind(R"(
  x = placeholder : f32[2, 3][3, 1]cpu
  i = placeholder : i64[1][1]cpu
  a = aten.neg.default(x) : f32[2, 3][3, 1]cpu
  b = aten.index_select.default(a, 0, i) {forward module=layers.0 loc=('model.cc', 7, None, None)}
  output([b])
)"));
  CHECK_EQ(MessageOf(executor.Run(Tensors{at::zeros({2, 3}), at::full({1}, 5, at::kLong)})),
           "graph g failed: layers.0 (model.cc:7): b = aten.index_select.default(a: "
           "f32[2, 3][3, 1]cpu, 0, i: i64[1][1]cpu): index out of range in self");
  CHECK_OK(executor.Run(Tensors{at::zeros({2, 3}), at::full({1}, 1, at::kLong)}));
}

TEST_CASE("an operator of GPUs alone is told in a sentence") {
  Executor executor = OrDie(Bind(R"(
  x = placeholder : i32[8, 8][8, 1]cpu
  a = aten._convert_weight_to_int4pack.default(x, 2)
  output([a])
)"));
  CHECK_EQ(MessageOf(executor.Run(Tensors{at::zeros({8, 8}, at::kInt)})),
           "graph g failed: a: a = aten._convert_weight_to_int4pack.default(x: i32[8, 8][8, "
           "1]cpu, 2): Could not run 'aten::_convert_weight_to_int4pack' with arguments from the "
           "'CPU' backend");
}

TEST_CASE("an operator of a library that returns nothing writes to its operand") {
  static const torch::Library library = [] {
    torch::Library own(torch::Library::DEF, "strata_test", std::nullopt, __FILE__, __LINE__);
    own.def("add_into(Tensor x, Tensor(a!) sum) -> ()");
    own.impl("add_into", c10::DispatchKey::CPU,
             [](const Tensor& x, const Tensor& sum) { sum.add_(x); });
    return own;
  }();
  const auto module = ParseBody(R"(
  x = placeholder : f32[3][1]cpu
  sum = aten.full.default([3], 1.0, dtype=torch.float32, device=device('cpu')) : f32[3][1]cpu
  first = aten.mul.Tensor(x, sum) : f32[3][1]cpu
  nothing = strata_test.add_into.default(x, sum)
  second = aten.mul.Tensor(x, sum) : f32[3][1]cpu
  output([first, second])
)");
  const Tensor x = at::tensor({1.0F, 2.0F, 3.0F});
  for (const PlanOptions& options :
       {PlanOptions{}, PlanOptions{.static_memory = true},
        PlanOptions{.fold_views = true, .static_memory = true, .hoist_constants = true}}) {
    Executor executor = OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"), options)), {}));
    for (int run = 0; run < 3; ++run) {
      const Tensors out = OrDie(executor.Run(Tensors{x}));
      CHECK(at::equal(out[0], x));
      CHECK(at::equal(out[1], x * (x + 1)));
    }
  }
}

TEST_CASE("plans that do not fit this LibTorch are refused when they are bound") {
  CHECK_EQ(MessageOf(Bind(R"(
  x = placeholder : f32[2]
  a = mylib.fancy.default(x)
  output([a])
)")),
           "graph g cannot be executed: a: no operator mylib.fancy.default: load its library "
           "with --operators FILE");
  CHECK_EQ(MessageOf(Bind(R"(
  x = placeholder : f32[2]
  a = torch.nn.functional.relu(x)
  output([a])
)")),
           "graph g cannot be executed: a: torch.nn.functional.relu is a function of Python: name "
           "a graph that AOTAutograd made, such as aot_joint_graph");
  CHECK_EQ(MessageOf(Bind(R"(
  x = placeholder : f32[2]
  a = torch.sym_float(2)
  output([a])
)")),
           "graph g cannot be executed: a: numbers that are made of sizes do not run yet: "
           "torch.sym_float");
  CHECK_EQ(MessageOf(Lower(*ParseBody(R"(
  x = placeholder : f32[2, 2]
  a = _operator.getitem(x, (call('slice', None, None, None), 0))
  output([a])
)")
                                ->FindGraph("g"))),
           "graph g cannot be executed: a: it takes a slice or another object of Python: name a "
           "graph that AOTAutograd made, such as aot_joint_graph");
  CHECK_EQ(MessageOf(Bind(R"(
  x = placeholder : f32[2]
  a = aten.add.Tensor(x)
  output([a])
)")),
           "graph g cannot be executed: a: a = aten.add.Tensor(x: f32[2]): other: needs a value");
  CHECK_EQ(MessageOf(Bind(R"(
  x = placeholder : f32[2]
  t = attr table
  output([t])
)")),
           "graph g cannot be executed: no constant table");
}

/// Executes the fused graph of `body`, all of it as kernels, on `inputs`.
Tensors RunFused(const std::string& body, const Tensors& inputs) {
  const auto module = ParseBody(body);
  OrDie(Fuse(Fuse::Options{.min_nodes = 1}).Run(*module));
  const Plan plan = OrDie(Lower(*module->FindGraph("g"), PlanOptions::Fastest()));
  int64_t not_fused = 0;
  for (const PlanStep& step : plan.steps)
    not_fused += step.kernel.valid() ? 0 : 1;
  CHECK_EQ(not_fused, 0);
  return OrDie(OrDie(Executor::Bind(plan, {})).Run(inputs));
}

TEST_CASE("sums of kernels have the bits of ATen's, whatever the length of a row") {
  at::manual_seed(11);
  std::vector<int64_t> lengths = {96, 100, 128, 255, 511, 512, 1000, 2048, 5000, 8192};
  for (int64_t n = 2; n <= 70; ++n)
    lengths.push_back(n);
  std::string body, outputs;
  Tensors inputs, expected;
  for (const int64_t n : lengths) {
    body += fmt::format(R"(
  x{0} = placeholder : f32[6, {0}][{0}, 1]cpu
  p{0} = aten.mul.Tensor(x{0}, x{0}) : f32[6, {0}][{0}, 1]cpu
  m{0} = aten.mean.dim(p{0}, [-1], True) : f32[6, 1][1, 1]cpu
  s{0} = aten.sum.dim_IntList(x{0}, [1], True) : f32[6, 1][1, 1]cpu
  a{0} = aten.add.Tensor(m{0}, s{0}) : f32[6, 1][1, 1]cpu
  y{0} = aten.mul.Tensor(x{0}, a{0}) : f32[6, {0}][{0}, 1]cpu
)",
                        n);
    outputs += fmt::format("{}y{}, m{}", outputs.empty() ? "" : ", ", n, n);
    const Tensor x = at::randn({6, n}), m = (x * x).mean(at::IntArrayRef{-1}, true);
    inputs.push_back(x);
    expected.push_back(x * (m + x.sum(at::IntArrayRef{1}, true)));
    expected.push_back(m);
  }
  const Tensors actual = RunFused(body + fmt::format("  output([{}])\n", outputs), inputs);
  REQUIRE_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    INFO("length ", lengths[i / 2], ", output ", i % 2);
    CHECK(at::equal(actual[i], expected[i]));
  }
}

TEST_CASE("formulas of kernels have the bits of ATen's, whatever the number of elements") {
  at::manual_seed(12);
  struct Formula {
    std::string_view text;
    std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)> op;
  };
  const Formula formulas[] = {
      {"abs.default(x)", [](auto& x, auto&, auto&) { return x.abs(); }},
      {"add.Tensor(x, y)", [](auto& x, auto& y, auto&) { return x + y; }},
      {"add.Tensor(x, y, alpha=0.3)", [](auto& x, auto& y, auto&) { return at::add(x, y, 0.3); }},
      {"add.Scalar(x, 1e-08)", [](auto& x, auto&, auto&) { return x + 1e-8; }},
      {"addcdiv.default(x, y, z)", [](auto& x, auto& y, auto& z) { return at::addcdiv(x, y, z); }},
      {"addcdiv.default(x, y, z, value=-0.7)",
       [](auto& x, auto& y, auto& z) { return at::addcdiv(x, y, z, -0.7); }},
      {"addcmul.default(x, y, z)", [](auto& x, auto& y, auto& z) { return at::addcmul(x, y, z); }},
      {"addcmul.default(x, y, z, value=0.001)",
       [](auto& x, auto& y, auto& z) { return at::addcmul(x, y, z, 0.001); }},
      {"div.Scalar(x, 3)", [](auto& x, auto&, auto&) { return x / 3; }},
      {"div.Tensor(x, y)", [](auto& x, auto& y, auto&) { return x / y; }},
      {"lerp.Scalar(x, y, 0.1)", [](auto& x, auto& y, auto&) { return at::lerp(x, y, 0.1); }},
      {"lerp.Scalar(x, y, 0.9)", [](auto& x, auto& y, auto&) { return at::lerp(x, y, 0.9); }},
      // One half, once it is a float.
      {"lerp.Scalar(x, y, 0.49999999999)",
       [](auto& x, auto& y, auto&) { return at::lerp(x, y, 0.49999999999); }},
      {"mul.Tensor(x, y)", [](auto& x, auto& y, auto&) { return x * y; }},
      {"neg.default(x)", [](auto& x, auto&, auto&) { return x.neg(); }},
      {"pow.Tensor_Scalar(x, 2)", [](auto& x, auto&, auto&) { return x.pow(2); }},
      {"pow.Tensor_Scalar(x, 3)", [](auto& x, auto&, auto&) { return x.pow(3); }},
      {"pow.Tensor_Scalar(x, -1)", [](auto& x, auto&, auto&) { return x.pow(-1); }},
      {"reciprocal.default(x)", [](auto& x, auto&, auto&) { return x.reciprocal(); }},
      {"relu.default(x)", [](auto& x, auto&, auto&) { return x.relu(); }},
      {"rsqrt.default(x)", [](auto& x, auto&, auto&) { return x.rsqrt(); }},
      {"sub.Tensor(x, y, alpha=0.3)", [](auto& x, auto& y, auto&) { return at::sub(x, y, 0.3); }},
  };
  for (const int64_t n : {1, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 40'000}) {
    const auto draw = [&] {
      // All magnitudes, denormal numbers, zeros and infinities.
      const Tensor numbers = at::ldexp(at::randn({n}), at::randint(-150, 128, {n}));
      return n < 4 ? numbers
                   : numbers.index_put_(
                         {at::arange(4)},
                         at::tensor({0.0F, -0.0F, INFINITY, 1e-45F}).index({at::randperm(4)}));
    };
    const Tensors inputs = {draw(), draw(), draw()};
    std::string body, outputs;
    for (const char name : {'x', 'y', 'z'})
      body += fmt::format("  {} = placeholder : f32[{}][1]cpu\n", name, n);
    for (const Formula& formula : formulas) {
      const auto index = &formula - formulas;
      body += fmt::format("  r{} = aten.{} : f32[{}][1]cpu\n", index, formula.text, n);
      outputs += fmt::format("{}r{}", index == 0 ? "" : ", ", index);
    }
    const Tensors actual = RunFused(body + fmt::format("  output([{}])\n", outputs), inputs);
    for (const Formula& formula : formulas) {
      INFO(formula.text, ", ", n, " elements");
      const Tensor expected = formula.op(inputs[0], inputs[1], inputs[2]);
      const Tensor& result = actual[static_cast<size_t>(&formula - formulas)];
      const Tensor same_bits = result.view(at::kInt) == expected.view(at::kInt);
      // Which NaN is not fixed.
      CHECK(at::logical_or(same_bits, result.isnan().logical_and(expected.isnan()))
                .all()
                .item<bool>());
    }
  }
}

TEST_CASE(
    "products of the fastest library are ATen's within rounding, in all plans the same bits") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[192, 128][128, 1]cpu
  w = placeholder : f32[160, 128][128, 1]cpu
  q = placeholder : f32[3, 128, 130][16640, 130, 1]cpu
  t = aten.t.default(w) : f32[128, 160][1, 128]cpu ~w
  y = aten.mm.default(x, t) : f32[192, 160][160, 1]cpu
  s = aten.t.default(y) : f32[160, 192][1, 160]cpu ~y
  g = aten.mm.default(s, x) : f32[160, 128][128, 1]cpu
  k = aten.transpose.int(q, 1, 2) : f32[3, 130, 128][16640, 1, 130]cpu ~q
  p = aten.bmm.default(q, k) : f32[3, 128, 128][16384, 128, 1]cpu
  e = placeholder : f32[4, 128, 160][20480, 160, 1]cpu
  ends = placeholder : i32[4][1]cpu
  h = aten._grouped_mm.default(x, e, ends) : f32[192, 160][160, 1]cpu
  r = aten._grouped_mm.default(s, x, ends) : f32[4, 160, 128][20480, 128, 1]cpu
  output([y, g, p, h, r])
)");
  Graph& graph = *module->FindGraph("g");
  const Tensors inputs{at::randn({192, 128}), at::randn({160, 128}), at::randn({3, 128, 130}),
                       at::randn({4, 128, 160}), at::tensor({50, 50, 120, 192}, at::kInt)};
  const Tensors expected = OrDie(OrDie(Executor::Bind(OrDie(Lower(graph)), {})).Run(inputs));
  REQUIRE(MarkFastProducts(graph));
  const Tensors boxed = OrDie(OrDie(Executor::Bind(OrDie(Lower(graph)), {})).Run(inputs));
  Executor planned = OrDie(Executor::Bind(OrDie(Lower(graph, PlanOptions::Fastest())), {}));
  const Tensors fastest = OrDie(planned.Run(inputs));
  REQUIRE_EQ(fastest.size(), 5);
  for (size_t i = 0; i < fastest.size(); ++i) {
    INFO("output ", i);
    CHECK(at::allclose(boxed[i], expected[i], 1e-5, 1e-3));
    CHECK(at::equal(boxed[i], fastest[i]));
    CHECK_EQ(boxed[i].strides(), expected[i].strides());
  }
}

TEST_CASE("elements that nodes of their own take of a tuple, in any order, are its results") {
  const Tensor x = at::rand({6, 4});
  const Tensors out = RunBody(R"(
  x = placeholder : f32[6, 4]
  v = aten.var_mean.correction(x, [0], correction=0, keepdim=True)
  mean = _operator.getitem(v, 1) : f32[1, 4]
  b = aten.sub.Tensor(x, mean) : f32[6, 4]
  variance = _operator.getitem(v, 0) : f32[1, 4]
  again = _operator.getitem(v, 1) : f32[1, 4]
  output([b, variance, again])
)",
                              {x});
  const auto [variance, mean] = at::var_mean(x, at::IntArrayRef{0}, 0, true);
  CHECK(at::equal(out[0], x - mean));
  CHECK(at::equal(out[1], variance));
  CHECK(at::equal(out[2], mean));
}

TEST_CASE(
    "numbers that a graph reads from data are operands, and assertions about them are left out") {
  const Tensor x = at::rand({3}), n = at::scalar_tensor(2.5, at::kDouble);
  const Tensors out = RunBody(R"(
  x = placeholder : f32[3]
  n = placeholder : f64[]
  number = aten._local_scalar_dense.default(n)
  a = aten.mul.Tensor(x, number) : f32[3]
  i = aten.nonzero.default(x) : i64[u0, 1]
  rows = aten.sym_size.int(i, 0) : Sym(u0)
  ge = _operator.ge(rows, 0)
  check = aten._assert_scalar.default(ge, 'u0 >= 0')
  output([a, i])
)",
                              {x, n});
  CHECK(at::equal(out[0], x * 2.5));
  CHECK_EQ(out[0].dtype().name(), at::scalarTypeToTypeMeta(at::kFloat).name());
  CHECK(at::equal(out[1], at::nonzero(x)));
}

}  // namespace
}  // namespace strata
