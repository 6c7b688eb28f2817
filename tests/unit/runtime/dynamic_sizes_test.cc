// Sizes of inputs that a trace has as symbols: their ranges, what they decide, and replays at other
// sizes.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "runtime/exec/dynamic_executor.h"
#include "runtime/trace/sampled_trace.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using testing::MessageOf;
using testing::OrDie;
using Tensors = std::vector<Tensor>;
using Program = std::function<Tensors(std::span<const Tensor>)>;
/// The shapes of the inputs; negative: the size of that number, counted from -1.
using Shapes = std::vector<std::vector<int64_t>>;

class TracedProgram {
 public:
  TracedProgram(const std::vector<TracedSize>& sizes, const Shapes& shapes, const Program& program,
                std::vector<at::ScalarType> types = {}) {
    types.resize(shapes.size(), at::kFloat);
    traced_ = TraceSampled(
        module_, sizes,
        [&](std::span<const int64_t> at) {
          TraceRequest request{.graph = "g", .inputs = {}, .program = program};
          for (size_t i = 0; i < shapes.size(); ++i) {
            std::vector<int64_t> shape = shapes[i];
            for (int64_t& size : shape)
              size = size < 0 ? at[static_cast<size_t>(-1 - size)] : size;
            request.inputs.push_back(
                {.name = std::string(1, static_cast<char>('x' + i)),
                 .module = {},
                 .example = at::empty(shape, at::TensorOptions(at::kMeta).dtype(types[i]))});
          }
          return request;
        },
        constants_);
  }

  const Status& traced() const { return traced_; }
  const Graph& graph() const { return *module_.FindGraph("g"); }
  const Symbol& SymbolNamed(std::string_view name) const {
    const Symbol* symbol = module_.dims().FindSymbol(module_.strings().Find(name));
    REQUIRE(symbol != nullptr);
    return *symbol;
  }
  DynamicExecutor Bind() const {
    REQUIRE_OK(traced_);
    REQUIRE_OK(Verify(module_));
    return OrDie(DynamicExecutor::Create(graph(), [this](const SymbolSizes& sizes) {
      return Executor::Bind(OrDie(Lower(graph(), {}, sizes)), constants_);
    }));
  }

 private:
  Module module_;
  Constants constants_;
  Status traced_;
};

const TracedSize kTracedRows = {
    .name = "rows", .symbol = "s0", .value = 4, .samples = {17, 19, 23, 29}};

TracedSize RowsFrom(int64_t min, int64_t max, std::vector<int64_t> samples = {17, 19, 23, 29}) {
  TracedSize size = kTracedRows;
  size.min = min;
  size.max = max;
  size.samples = std::move(samples);
  return size;
}

Tensors Doubled(std::span<const Tensor> in) {
  return {in[0] * 2};
}

TEST_CASE("DS-01: an input says what it is, and nothing of how it was traced") {
  const auto attributes = [](const Graph& graph) {
    std::string text;
    for (const NodeId input : graph.placeholders())
      for (const auto& [name, value] : graph.attributes(input))
        text += fmt::format("{}={} ", graph.module().str(name), graph.module().str(value));
    return text;
  };
  const TracedProgram traced({RowsFrom(2, 8)}, {{-1, 3}, {3}}, Doubled);
  CHECK_EQ(attributes(traced.graph()), "fqn=x input=batch fqn=y input=batch ");
}

TEST_CASE("DS-04: inputs are plain tensors") {
  const auto trace = [](const Tensor& example) {
    Module module;
    Constants constants;
    return MessageOf(
        Trace(module,
              {.graph = "g",
               .inputs = {{.name = "x", .module = {}, .example = example}},
               .program = [](std::span<const Tensor> in) -> Tensors { return {in[0]}; }},
              constants));
  };
  const auto meta = at::TensorOptions(at::kMeta);
  CHECK_EQ(trace(at::empty({2, 3}, meta.layout(at::kSparse))),
           "cannot trace: input x is no plain tensor: Sparse: pass the tensors that it is made of");
  const Tensor rows[] = {at::ones({2}), at::ones({3})};
  CHECK_EQ(trace(at::_nested_tensor_from_tensor_list(rows)),
           "cannot trace: input x is no plain tensor: nested: pass the tensors that it is made of");
  CHECK_EQ(trace(at::empty({2, 3}, meta)), "");
}

