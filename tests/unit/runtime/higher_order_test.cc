#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/exec/executor.h"
#include "runtime/exec/predicted_memory.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

// Two bodies of `[3]` tensors: a + b and a * b.
constexpr std::string_view kBodies = R"(
graph sum body
  a = placeholder : f32[3]
  b = placeholder : f32[3]
  s = aten.add.Tensor(a, b) : f32[3]
  output((s,))
graph product body
  a = placeholder : f32[3]
  b = placeholder : f32[3]
  p = aten.mul.Tensor(a, b) : f32[3]
  output((p,))
)";

Result<Executor> BindText(std::string_view text, const PlanOptions& options) {
  const auto module = ParseBody(text);
  STRATA_TRY(Plan plan, Lower(*module->FindGraph("g"), options));
  return Executor::Bind(std::move(plan), {});
}

/// What a plain plan gives. A plan with assigned memory gives the same bits, in each of two runs.
Tensors Results(std::string_view text, const Tensors& inputs) {
  Executor plain = OrDie(BindText(text, {})),
           planned = OrDie(BindText(text, PlanOptions::Fastest()));
  const Tensors results = OrDie(plain.Run(inputs));
  for (int run = 0; run < 2; ++run) {
    const Tensors others = OrDie(planned.Run(inputs));
    REQUIRE_EQ(others.size(), results.size());
    for (size_t i = 0; i < results.size(); ++i)
      CHECK(at::equal(others[i], results[i]));
  }
  return results;
}

TEST_CASE("invoke_subgraph runs its body, at each call on other operands") {
  const Tensor x = at::rand({3}), y = at::rand({3});
  const std::string text = fmt::format(R"(
  x = placeholder : f32[3]
  y = placeholder : f32[3]
  body = attr sum(graph(1))
  (u,) = higher_order.invoke_subgraph(body, 'sum', x, y) as first : (f32[3],)
  (v,) = higher_order.invoke_subgraph(body, 'sum', u, y) as second : (f32[3],)
  w = aten.mul.Tensor(v, u) : f32[3]
  output([w]){})",
                                       kBodies);
  CHECK(at::equal(Results(text, {x, y})[0], (x + y + y) * (x + y)));
}

TEST_CASE("cond runs the body that its condition chooses") {
  const std::string text = fmt::format(R"(
  x = placeholder : f32[3]
  y = placeholder : f32[3]
  if = attr sum(graph(1))
  else = attr product(graph(2))
  total = aten.sum.default(x) : f32[]
  positive = aten.gt.Scalar(total, 0) : b8[]
  (z,) = higher_order.cond(positive, if, else, (x, y)) as cond : (f32[3],)
  w = aten.neg.default(z) : f32[3]
  output([w]){})",
                                       kBodies);
  const Tensor x = at::rand({3}), y = at::rand({3});
  CHECK(at::equal(Results(text, {x, y})[0], -(x + y)));
  CHECK(at::equal(Results(text, {-x, y})[0], -(-x * y)));
}

TEST_CASE("a result that is an operand stays when the operand's memory is reused") {
  constexpr std::string_view kText = R"(
  x = placeholder : f32[3]
  same = attr same(graph(1))
  a = aten.neg.default(x) : f32[3]
  (z,) = higher_order.invoke_subgraph(same, 'same', a) as call : (f32[3],)
  b = aten.mul.Tensor(x, 2) : f32[3]
  c = aten.exp.default(b) : f32[3]
  d = aten.add.Tensor(c, z) : f32[3]
  output([d, z])
graph same body
  a = placeholder : f32[3]
  output((a,))
)";
  const Tensor x = at::rand({3});
  const Tensors results = Results(kText, {x});
  CHECK(at::equal(results[0], (x * 2).exp() - x));
  CHECK(at::equal(results[1], -x));
}

