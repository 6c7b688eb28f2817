// Plans of graphs with data-dependent sizes: their memory and their kernels.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "ir/fused_op.h"
#include "ir/text/native_text.h"
#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/codegen/cpp_source.h"
#include "runtime/exec/dynamic_executor.h"
#include "runtime/exec/step/memory_meter.h"
#include "runtime/trace/sampled_trace.h"
#include "runtime/trace/scope.h"
#include "runtime/train/trainer.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using at::Tensor;
using testing::OrDie;
using Tensors = std::vector<Tensor>;

constexpr int64_t kRows = 24;

/// x `[24, 8]`, whose rows are parts of `counts` rows: of each part, element by element and by row.
Tensors Parts(const Tensor& x, const Tensor& counts) {
  const ModuleScope scope("parts");
  const Tensor other = x * 2;
  const std::vector<int64_t> sizes = ReadSizes(counts, x.size(0));
  const Tensors a = x.split_with_sizes(sizes), b = other.split_with_sizes(sizes);
  Tensors all, sums;
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor y = at::silu(a[i] + b[i]) * b[i];
    all.push_back(y * 3 - a[i]);
    sums.push_back((y * a[i]).sum(1, /*keepdim=*/true));
  }
  return {at::cat(all), at::cat(sums)};
}

struct TracedParts {
  Module module;
  Constants constants;

  explicit TracedParts(std::string_view passes) {
    const std::vector<TracedSize> sizes = {
        {.name = "rows", .symbol = "", .value = kRows, .samples = {197, 211, 223, 227, 229}}};
    REQUIRE_OK(TraceSampled(
        module, sizes,
        [](std::span<const int64_t> at) {
          const at::TensorOptions meta(at::kMeta);
          return TraceRequest{
              .graph = "parts",
              .inputs = {{.name = "x", .module = {}, .example = at::empty({at[0], 8}, meta)},
                         {.name = "counts",
                          .module = {},
                          .example = at::empty({3}, meta.dtype(at::kLong))}},
              .program = [](std::span<const Tensor> in) { return Parts(in[0], in[1]); }};
        },
        constants));
    PassManager manager;
    for (auto& pass : OrDie(ParsePipeline(passes, AllPasses())))
      manager.Add(std::move(pass));
    OrDie(manager.Run(module));
  }
  const Graph& graph() const { return *module.FindGraph("parts"); }
  DynamicExecutor Bind(const PlanOptions& options) const {
    return OrDie(DynamicExecutor::Create(graph(), [&, options](const SymbolSizes& sizes) {
      return Executor::Bind(OrDie(Lower(graph(), options, sizes)), constants);
    }));
  }
};

size_t CountFused(const Graph& graph) {
  return static_cast<size_t>(std::ranges::count_if(
      graph.nodes(), [&](NodeId node) { return graph.op(node) == kFusedOp; }));
}

const std::vector<std::vector<int64_t>> kCounts = {{8, 8, 8},  {1, 22, 1}, {0, 23, 1},
                                                   {24, 0, 0}, {5, 0, 19}, {7, 8, 9}};

TEST_CASE("kernels take sizes that are read from data, also 0 and 1; one serves all parts") {
  at::set_num_threads(1);
  const TracedParts plain(""), exact("fuse"), fast("fuse{numerics=fast}");
  CHECK_EQ(CountFused(exact.graph()), 3);
  CHECK_EQ(CountFused(fast.graph()), 3);
  const Plan plan = OrDie(Lower(fast.graph(), PlanOptions::Fastest()));
  CHECK_EQ(plan.kernels.size(), 1);
  DynamicExecutor expected = plain.Bind({}), bitwise = exact.Bind(PlanOptions::Fastest()),
                  rounded = fast.Bind(PlanOptions::Fastest()), inlined = fast.Bind({});
  for (const std::vector<int64_t>& counts : kCounts) {
    INFO(counts[0], " ", counts[1], " ", counts[2]);
    const Tensors inputs = {at::randn({kRows, 8}), at::tensor(counts, at::kLong)};
    const Tensors wanted = OrDie(expected.Run(inputs));
    const Tensors same[] = {OrDie(bitwise.Run(inputs)), OrDie(inlined.Run(inputs))};
    const Tensors close = OrDie(rounded.Run(inputs));
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (const Tensors& bits : same) {
        REQUIRE(bits[i].sizes() == wanted[i].sizes());
        CHECK_EQ(
            std::memcmp(bits[i].const_data_ptr(), wanted[i].const_data_ptr(), wanted[i].nbytes()),
            0);
      }
      CHECK(at::allclose(close[i], wanted[i], 1e-5, 1e-6));
    }
  }
}

