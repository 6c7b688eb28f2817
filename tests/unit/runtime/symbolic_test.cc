#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "ir/fused_op.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/codegen/cpp_source.h"
#include "runtime/config/parameters.h"
#include "runtime/exec/dynamic_executor.h"
#include "runtime/exec/step/memory_meter.h"
#include "runtime/models/model.h"
#include "runtime/trace/sampled_trace.h"
#include "runtime/trace/scope.h"
#include "runtime/train/programs/trace_programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"

namespace strata {
namespace {

using at::Tensor;
using Inputs = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;
using Overrides = std::vector<std::string>;
using testing::kSmallDeepSeekV3;
using testing::kSmallLlama3;
using testing::kSmallQwen3;
using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::SmallConfig;

const std::string kOpen = "compile.symbolic_dims=batch_and_seq";
const std::string kChunkedLoss = "loss.name=chunked_cross_entropy";
const std::string kOneByOne = "moe.use_grouped_mm=false";

/// A small model with a table of positions that holds longer sequences; Qwen3 with experts,
/// DeepSeek-V3 with compressed queries and groups.
TrainConfig ConfigFrom(std::string_view text, const Overrides& overrides) {
  Overrides all = {"seq_len=12", "batch_size=4", "steps=6", "rope.max_seq_len=24"};
  const auto add = [&](const Overrides& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (text == kSmallQwen3) {
    add({"hidden_dim=null", "moe.num_experts=6", "moe.top_k=2", "moe.moe_hidden_dim=8",
         "moe.score_func=softmax"});
  }
  if (text == kSmallDeepSeekV3) {
    add({"mla.q_lora_rank=10", "mla.mscale=1", "moe.num_shared_experts=1",
         "moe.num_expert_groups=4", "moe.num_limited_groups=2"});
  }
  add(overrides);
  return SmallConfig(text, all);
}

struct TracedStep {
  Module module;
  Constants constants;

  explicit TracedStep(const TrainConfig& config, std::string_view passes = kDefaultPasses) {
    REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
    REQUIRE_OK(Verify(module));
    PassManager manager;
    for (auto& pass : OrDie(ParsePipeline(passes, AllPasses())))
      manager.Add(std::move(pass));
    OrDie(manager.Run(module));
  }
  const Graph& step() const { return *module.FindGraph(kStepGraph); }
  DynamicExecutor Bind(const PlanOptions& options) const {
    return OrDie(DynamicExecutor::Create(step(), [&, options](const SymbolSizes& sizes) {
      return Executor::Bind(OrDie(Lower(step(), options, sizes)), constants);
    }));
  }
};

/// What the graph `step` takes, of these sizes.
Tensors StepInputs(const TrainConfig& config, int64_t batch, int64_t seq) {
  const ModelSpecs specs = SpecsOf(config);
  Tensors inputs;
  for (const auto* group : {&specs.parameters, &specs.buffers}) {
    for (const ParameterSpec& spec : *group) {
      Tensor value = at::empty(spec.shape);
      InitializeParameter(spec, config.seed,
                          {value.data_ptr<float>(), static_cast<size_t>(value.numel())});
      inputs.push_back(std::move(value));
    }
  }
  inputs.push_back(RopeTable(config));
  at::manual_seed(batch * 100 + seq);
  inputs.push_back(at::randint(config.vocab_size, {batch, seq}, at::kLong));
  inputs.push_back(at::randint(config.vocab_size, {batch, seq}, at::kLong));
  return inputs;
}

void CheckSameBits(const Tensors& actual, const Tensors& expected) {
  REQUIRE_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("output ", i);
    REQUIRE(actual[i].sizes() == expected[i].sizes());
    CHECK_EQ(std::memcmp(actual[i].contiguous().const_data_ptr(),
                         expected[i].contiguous().const_data_ptr(), expected[i].nbytes()),
             0);
  }
}

TEST_CASE("one graph for all batches and sequences gives what a graph traced for each gives") {
  at::set_num_threads(1);
  struct Way {
    std::string_view text;
    Overrides overrides;
    int64_t unit;
  };
  for (const Way& way :
       std::vector<Way>{{kSmallLlama3, {}, 1},
                        {kSmallLlama3, {kChunkedLoss, "loss.num_chunks=4"}, 4},
                        {kSmallLlama3, {"training.mixed_precision_param=bfloat16"}, 1},
                        {kSmallQwen3, {}, 1},
                        {kSmallDeepSeekV3, {}, 1},
                        {kSmallDeepSeekV3, {"n_heads=1"}, 1},
                        {kSmallDeepSeekV3, {kOneByOne}, 1}}) {
    Overrides overrides = way.overrides;
    INFO(way.text.substr(0, 20), " ", overrides.empty() ? "" : overrides[0]);
    overrides.push_back(kOpen);
    const TracedStep open(ConfigFrom(way.text, overrides));
    CHECK(HasDynamicShapes(open.step()));
    CHECK_EQ(HintsOf(open.step()), SymbolSizes{{"s0", 4}, {"s1", 12 / way.unit}});
    DynamicExecutor executor = open.Bind(PlanOptions::Fastest());
    overrides.pop_back();
    size_t plans = 1;
    for (const auto& [batch, seq] : {std::pair<int64_t, int64_t>{4, 12},
                                     {1, 12},
                                     {2, 12},
                                     {3, 8},
                                     {8, 24},
                                     {1, way.unit},
                                     {3, 8}}) {
      INFO("batch ", batch, " seq ", seq);
      overrides.push_back(fmt::format("batch_size={}", batch));
      overrides.push_back(fmt::format("seq_len={}", seq));
      const TrainConfig config = ConfigFrom(way.text, overrides);
      overrides.resize(overrides.size() - 2);
      const TracedStep closed(config);
      const Tensors inputs = StepInputs(config, batch, seq);
      const Tensors expected = OrDie(closed.Bind({}).Run(inputs));
      CheckSameBits(OrDie(executor.Run(inputs)), expected);
      CheckSameBits(OrDie(open.Bind({}).Run(inputs)), expected);
      plans = std::max(plans, executor.num_plans());
    }
    CHECK_EQ(plans, 6);
  }
}

TEST_CASE("a chunked loss of one row has the operators of that of several") {
  const auto operators = [](int64_t batch) {
    const TracedStep traced(ConfigFrom(kSmallLlama3, {kChunkedLoss, "loss.num_chunks=4",
                                                      fmt::format("batch_size={}", batch)}),
                            "");
    std::vector<std::string> names;
    for (const NodeId node : traced.step().nodes())
      names.emplace_back(traced.step().op(node));
    return names;
  };
  CHECK_EQ(operators(1), operators(4));
}

TEST_CASE("plans of one graph share one block, after sizes grew and shrank, but not held outputs") {
  at::set_num_threads(1);
  for (const Overrides& overrides : {Overrides{kOpen}, Overrides{kOpen, kOneByOne}}) {
    const std::string_view text = overrides.size() > 1 ? kSmallDeepSeekV3 : kSmallLlama3;
    INFO(text.substr(0, 20));
    Overrides wide = overrides;
    wide.insert(wide.end(), {"dim=64", "vocab_size=200"});
    const TrainConfig config = ConfigFrom(text, wide);
    const TracedStep open(config);
    std::vector<Tensors> inputs;
    for (const auto& [batch, seq] : {std::pair<int64_t, int64_t>{4, 12},
                                     {8, 24},
                                     {2, 4},
                                     {8, 24},
                                     {1, 20},
                                     {16, 24},
                                     {3, 7},
                                     {5, 5},
                                     {16, 20},
                                     {9, 9},
                                     {2, 2},
                                     {4, 12}}) {
      inputs.push_back(StepInputs(config, batch, seq));
    }
    auto meter = std::make_optional<MemoryMeter>();
    DynamicExecutor executor = open.Bind(PlanOptions::Fastest());
    std::vector<int64_t> held;
    for (const Tensors& of_run : inputs) {
      OrDie(executor.Run(of_run));  // its outputs are released
      held.push_back(executor.planned_memory().held);
      const double live = static_cast<double>(meter->live_bytes());
      CHECK_LT(std::abs(live / static_cast<double>(held.back()) - 1), 0.03);
    }
    CHECK_EQ(executor.num_plans(), DynamicExecutor::kKeptPlans);
    CHECK_GT(held[1], held[0]);
    CHECK_EQ(held[2], held[1]);
    CHECK_EQ(held.back(), std::ranges::max(held));
    // Plans that are there need no more than passes.
    meter.reset();
    meter.emplace();
    for (const size_t known : {5, 9, 5, 8})
      OrDie(executor.Run(inputs[known]));
    const PlannedMemory memory = executor.planned_memory();
    CHECK_LT(meter->peak_bytes(), memory.transient_at_most.value_or(0) + memory.held / 30);
    Tensors outputs, copies;
    for (size_t i = 0; i < 4; ++i) {
      Tensors next = OrDie(executor.Run(inputs[i]));
      if (i > 0) CheckSameBits(outputs, copies);
      outputs = std::move(next);
      copies.clear();
      for (const Tensor& output : outputs)
        copies.push_back(output.clone());
    }
  }
}

size_t CountFusedNodes(const Graph& graph) {
  size_t count = 0;
  for (const NodeId node : graph.nodes())
    count += graph.op(node) == kFusedOp ? 1 : 0;
  return count;
}

TEST_CASE(
    "fused kernels take dynamic sizes when they run: one source for all, bitwise equal to the "
    "operators") {
  at::set_num_threads(1);
  const std::string passes = std::string(kDefaultPasses) + ",fuse";
  for (const std::string_view text : {kSmallLlama3, kSmallDeepSeekV3}) {
    INFO(text.substr(0, 20));
    const TracedStep open(ConfigFrom(text, {kOpen}), passes);
    CHECK_EQ(CountFusedNodes(open.step()),
             CountFusedNodes(TracedStep(ConfigFrom(text, {}), passes).step()));
    const auto source = [&](int64_t batch, int64_t seq) {
      const SymbolSizes sizes = {{"s0", batch}, {"s1", seq}};
      return CppSource(OrDie(Lower(open.step(), PlanOptions::Fastest(), sizes)).kernels.values());
    };
    CHECK_EQ(source(3, 8), source(4, 12));
    CHECK_EQ(source(8, 24), source(4, 12));
    const TracedStep unfused(ConfigFrom(text, {kOpen}));
    DynamicExecutor executor = open.Bind(PlanOptions::Fastest());
    DynamicExecutor plain = unfused.Bind({});
    for (const auto& [batch, seq] : {std::pair<int64_t, int64_t>{4, 12}, {3, 8}, {8, 24}, {1, 1}}) {
      INFO("batch ", batch, " seq ", seq);
      const Tensors inputs = StepInputs(ConfigFrom(text, {}), batch, seq);
      CheckSameBits(OrDie(executor.Run(inputs)), OrDie(plain.Run(inputs)));
    }
  }
}

TEST_CASE("sizes and arguments of a dynamic graph are expressions of s0 and s1") {
  const TracedStep open(ConfigFrom(kSmallLlama3, {kOpen}), "");
  const Graph& graph = open.step();
  const auto type = [&](std::string_view name) {
    return open.module.types().ToString(graph.value(graph.result(NodeNamed(graph, name))).type);
  };
  CHECK_EQ(type("tokens"), "i64[s0, s1][s1, 1]cpu");
  CHECK_EQ(type("embedding"), "f32[s0, s1, 32][32*s1, 32, 1]cpu");
  const std::string text = PrintText(open.module);
  CHECK(text.find("symbol s0 hint=4 min=1\nsymbol s1 hint=12 min=1 max=24\n") == 0);
  CHECK(text.find("aten.view.default(embedding, ") == std::string::npos);
  CHECK(text.find("[sym(s0), sym(s1), -1, 8]") != std::string::npos);
  CHECK_EQ(PrintText(*OrDie(ParseText(text, "open.txt"))), text);
  // The optimizer has static shapes.
  CHECK_FALSE(HasDynamicShapes(*open.module.FindGraph(kOptimizerGraph)));
}

TEST_CASE("static sizes are numbers, whatever they were while sampling") {
  for (const std::string_view dims : {"batch", "seq"}) {
    const TracedStep open(ConfigFrom(kSmallQwen3, {fmt::format("compile.symbolic_dims={}", dims)}),
                          "");
    const Graph& graph = open.step();
    const TypeId tokens = graph.value(graph.result(NodeNamed(graph, "tokens"))).type;
    CHECK_EQ(open.module.types().ToString(tokens),
             dims == "batch" ? "i64[s0, 12][12, 1]cpu" : "i64[4, s1][s1, 1]cpu");
    const TypeId table = graph.value(graph.result(NodeNamed(graph, "rope_cache"))).type;
    CHECK_EQ(open.module.types().ToString(table), "f32[24, 16][16, 1]cpu");
  }
  for (const int64_t seq : {1, 2, 3, 7}) {
    const TracedStep open(
        ConfigFrom(kSmallQwen3, {"compile.symbolic_dims=batch", fmt::format("seq_len={}", seq)}),
        "");
    const Graph& graph = open.step();
    const TypeId table = graph.value(graph.result(NodeNamed(graph, "rope_cache"))).type;
    CHECK_EQ(open.module.types().ToString(table), "f32[24, 16][16, 1]cpu");
  }
}

TEST_CASE("a sequence of static size may be padded by attention's kernel for GPUs") {
  const TargetScope target(
      {.name = "cuda:0", .is_gpu = true, .capability = 9.0, .cudnn = 0, .deterministic = false});
  const TracedStep open(ConfigFrom(kSmallDeepSeekV3, {"compile.symbolic_dims=batch"}), "");
  CHECK(HasDynamicShapes(open.step()));
  // Experts one by one: enough tokens that each expert has some while sampling.
  const TracedStep one_by_one(
      ConfigFrom(kSmallDeepSeekV3, {kOneByOne, "seq_len=60", "rope.max_seq_len=60"}), "");
  CHECK(PrintText(one_by_one.step()).find("Sym(u0)") != std::string::npos);
}

/// Batches whose sizes change.
class Varying final : public DataSource {
 public:
  explicit Varying(const TrainConfig& config) : config_(config) {}
  Result<std::optional<Batch>> Next() override {
    constexpr std::pair<int64_t, int64_t> kSizes[] = {{4, 12}, {2, 12}, {1, 8}, {3, 24}};
    const auto [rows, seq] = kSizes[seen_ % 4];
    Batch batch{.rows = rows, .tokens = {}, .labels = {}, .positions = {}};
    for (int64_t i = 0; i < rows * seq; ++i) {
      batch.tokens.push_back((7 * i + seen_) % config_.vocab_size);
      batch.labels.push_back((5 * i + 3) % config_.vocab_size);
      batch.positions.push_back(i % seq);
    }
    ++seen_;
    return std::optional(std::move(batch));
  }
  std::string Position() const override { return std::to_string(seen_); }
  Status Seek(std::string_view /*position*/) override { return Ok(); }