TEST_CASE("while_loop iterates until its condition is false, also not once") {
  const auto text = [](std::string_view op, std::string_view results) {
    return fmt::format(R"(
  i = placeholder : i64[]
  x = placeholder : f32[3]
  y = placeholder : f32[3]
  less = attr less(graph(1))
  step = attr step(graph(2))
  (n, z) = {}(less, step, (i, x), (y,)) as loop : {}
  output([n, z])
graph less body
  i = placeholder : i64[]
  x = placeholder : f32[3]
  y = placeholder : f32[3]
  l = aten.lt.Scalar(i, 3) : b8[]
  output(l)
graph step body
  i = placeholder : i64[]
  x = placeholder : f32[3]
  y = placeholder : f32[3]
  j = aten.add.Tensor(i, 1) : i64[]
  p = aten.mul.Tensor(x, y) : f32[3]
  output((j, p))
)",
                       op, results);
  };
  const Tensor x = at::rand({3}), y = at::rand({3});
  const std::string loop = text("higher_order.while_loop", "(i64[], f32[3])");
  const auto from = [](int64_t i) { return at::scalar_tensor(i, at::kLong); };
  const Tensors thrice = Results(loop, {from(0), x, y});
  CHECK_EQ(thrice[0].item<int64_t>(), 3);
  CHECK(at::equal(thrice[1], x * y * y * y));
  CHECK(at::equal(Results(loop, {from(3), x, y})[1], x));
  const std::string stacked = text("higher_order.while_loop_stack_output", "(i64[2], f32[2, 3])");
  CHECK(at::equal(Results(stacked, {from(1), x, y})[1], at::stack({x * y, x * y * y})));
}

TEST_CASE("scan carries and stacks, map_impl stacks") {
  const std::string bodies = R"(
graph scanned body
  c = placeholder : f32[3]
  x = placeholder : f32[3]
  y = placeholder : f32[3]
  s = aten.add.Tensor(c, x) : f32[3]
  p = aten.mul.Tensor(s, y) : f32[3]
  output([s, p]))" + std::string(kBodies);
  const Tensor c = at::rand({3}), x = at::rand({2, 3}), y = at::rand({3});
  const Tensors scanned = Results(R"(
  c = placeholder : f32[3]
  x = placeholder : f32[2, 3]
  y = placeholder : f32[3]
  body = attr scanned(graph(1))
  (s, p) = higher_order.scan(body, [c], [x], (y,)) as scan : (f32[3], f32[2, 3])
  output([s, p]))" + bodies,
                                  {c, x, y});
  CHECK(at::equal(scanned[0], c + x[0] + x[1]));
  CHECK(at::equal(scanned[1], at::stack({(c + x[0]) * y, (c + x[0] + x[1]) * y})));
  const Tensors mapped = Results(R"(
  x = placeholder : f32[2, 3]
  y = placeholder : f32[3]
  body = attr product(graph(3))
  (p,) = higher_order.map_impl(body, [x], [y]) as map : (f32[2, 3],)
  output([p]))" + bodies,
                                 {x, y});
  CHECK(at::equal(mapped[0], x * y));
}

// wrap_with_autocast around a product, and inside it one without autocast around another product.
std::string AutocastText(std::string_view device) {
  return fmt::format(R"(
  x = placeholder : f32[3, 3]
  y = placeholder : f32[3, 3]
  body = attr outer(graph(1))
  (u, v) = higher_order.wrap_with_autocast('{0}', torch.bfloat16, True, None, body, x, y) as call : (bf16[3, 3], f32[3, 3])
  w = aten.mm.default(x, y) : f32[3, 3]
  output([u, v, w])
graph outer body
  a = placeholder : f32[3, 3]
  b = placeholder : f32[3, 3]
  u = aten.mm.default(a, b) : bf16[3, 3]
  body = attr inner(graph(2))
  (v,) = higher_order.wrap_with_autocast('cpu', None, False, None, body, a, b) as call : (f32[3, 3],)
  output((u, v))
graph inner body
  a = placeholder : f32[3, 3]
  b = placeholder : f32[3, 3]
  v = aten.mm.default(a, b) : f32[3, 3]
  output((v,))
)",
                     device);
}