TEST_CASE("DS-02, DS-03: the range of a size is that of its symbol, and runs are held to it") {
  const TracedProgram both({RowsFrom(2, 8)}, {{-1, 3}}, Doubled);
  CHECK_EQ(both.SymbolNamed("s0").min, 2);
  CHECK_EQ(both.SymbolNamed("s0").max, 8);
  DynamicExecutor executor = both.Bind();
  for (const int64_t rows : {2, 5, 8}) {
    const Tensor x = at::randn({rows, 3});
    CHECK(at::equal(OrDie(executor.Run(Tensors{x}))[0], x * 2));
  }
  for (const int64_t rows : {1, 9}) {
    const std::string message = MessageOf(executor.Run(Tensors{at::randn({rows, 3})}));
    CHECK_MESSAGE(message.find("from 2 to 8") != std::string::npos, message);
  }

  const TracedProgram least({RowsFrom(2, INT64_MAX)}, {{-1, 3}}, Doubled);
  CHECK_EQ(least.SymbolNamed("s0").min, 2);
  CHECK_EQ(least.SymbolNamed("s0").max, INT64_MAX);
  const TracedProgram most({RowsFrom(1, 8)}, {{-1, 3}}, Doubled);
  CHECK_EQ(most.SymbolNamed("s0").min, 1);
  CHECK_EQ(most.SymbolNamed("s0").max, 8);
}

TEST_CASE("DS-05: a number of tokens that changes reads other rows of a rope table") {
  for (const bool has_positions : {false, true}) {
    CAPTURE(has_positions);
    const auto rotate = [has_positions](std::span<const Tensor> in) -> Tensors {
      const Tensor rows =
          has_positions ? in[1].index_select(0, in[2]) : in[1].narrow(0, 0, in[0].size(0));
      const Tensor cos = rows.narrow(1, 0, 2), sin = rows.narrow(1, 2, 2);
      const Tensor a = in[0].narrow(1, 0, 2), b = in[0].narrow(1, 2, 2);
      return {at::cat({a * cos - b * sin, a * sin + b * cos}, 1)};
    };
    const TracedProgram traced({kTracedRows}, {{-1, 4}, {64, 4}, {-1}}, rotate,
                               {at::kFloat, at::kFloat, at::kLong});
    DynamicExecutor executor = traced.Bind();
    for (const int64_t rows : {4, 1, 9, 64}) {
      CAPTURE(rows);
      const Tensors inputs = {at::randn({rows, 4}), at::randn({64, 4}),
                              at::arange(rows).remainder(5)};
      CHECK(at::equal(OrDie(executor.Run(inputs))[0], rotate(inputs)[0]));
    }
  }
}

TEST_CASE("DS-06: inputs of fixed sizes go with inputs of changing ones") {
  const auto program = [](std::span<const Tensor> in) -> Tensors { return {in[0].mm(in[1])}; };
  const TracedProgram traced({kTracedRows}, {{-1, 3}, {3, 5}}, program);
  DynamicExecutor executor = traced.Bind();
  for (const int64_t rows : {4, 7}) {
    const Tensors inputs = {at::randn({rows, 3}), at::randn({3, 5})};
    CHECK(at::equal(OrDie(executor.Run(inputs))[0], program(inputs)[0]));
  }
  CHECK_NE(MessageOf(executor.Run(Tensors{at::randn({4, 3}), at::randn({3, 6})})), "");
}

TEST_CASE("DS-08: what holds in the whole range may be asked, and the size stays a symbol") {
  const auto program = [](std::span<const Tensor> in) -> Tensors {
    const bool is_within = in[0].size(0) >= 2 && in[0].size(0) <= 5;
    return {is_within ? in[0] * 2 : in[0] - 1};
  };
  const TracedProgram traced({RowsFrom(2, 5, {2, 3, 4, 5})}, {{-1, 7}}, program);
  DynamicExecutor executor = traced.Bind();
  CHECK(HasDynamicShapes(traced.graph()));
  for (const int64_t rows : {2, 5}) {
    const Tensor x = at::randn({rows, 7});
    CHECK(at::equal(OrDie(executor.Run(Tensors{x}))[0], x * 2));
  }
  CHECK_NE(MessageOf(executor.Run(Tensors{at::randn({6, 7})})), "");
}

TEST_CASE("DS-09: symbols of inputs are known before a run") {
  const TracedProgram traced({kTracedRows}, {{-1, 3}}, Doubled);
  CHECK(traced.SymbolNamed("s0").backed);
  CHECK_EQ(traced.SymbolNamed("s0").hint, 4);
  CHECK_EQ(HintsOf(traced.graph()), SymbolSizes{{"s0", 4}});
}

TEST_CASE("DS-10: inputs of one size are equal in every run") {
  const auto program = [](std::span<const Tensor> in) -> Tensors {
    if (in[0].size(0) == in[1].size(0)) return {in[0] + in[1]};
    return {in[0].sum() + in[1].sum()};
  };
  const TracedProgram traced({kTracedRows}, {{-1, 3}, {-1, 3}}, program);
  DynamicExecutor executor = traced.Bind();
  for (const int64_t rows : {4, 6}) {
    const Tensors inputs = {at::randn({rows, 3}), at::randn({rows, 3})};
    CHECK(at::equal(OrDie(executor.Run(inputs))[0], inputs[0] + inputs[1]));
  }
  CHECK_NE(MessageOf(executor.Run(Tensors{at::randn({4, 3}), at::randn({6, 3})})), "");
}

}  // namespace
}  // namespace strata