 private:
  TrainConfig config_;
  int64_t seen_ = 0;
};

TEST_CASE("a training whose batches change their size is eager training, bit for bit") {
  at::set_num_threads(1);
  for (const auto& [text, more] : {std::pair<std::string_view, std::string>{kSmallLlama3, "seed=5"},
                                   {kSmallLlama3, "training.num_tokens_per_train_step=96"},
                                   {kSmallDeepSeekV3, "seed=7"},
                                   {kSmallDeepSeekV3, kOneByOne}}) {
    INFO(text.substr(0, 20), " ", more);
    const TrainConfig config = ConfigFrom(text, {kOpen, more});
    const auto make = [&] {
      return OrDie(Trainer::Create({.config = config, .data = std::make_unique<Varying>(config)}));
    };
    const auto graphs = make(), eager = make();
    OrDie(graphs->Compile());
    for (int64_t step = 0; step < config.steps; ++step) {
      INFO("step ", step);
      const StepReport actual = OrDie(graphs->Step()), expected = OrDie(eager->StepEagerly());
      CHECK_EQ(actual.metrics.loss, expected.metrics.loss);
      CHECK_EQ(actual.metrics.grad_norm, expected.metrics.grad_norm);
      CHECK_EQ(actual.tokens, expected.tokens);
    }
    const std::vector<TensorView> a = graphs->Parameters(), b = eager->Parameters();
    for (size_t i = 0; i < a.size(); ++i) {
      INFO(a[i].name);
      CHECK_EQ(std::memcmp(a[i].bytes.data(), b[i].bytes.data(), b[i].bytes.size()), 0);
    }
  }
}

TEST_CASE("experts one by one read their sizes from data: u0, u1, …") {
  at::set_num_threads(1);
  const TrainConfig config = ConfigFrom(kSmallDeepSeekV3, {kOneByOne});
  const TracedStep traced(config);
  const std::string text = PrintText(traced.step(), {.types = true, .metadata = false});
  CHECK(text.find("_local_scalar_dense = aten._local_scalar_dense.default(select") !=
        std::string::npos);
  CHECK(text.find(" : Sym(u0)\n") != std::string::npos);
  CHECK(text.find(" : Sym(u15)\n") != std::string::npos);  // 8 experts in each of 2 layers
  CHECK(text.find("u16") == std::string::npos);
  CHECK(text.find(", [_local_scalar_dense, _local_scalar_dense_1,") != std::string::npos);
  CHECK(text.find("f32[u0, 24][24, 1]cpu") != std::string::npos);
  CHECK(text.find("f32[144, 24][24, 1]cpu") != std::string::npos);  // 4 · 12 tokens, 3 experts each
  const std::string whole = PrintText(traced.module);
  CHECK(whole.find("symbol u0 unbacked\n") != std::string::npos);
  CHECK_EQ(PrintText(*OrDie(ParseText(whole, "unbacked.txt"))), whole);

  // Rounding apart, they are what the grouped product gives.
  const Tensors inputs = StepInputs(config, 4, 12);
  DynamicExecutor planned = traced.Bind(PlanOptions::Fastest());
  CHECK_GT(planned.planned_memory().held, 0);  // what has a known size has a place
  const Tensors actual = OrDie(planned.Run(inputs));
  CheckSameBits(actual, OrDie(traced.Bind({}).Run(inputs)));
  const Tensors expected = OrDie(TracedStep(ConfigFrom(kSmallDeepSeekV3, {})).Bind({}).Run(inputs));
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("output ", i);
    CHECK(at::allclose(actual[i], expected[i], 1e-4, 1e-6));
  }
}

// Programs that cannot be traced with dynamic shapes.

/// The refusal of a program over x `[batch, seq]`, f32.
std::string Refusal(const std::function<Tensors(const Tensor& x)>& program) {
  const std::vector<TracedSize> sizes = {
      {.name = "batch", .symbol = "s0", .value = 4, .samples = {3, 5, 7, 11}},
      {.name = "seq", .symbol = "s1", .value = 9, .samples = {17, 19, 23, 29}}};
  Module module;
  Constants constants;
  return MessageOf(TraceSampled(
      module, sizes,
      [&](std::span<const int64_t> at) {
        return TraceRequest{
            .graph = "g",
            .inputs = {{.name = "x",
                        .module = {},
                        .example = at::empty({at[0], at[1]}, at::TensorOptions(at::kMeta))}},
            .program = [&](Inputs in) { return program(in[0]); }};
      },
      constants));
}

/// `message` says this of an operator in module layers.0, at a line of this file.
void CheckSays(const std::string& message, std::string_view op, std::string_view why) {
  INFO(message);
  CHECK(message.starts_with(
      fmt::format("cannot trace {}: layers.0 (tests/unit/runtime/symbolic_test.cc:", op)));
  CHECK(message.ends_with(why));
}

TEST_CASE("DS-07: a branch on a size is refused with module and line") {
  CheckSays(Refusal([](const Tensor& x) -> Tensors {
              const ModuleScope scope("layers.0");
              return {x.size(1) > 20 ? x.sin() : x.cos()};
            }),
            "aten.cos.default",
            "is computed at batch 3, seq 17, and aten.sin.default at batch 7, seq 23: a program "
            "with dynamic shapes must do the same at all of them");
  CheckSays(Refusal([](const Tensor& x) -> Tensors {
              const ModuleScope scope("layers.0");
              Tensor y = x;
              for (int64_t i = 0; i < x.size(0); ++i)
                y = y.neg();
              return {y};
            }),
            "aten.neg.default",
            "is computed at batch 5, seq 19, and nothing more at batch 3, seq 17: a program "
            "with dynamic shapes must do the same at all of them");
}

TEST_CASE("a number that is no expression of the sizes is refused with module and line") {
  CheckSays(Refusal([](const Tensor& x) -> Tensors {
              const ModuleScope scope("layers.0");
              return {x.slice(1, 0, x.size(1) / 2)};
            }),
            "aten.slice.Tensor",
            "has a number that is 8 at batch 3, seq 17 and 9 at batch 5, seq 19: no sum or product "
            "of the dynamic sizes");
  CheckSays(Refusal([](const Tensor& x) -> Tensors {
              const ModuleScope scope("layers.0");
              return {x * (1.0 / static_cast<double>(x.size(0)))};
            }),
            "aten.mul.Scalar",
            "takes 0.3333333333333333 at batch 3, seq 17 and 0.2 at batch 5, seq 19: only whole "
            "numbers can depend on dynamic sizes, divide by the size instead");
}

TEST_CASE("reading a value and branching on it are refused with module and line") {
  constexpr std::string_view kWhy =
      "reads a tensor's value, which does not exist while tracing: compute with operators, "
      "at::where instead of a branch";
  CheckSays(Refusal([](const Tensor& x) -> Tensors {
              const ModuleScope scope("layers.0");
              return {x * x.sum().item<double>()};
            }),
            "aten._local_scalar_dense.default", kWhy);
  CheckSays(Refusal([](const Tensor& x) -> Tensors {
              const ModuleScope scope("layers.0");
              if (x.sum().is_nonzero()) return {x.sin()};
              return {x.cos()};
            }),
            "aten._local_scalar_dense.default", kWhy);
}

TEST_CASE("a size that is read from data is an argument as it is, and nothing else") {
  const auto program = [](bool slices) {
    return [slices](const Tensor& x) -> Tensors {
      const ModuleScope scope("layers.0");
      const Tensor counts = at::ones({3}, x.options().dtype(at::kLong));
      const std::vector<int64_t> sizes = ReadSizes(counts, x.size(0) * 100);
      const Tensor rows = x.flatten().repeat({100}).view({x.size(0) * 100, x.size(1)});
      if (slices) return {rows.slice(0, 0, sizes[0] + sizes[1])};
      return rows.split_with_sizes(sizes, 0);
    };
  };
  CHECK_EQ(Refusal(program(false)), "");
  CheckSays(Refusal(program(true)), "aten.slice.Tensor",
            "takes u0 + u1: sizes that are read from data can be arguments only as they are, "
            "split instead of slicing");
}

}  // namespace
}  // namespace strata