TEST_CASE("DS-11: sizes that are no parts of the whole are errors, with or without kernels") {
  for (const char* passes : {"", "fuse"}) {
    const TracedParts traced(passes);
    for (const NodeId node : traced.graph().nodes())  // the run checks them, not the graph
      CHECK_EQ(traced.graph().op(node).find("assert"), std::string_view::npos);
    for (const PlanOptions& options : {PlanOptions(), PlanOptions::Fastest()}) {
      DynamicExecutor executor = traced.Bind(options);
      const auto run = [&](const std::vector<int64_t>& counts) {
        return executor.Run(Tensors{at::randn({kRows, 8}), at::tensor(counts, at::kLong)});
      };
      for (const std::vector<int64_t>& counts :
           std::vector<std::vector<int64_t>>{{8, 8, 7}, {8, 8, 9}, {25, -1, 0}, {0, 0, 0}}) {
        INFO(passes, " ", counts[0], " ", counts[1], " ", counts[2]);
        CHECK_NE(testing::MessageOf(run(counts)), "");
      }
      CHECK_OK(run({0, 0, kRows}));
    }
  }
}

TEST_CASE("what a run needs is a function of the sizes that it reads, and known at most before") {
  for (const char* passes : {"", "fuse{numerics=fast}"}) {
    const TracedParts traced(passes);
    DynamicExecutor executor = traced.Bind(PlanOptions::Fastest());
    const PlannedMemory before = executor.planned_memory();
    REQUIRE(before.transient_at_most.has_value());
    CHECK_EQ(before.transient, *before.transient_at_most);
    for (const std::vector<int64_t>& counts : kCounts) {
      INFO(passes, " ", counts[0], " ", counts[1], " ", counts[2]);
      const Tensors inputs = {at::randn({kRows, 8}), at::tensor(counts, at::kLong)};
      OrDie(executor.Run(inputs));
      const MemoryMeter meter;
      OrDie(executor.Run(inputs));
      const PlannedMemory after = executor.planned_memory();
      CHECK_EQ(after.transient, meter.peak_bytes());
      CHECK_LE(after.transient, *before.transient_at_most);
    }
  }
}

TEST_CASE("the planned peak of a training whose experts compute one by one is the measured one") {
  at::set_num_threads(1);
  for (const char* fuse : {"", ",fuse", ",fuse{numerics=fast}"}) {
    INFO(fuse);
    const TrainConfig config =
        testing::SmallConfig(testing::kSmallDeepSeekV3,
                             {"moe.use_grouped_mm=false", "dim=64", "seq_len=96", "batch_size=4",
                              "steps=4", "rope.max_seq_len=96", "moe.moe_hidden_dim=48"});
    const auto trainer =
        OrDie(Trainer::Create({.config = config,
                               .data = MakeTokenSource(TokenData::Synthetic(config)),
                               .passes = std::string(kDefaultPasses) + fuse}));
    const MemoryMeter meter;
    REQUIRE_OK(trainer->Compile());
    const int64_t at_most = trainer->planned_bytes_at_most().value_or(0);
    CHECK_EQ(trainer->planned_bytes(), at_most);
    int64_t planned = 0;
    for (int step = 0; step < 3; ++step) {
      OrDie(trainer->Step());
      planned = std::max(planned, trainer->planned_bytes());
    }
    CHECK_LE(planned, at_most);
    CHECK_LT(std::abs(static_cast<double>(planned) / static_cast<double>(meter.peak_bytes()) - 1),
             0.03);
  }
}

/// Adds to the scores of each layer so much that tokens choose these experts.
void Favour(Tensors& biases, const std::vector<int64_t>& experts) {
  for (Tensor& bias : biases) {
    bias.zero_();
    for (const int64_t expert : experts)
      bias[expert] = 100.0;
  }
}

TEST_CASE("one graph serves whatever experts tokens choose: eager's bits, in the memory planned") {
  at::set_num_threads(1);
  const TrainConfig config = testing::SmallConfig(
      testing::kSmallDeepSeekV3,
      {"moe.use_grouped_mm=false", "dim=64", "seq_len=48", "batch_size=4", "rope.max_seq_len=48",
       "moe.moe_hidden_dim=48", "moe.num_experts=6", "moe.top_k=2"});
  for (const char* fuse : {"", ",fuse"}) {
    testing::Eager eager(config);
    const testing::Compiled compiled(config, std::string(kDefaultPasses) + fuse);
    PlanOptions all_allocated = PlanOptions::Fastest();
    all_allocated.dynamic_arena = false;
    Executor executor = compiled.Bind(kStepGraph, PlanOptions::Fastest()),
             other = compiled.Bind(kStepGraph, all_allocated);
    // All to two experts, the others get none; to each as they like; to four; to the last two.
    const std::vector<std::vector<int64_t>> favourites = {{0, 1}, {},     {1, 2, 3, 4},
                                                          {4, 5}, {0, 1}, {}};
    for (const std::vector<int64_t>& experts : favourites) {
      INFO(fuse, " favours ", experts.size());
      Favour(eager.buffers, experts);
      const Tensors expected = eager.LossAndGradients(0), inputs = eager.Inputs(0);
      if (experts.size() == 2) CHECK_EQ(expected.back()[experts[0]].item<int64_t>(), 4 * 48);
      const auto check = [&](Executor& run) {
        const Tensors actual = OrDie(run.Run(inputs));
        REQUIRE_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i)
          CHECK(testing::SameBits(actual[i], expected[i]));
      };
      check(executor);
      check(other);
      const MemoryMeter meter;
      OrDie(executor.Run(inputs));
      const PlannedMemory planned = executor.planned_memory();
      CHECK_LE(planned.transient, other.planned_memory().transient);
      CHECK_LE(planned.transient, planned.transient_at_most.value_or(0));
      const auto bytes = [&](int64_t transient) {
        return static_cast<double>(planned.held + transient);
      };
      CHECK_LT(std::abs(bytes(planned.transient) / bytes(meter.peak_bytes()) - 1), 0.03);
    }
  }
}