TEST_CASE("wrap_with_autocast casts operands in its body, and nowhere else") {
  const Tensor x = at::rand({3, 3}), y = at::rand({3, 3});
  const Tensors results = Results(AutocastText("cpu"), {x, y});
  CHECK(at::equal(results[0], at::mm(x.to(at::kBFloat16), y.to(at::kBFloat16))));
  CHECK(at::equal(results[1], at::mm(x, y)));
  CHECK(at::equal(results[2], at::mm(x, y)));
  CHECK_EQ(
      MessageOf(BindText(AutocastText("cuda"), {})),
      "graph g cannot be executed: call: u, v = higher_order.wrap_with_autocast('cuda', "
      "torch.bfloat16, True, None, outer, x: f32[3, 3], y: f32[3, 3]): casts as on 'cuda', and "
      "a plan runs on CPUs: name the graph after run_decompositions, which states the casts");
}

TEST_CASE("a constant that a body writes to is computed anew in each run") {
  constexpr std::string_view kText = R"(
  x = placeholder : f32[3]
  zeros = aten.full.default([3], 0, dtype=torch.float32, device=device('cpu')) : f32[3]
  body = attr adds(graph(1))
  (z,) = higher_order.invoke_subgraph(body, 'adds', zeros, x) as call : (f32[3],)
  w = aten.add.Tensor(zeros, z) : f32[3]
  output([w])
graph adds body
  a = placeholder : f32[3]
  b = placeholder : f32[3]
  s = aten.add_.Tensor(a, b) : f32[3]
  output((s,))
)";
  const Tensor x = at::rand({3});
  CHECK(at::equal(Results(kText, {x})[0], x + x));
}

TEST_CASE("memory of a plan with bodies is predicted without running it") {
  const auto module = ParseBody(fmt::format(R"(
  x = placeholder : f32[3]
  body = attr sum(graph(1))
  (z,) = higher_order.invoke_subgraph(body, 'sum', x, x) as call : (f32[3],)
  output([z]){})",
                                            kBodies));
  CHECK(PredictMemory(*module->FindGraph("g"), PlanOptions::Fastest(), {}).has_value());
}

TEST_CASE("a failure inside a body names the body and its node") {
  const std::string text = fmt::format(R"(
  x = placeholder : f32[4]
  body = attr sum(graph(1))
  (z,) = higher_order.invoke_subgraph(body, 'sum', x, x) as call : (f32[4],)
  output([z]){})",
                                       kBodies);
  Executor executor = OrDie(BindText(text, {}));
  CHECK_EQ(MessageOf(executor.Run(Tensors{at::rand({4})})),
           "graph g failed: call: z = higher_order.invoke_subgraph(sum, 'sum', x: f32[4], x: "
           "f32[4]): input a of graph sum is f32[4][1]cpu, not f32[3]");
}

TEST_CASE("other higher-order operators are refused with what to do") {
  const auto message = [](std::string_view call) {
    return MessageOf(
        BindText(fmt::format("  x = placeholder : f32[2]\n  a = {}\n  output([a])\n", call), {}));
  };
  CHECK_EQ(message("higher_order.scan(x)"),
           "graph g cannot be executed: a: a higher-order operator must name its bodies");
  CHECK_EQ(message("higher_order.auto_functionalized_v2(raw('torch.ops.my.op.default'), x=x)"),
           "graph g cannot be executed: a: higher_order.auto_functionalized_v2 does not run: name "
           "the graph after Inductor's post-grad passes, which calls its operator");
  CHECK_EQ(message("higher_order.triton_kernel_wrapper_functional(x)"),
           "graph g cannot be executed: a: higher_order.triton_kernel_wrapper_functional does not "
           "run: a graph does not hold the code of Triton kernels");
  CHECK_EQ(
      message("higher_order.strict_mode(x)"),
      "graph g cannot be executed: a: higher_order.strict_mode does not run: name a graph that "
      "AOTAutograd made, such as aot_joint_graph, if it has another form there");
}

}  // namespace
}  // namespace strata