TEST_CASE("block masks keep their constant sizes beside sizes of experts that data decide") {
  at::set_num_threads(1);
  const TrainConfig config = testing::SmallConfig(
      testing::kSmallDeepSeekV3, {"moe.use_grouped_mm=false", "seq_len=12", "batch_size=4",
                                  "attn_type=flex", "flex.window=5", "flex.block_size=8"});
  testing::Eager eager(config);
  const testing::Compiled compiled(config, kDefaultPasses);
  Executor executor = compiled.Bind(kStepGraph, PlanOptions::Fastest());
  const Tensors expected = eager.LossAndGradients(0), actual = OrDie(executor.Run(eager.Inputs(0)));
  REQUIRE_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK(at::allclose(actual[i], expected[i], 1e-5, 1e-6));  // attention sums in another order
}

TEST_CASE("inputs of data-dependent size are of another size in each run of one plan") {
  const std::unique_ptr<Module> parsed = testing::ParseOrDie(R"(symbol u0 unbacked
graph g
  x = placeholder : f32[u0, 4][4, 1]cpu
  order = placeholder : i64[u0][1]cpu
  neg = aten.neg.default(x) : f32[u0, 4][4, 1]cpu
  exp = aten.exp.default(neg) : f32[u0, 4][4, 1]cpu
  rows = aten.index_select.default(exp, 0, order) : f32[u0, 4][4, 1]cpu
  t = aten.t.default(rows) : f32[4, u0][1, 4]cpu ~rows
  sum = aten.mm.default(t, x) : f32[4, 4][4, 1]cpu
  output([sum, rows])
)");
  Module& module = *parsed;
  PassManager manager;
  for (auto& pass : OrDie(ParsePipeline("fuse", AllPasses())))
    manager.Add(std::move(pass));
  OrDie(manager.Run(module));
  const Graph& graph = *module.FindGraph("g");
  for (const PlanOptions& options : {PlanOptions{}, PlanOptions::Fastest()}) {
    DynamicExecutor executor = OrDie(DynamicExecutor::Create(graph, [&](const SymbolSizes& sizes) {
      return Executor::Bind(OrDie(Lower(graph, options, sizes)), {});
    }));
    for (const int64_t rows : {5, 0, 1, 9, 5}) {
      CAPTURE(rows);
      const Tensor x = at::linspace(-1, 1, rows * 4).reshape({rows, 4});
      const Tensor order = at::arange(rows - 1, -1, -1, at::kLong);
      const Tensors found = OrDie(executor.Run(Tensors{x, order}));
      const Tensor expected = x.neg().exp().index_select(0, order);
      CHECK(found[1].equal(expected));
      CHECK(found[0].equal(expected.t().mm(x)));
    }
    CHECK_EQ(executor.num_plans(), 1);
    CHECK_EQ(testing::MessageOf(executor.Run(Tensors{at::ones({3, 5}), at::arange(3)})),
             "input x of graph g is f32[3, 5][5, 1]cpu, not f32[u0, 4][4, 1]cpu");
  }
}

TEST_CASE("a size that data decide is no result: a program returns tensors") {
  const std::unique_ptr<Module> module = testing::ParseOrDie(R"(symbol u0 unbacked
graph g
  x = placeholder : b8[5][1]cpu
  where = aten.nonzero.default(x) : i64[u0, 1][1, u0]cpu
  count = aten.sym_size.int(where, 0) : Sym(u0)
  output([count, where])
)");
  const Tensor x = at::tensor({1, 0, 1, 1, 0}).to(at::kBool);
  for (const PlanOptions& options : {PlanOptions{}, PlanOptions::Fastest()}) {
    Executor executor = OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"), options)), {}));
    const Tensors found = OrDie(executor.Run(Tensors{x}));
    CHECK_FALSE(found[0].defined());
    CHECK(found[1].equal(x.nonzero()));
  }
}

}  // namespace
}  // namespace strata
