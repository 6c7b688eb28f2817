#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "ir/native_text.h"
#include "ir/verify.h"
#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/models/layers.h"
#include "runtime/models/model.h"
#include "runtime/torch/executor.h"
#include "runtime/train/parameters.h"
#include "runtime/train/programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Overrides = std::vector<std::string>;
using testing::OrDie;

/// A configuration and what differs from it.
struct Case {
  std::string_view text;
  Overrides overrides;
};

constexpr std::string_view kLlama3 = R"(
model = "llama3"
init = "torchtitan_sharpened"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 40
multiple_of = 8
seq_len = 10
batch_size = 3
steps = 4
seed = 5
[rope]
original_max_position_embeddings = 64
)";

constexpr std::string_view kQwen3 = R"(
model = "qwen3"
init = "torchtitan_sharpened"
dim = 24
n_layers = 2
n_heads = 4
n_kv_heads = 2
head_dim = 8
hidden_dim = 20
vocab_size = 40
enable_weight_tying = true
seq_len = 10
batch_size = 3
steps = 4
seed = 6
)";

constexpr std::string_view kDeepSeekV3 = R"(
model = "deepseek_v3"
init = "torchtitan_sharpened"
dim = 24
n_layers = 3
n_heads = 3
hidden_dim = 20
vocab_size = 40
seq_len = 10
batch_size = 3
steps = 4
seed = 7
[mla]
kv_lora_rank = 12
qk_nope_head_dim = 8
qk_rope_head_dim = 4
v_head_dim = 8
mscale = 0.7
[moe]
num_experts = 8
top_k = 3
moe_hidden_dim = 12
num_shared_experts = 2
[rope]
rope_factor = 4.0
original_seq_len = 6
)";

TrainConfig Config(const Overrides& overrides, std::string_view text = kLlama3) {
  return OrDie(ParseTrainConfig(text, ConfigFormat::kToml, "small.toml", overrides));
}

std::unique_ptr<DataSource> Synthetic(const TrainConfig& config) {
  return MakeTokenSource(TokenData::Synthetic(config));
}

/// What every property is checked on.
const std::vector<Case> kCases = {
    {kLlama3, {}},
    {kLlama3, {"n_kv_heads=4"}},
    {kLlama3, {"n_kv_heads=1", "n_heads=8"}},
    {kLlama3, {"dim=48", "n_heads=3", "n_kv_heads=3", "n_layers=1"}},
    {kLlama3, {"head_dim=12", "hidden_dim=20"}},
    {kLlama3, {"seq_len=1"}},
    {kLlama3, {"batch_size=1", "seq_len=7"}},
    {kLlama3, {"rope.scaling=none", "rope.theta=10000"}},
    {kLlama3, {"rope.scaling=none", "rope.backend=cos_sin"}},
    {kLlama3, {"rope.max_seq_len=32", "seed=9"}},
    {kLlama3, {"enable_weight_tying=true"}},
    {kLlama3, {"optimizer.max_grad_norm=null", "optimizer.weight_decay=0"}},
    {kQwen3, {}},
    {kQwen3, {"enable_weight_tying=false", "n_kv_heads=1"}},
    {kQwen3, {"qk_norm=false", "batch_size=1"}},
    {kQwen3,
     {"moe.num_experts=6", "moe.top_k=2", "moe.moe_hidden_dim=8", "moe.score_func=softmax"}},
    {kDeepSeekV3, {}},
    {kDeepSeekV3, {"mla.q_lora_rank=10", "mla.v_head_dim=16"}},
    {kDeepSeekV3, {"mla.v_head_dim=12", "rope.scaling=none"}},
    // Neither rows of experts nor pairs of a head begin where the kernels want them.
    {kDeepSeekV3, {"dim=22", "moe.moe_hidden_dim=7", "mla.qk_nope_head_dim=5"}},
    {kDeepSeekV3, {"moe.score_func=softmax", "moe.route_norm=true", "moe.route_scale=2.5"}},
    {kDeepSeekV3, {"moe.num_expert_groups=4", "moe.num_limited_groups=2", "moe.route_norm=true"}},
    {kDeepSeekV3, {"moe.score_before_experts=true", "moe.num_shared_experts=0"}},
    {kDeepSeekV3, {"moe.load_balance_coeff=null", "n_dense_layers=0"}},
    // More experts than rows: some get none.
    {kDeepSeekV3, {"moe.num_experts=64", "moe.top_k=1", "seq_len=5", "batch_size=1"}},
    {kDeepSeekV3, {"moe.num_experts=2", "moe.top_k=2", "seq_len=1"}},
    {kDeepSeekV3, {"n_dense_layers=3", "enable_weight_tying=true"}},
};

std::string Title(const Case& c) {
  std::string title(c.text.substr(0, c.text.find('\n', 1)));
  for (const std::string& text : c.overrides)
    title += " " + text;
  return title;
}

/// Parameters and data of a run, and its eager steps.
struct Eager {
  TrainConfig config;
  TokenData tokens;
  Tensors parameters, buffers;
  Tensor rope_table;
  OptimizerState state;

  explicit Eager(const TrainConfig& c) : config(c), tokens(TokenData::Synthetic(c)) {
    const ModelSpecs specs = SpecsOf(config);
    parameters = FirstValues(specs.parameters);
    buffers = FirstValues(specs.buffers);
    rope_table = RopeTable(config);
    state = InitialState(config, parameters);
  }

  Tensors FirstValues(const std::vector<ParameterSpec>& specs) const {
    Tensors values;
    for (const ParameterSpec& spec : specs) {
      Tensor value = at::empty(spec.shape);
      InitializeParameter(spec, config.seed,
                          {value.data_ptr<float>(), static_cast<size_t>(value.numel())});
      values.push_back(std::move(value));
    }
    return values;
  }

  /// Ids [:, shift : shift + seq] of the step.
  Tensor Ids(int64_t step, int64_t shift) const {
    const Tensor all = at::tensor(tokens.Step(step)).view({config.batch_size, config.seq_len + 1});
    return all.slice(1, shift, config.seq_len + shift).clone(at::MemoryFormat::Contiguous);
  }
  /// What the graph `step` takes.
  Tensors Inputs(int64_t step) const {
    Tensors inputs = parameters;
    inputs.insert(inputs.end(), buffers.begin(), buffers.end());
    inputs.insert(inputs.end(), {rope_table, Ids(step, 0), Ids(step, 1)});
    return inputs;
  }
  Tensors LossAndGradients(int64_t step) const {
    Tensors trained;
    for (const Tensor& parameter : parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const ModelTensors model{.parameters = trained, .buffers = buffers, .rope_table = rope_table};
    return strata::LossAndGradients(config, model,
                                    {.tokens = Ids(step, 0), .labels = Ids(step, 1)});
  }
  /// Takes what `LossAndGradients` gave; returns the gradient norm.
  Tensor Update(const Tensors& outputs) {
    Tensors gradients;
    for (size_t i = 1; i <= parameters.size(); ++i)
      gradients.push_back(outputs[i].contiguous());
    const Tensors tokens_per_expert(outputs.end() - std::ssize(buffers), outputs.end());
    const ModelTensors model{.parameters = parameters, .buffers = buffers, .rope_table = {}};
    return OptimizerStep(config, model, gradients, tokens_per_expert, state)[0];
  }
};

/// The two graphs after passes.
struct Compiled {
  Module module;
  Constants constants;

  Compiled(const TrainConfig& config, std::string_view passes) {
    REQUIRE_OK(TraceTraining(config, module, constants));
    PassManager manager;
    for (auto& pass : OrDie(ParsePipeline(passes, AllPasses())))
      manager.Add(std::move(pass));
    OrDie(manager.Run(module));
  }
  Executor Bind(std::string_view graph, const PlanOptions& options = {}) const {
    return OrDie(Executor::Bind(OrDie(Lower(*module.FindGraph(graph), options)), constants));
  }
};

bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(),
                     a.nbytes()) == 0;
}

TEST_CASE(
    "executed loss and gradients are eager autograd's, bit for bit, before and after passes") {
  at::set_num_threads(1);
  for (const Case& c : kCases) {
    INFO(Title(c));
    const Eager eager(Config(c.overrides, c.text));
    const Tensors expected = eager.LossAndGradients(0);
    REQUIRE(std::isfinite(expected[0].item<float>()));
    for (const std::string_view passes : {std::string_view(), kDefaultPasses}) {
      INFO(passes);
      const Tensors actual =
          OrDie(Compiled(eager.config, passes).Bind(kStepGraph).Run(eager.Inputs(0)));
      REQUIRE_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        INFO("output ", i);
        CHECK(SameBits(actual[i], expected[i]));
      }
    }
  }
}

TEST_CASE("every option of a plan, alone and together, leaves the plain plan's bits") {
  at::set_num_threads(1);
  const PlanOptions all[] = {
      {.fold_views = true},
      {.static_memory = true},
      {.fold_views = true, .static_memory = true},
      {.static_memory = true, .in_place = true},
      {.hoist_constants = true},
      {.static_memory = true, .place_results = true},
      {.static_memory = true, .own_matmuls = true},
      {.keep_values = true, .fold_views = true, .static_memory = true},
      PlanOptions::Fastest(),
  };
  for (const Case& c : kCases) {
    INFO(Title(c));
    const Eager eager(Config(c.overrides, c.text));
    const Compiled compiled(eager.config, kDefaultPasses);
    std::vector<Tensors> expected;
    Executor plain = compiled.Bind(kStepGraph);
    for (int64_t step = 0; step < 2; ++step)
      expected.push_back(OrDie(plain.Run(eager.Inputs(step))));
    for (const PlanOptions& options : all) {
      INFO("option ", &options - all);
      Executor executor = compiled.Bind(kStepGraph, options);
      // The second run finds the memory of the first; the first's outputs are held and must stay.
      const Tensors first = OrDie(executor.Run(eager.Inputs(0)));
      const Tensors second = OrDie(executor.Run(eager.Inputs(1)));
      const Tensors third = OrDie(executor.Run(eager.Inputs(0)));
      for (size_t i = 0; i < expected[0].size(); ++i) {
        INFO("output ", i);
        CHECK(SameBits(first[i], expected[0][i]));
        CHECK(SameBits(second[i], expected[1][i]));
        CHECK(SameBits(third[i], expected[0][i]));
      }
    }
  }
}

/// Both graphs, for two steps: losses, gradients, and what the optimizer leaves.
std::vector<Tensors> RunTwoSteps(const TrainConfig& config, std::string_view passes,
                                 const PlanOptions& options) {
  Eager run(config);
  const Compiled compiled(config, passes);
  Executor step = compiled.Bind(kStepGraph, options);
  Executor optimizer = compiled.Bind(kOptimizerGraph, options);
  std::vector<Tensors> results;
  for (int64_t i = 0; i < 2; ++i) {
    results.push_back(OrDie(step.Run(run.Inputs(i))));
    Tensors inputs = run.parameters;
    for (size_t k = 1; k <= run.parameters.size(); ++k)
      inputs.push_back(results.back()[k].contiguous());
    for (const Tensors& group : {run.state.exp_avg, run.state.exp_avg_sq, run.buffers})
      inputs.insert(inputs.end(), group.begin(), group.end());
    inputs.insert(inputs.end(), results.back().end() - std::ssize(run.buffers),
                  results.back().end());
    inputs.insert(inputs.end(), {run.state.step, run.state.lr});
    run.state.lr.fill_(run.config.optimizer.lr);
    results.push_back(OrDie(optimizer.Run(inputs)));
    results.push_back({});
    for (const Tensors& group : {run.parameters, run.state.exp_avg, run.state.exp_avg_sq})
      for (const Tensor& tensor : group)
        results.back().push_back(tensor.clone());
  }
  return results;
}

TEST_CASE("fused kernels have the bits of the operators that they replace, compiled or not") {
  at::set_num_threads(1);
  const std::string fused = std::string(kDefaultPasses) + ",fuse";
  for (const Case& c : kCases) {
    // Each compiles kernels for its sizes.
    const bool is_compiled =
        (&c - kCases.data()) % 5 == 0 || std::getenv("STRATA_TEST_ALL_KERNELS");
    INFO(Title(c));
    const TrainConfig config = Config(c.overrides, c.text);
    const auto expected = RunTwoSteps(config, kDefaultPasses, {});
    std::vector<PlanOptions> all{{.unfuse = true}, PlanOptions::Fastest()};
    all.back().unfuse = true;
    if (is_compiled) all.push_back(PlanOptions::Fastest());
    for (const PlanOptions& options : all) {
      INFO("option ", &options - all.data());
      const auto actual = RunTwoSteps(config, fused, options);
      for (size_t group = 0; group < expected.size(); ++group) {
        for (size_t i = 0; i < expected[group].size(); ++i) {
          INFO("group ", group, " tensor ", i);
          CHECK(SameBits(actual[group][i], expected[group][i]));
        }
      }
    }
  }
}

TEST_CASE("fused kernels with other sums and functions are within rounding") {
  at::set_num_threads(1);
  const std::string fused = std::string(kDefaultPasses) + ",fuse{numerics=fast}";
  for (const Case& c : kCases) {
    if ((&c - kCases.data()) % 5 != 0 && !std::getenv("STRATA_TEST_ALL_KERNELS")) continue;
    INFO(Title(c));
    const TrainConfig config = Config(c.overrides, c.text);
    const Tensors expected = RunTwoSteps(config, kDefaultPasses, {})[0];
    const Tensors actual = RunTwoSteps(config, fused, PlanOptions::Fastest())[0];
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO("output ", i);
      const double scale = expected[i].to(at::kDouble).abs().max().item<double>();
      const double error =
          (actual[i].to(at::kDouble) - expected[i].to(at::kDouble)).abs().max().item<double>();
      CHECK_LE(error, 2e-5 * scale + 1e-8);
    }
  }
}

TEST_CASE("a whole training is an eager loop, bit for bit") {
  at::set_num_threads(1);
  for (const Case& c : kCases) {
    INFO(Title(c));
    const TrainConfig config = Config(c.overrides, c.text);
    const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
    REQUIRE_OK(trainer->Compile());
    Eager eager(config);
    for (int64_t step = 0; step < config.steps; ++step) {
      INFO("step ", step);
      const StepReport report = OrDie(trainer->Step());
      const Tensors outputs = eager.LossAndGradients(step);
      CHECK_EQ(report.metrics.loss, outputs[0].item<float>());
      CHECK_EQ(report.metrics.grad_norm, eager.Update(outputs).item<float>());
    }
    const std::vector<TensorView> trained = trainer->Parameters();
    Tensors expected = eager.parameters;
    expected.insert(expected.end(), eager.buffers.begin(), eager.buffers.end());
    REQUIRE_EQ(trained.size(), expected.size());
    for (size_t i = 0; i < trained.size(); ++i) {
      INFO(trained[i].name);
      REQUIRE_EQ(trained[i].bytes.size(), expected[i].nbytes());
      CHECK_EQ(std::memcmp(trained[i].bytes.data(), expected[i].const_data_ptr(),
                           trained[i].bytes.size()),
               0);
    }
  }
}

TEST_CASE("clipping and AdamW follow their formulas, whether the norm is clipped or not") {
  for (const double max_norm : {0.01, 1000.0}) {
    const TrainConfig config = Config({fmt::format("optimizer.max_grad_norm={}", max_norm)});
    Eager run(config);
    const Tensors outputs = run.LossAndGradients(0);
    const Tensors gradients(outputs.begin() + 1, outputs.end());  // no experts: nothing follows
    Tensors before;
    double squares = 0.0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      before.push_back(run.parameters[i].to(at::kDouble));
      squares += gradients[i].to(at::kDouble).square().sum().item<double>();
    }
    CHECK_EQ(run.Update(outputs).item<double>(), doctest::Approx(std::sqrt(squares)).epsilon(1e-5));
    CHECK_EQ(run.state.step.item<float>(), 1.0F);

    const OptimizerConfig& o = config.optimizer;
    const double clip = std::min(1.0, max_norm / (std::sqrt(squares) + 1e-6));
    for (size_t i = 0; i < gradients.size(); ++i) {
      // In step 1 the bias corrections cancel: m / (1 - b1) is g, sqrt(v / (1 - b2)) is |g|.
      const Tensor g = gradients[i].to(at::kDouble) * clip;
      const Tensor expected =
          before[i] * (1.0 - o.lr * o.weight_decay) - o.lr * g / (g.abs() + o.eps);
      CHECK(at::allclose(run.parameters[i].to(at::kDouble), expected, 1e-5, 2e-7));
    }
  }
}

/// Compares what operators return with the types of the graph.
class CheckTypes final : public ExecutionObserver {
 public:
  CheckTypes(const Graph& graph, const Tensors& inputs)
      : graph_(graph), memory_(static_cast<size_t>(graph.value_bound())) {
    const std::vector<NodeId> placeholders = graph.placeholders();
    for (size_t i = 0; i < inputs.size(); ++i)
      Memory(graph.result(placeholders[i])) = inputs[i].const_data_ptr();
  }

  void OnStep(const PlanStep& step, std::span<const Tensor> results) override {
    INFO(graph_.name(step.node));
    REQUIRE_EQ(results.size(), graph_.node(step.node).num_results);
    for (size_t i = 0; i < results.size(); ++i) {
      const TypeId type = graph_.value(graph_.result(step.node, i)).type;
      REQUIRE_EQ(type.valid(), results[i].defined());
      if (!type.valid()) continue;
      CHECK_EQ(graph_.module().types().ToString(type), Describe(results[i]));
      const DimId offset = graph_.module().types()[type].dim;
      CHECK_EQ(offset.valid() ? *graph_.module().dims().AsConst(offset) : 0,
               results[i].storage_offset());
      CheckAlias(step.node, graph_.result(step.node, i), results[i]);
      ++checked;
    }
  }
  int checked = 0;

 private:
  /// As the IR prints types.
  static std::string Describe(const Tensor& tensor) {
    constexpr std::pair<at::ScalarType, std::string_view> kNames[] = {
        {at::kFloat, "f32"}, {at::kDouble, "f64"}, {at::kLong, "i64"},
        {at::kInt, "i32"},   {at::kBool, "b8"},    {at::kComplexFloat, "c64"}};
    for (const auto& [dtype, name] : kNames) {
      if (dtype == tensor.scalar_type()) {
        return fmt::format("{}{}{}cpu", name, c10::str(tensor.sizes()), c10::str(tensor.strides()));
      }
    }
    return c10::str(tensor.scalar_type());
  }

  /// Memory is shared with the value that the graph names, and else with no operand.
  void CheckAlias(NodeId node, ValueId value, const Tensor& result) {
    const void* memory = result.storage().data();
    Memory(value) = memory;
    if (const ValueId owner = graph_.value(value).alias_of; owner.valid()) {
      CHECK_EQ(memory, Memory(owner));
      return;
    }
    graph_.ForEachOperand(node, [&](ValueId operand) { CHECK_NE(memory, Memory(operand)); });
  }
  const void*& Memory(ValueId value) { return memory_[static_cast<size_t>(value.index)]; }

  const Graph& graph_;
  std::vector<const void*> memory_;  // by value: start of its storage
};

TEST_CASE("every result has the dtype, sizes, strides, offset and memory that the trace says") {
  for (const Case& c : kCases) {
    INFO(Title(c));
    const Eager run(Config(c.overrides, c.text));
    const Compiled compiled(run.config, "");
    const Tensors step_inputs = run.Inputs(0);
    CheckTypes step(*compiled.module.FindGraph(kStepGraph), step_inputs);
    const Tensors outputs = OrDie(compiled.Bind(kStepGraph).Run(step_inputs, &step));
    CHECK_GT(step.checked, 100);

    Tensors inputs = run.parameters;
    for (size_t i = 1; i <= run.parameters.size(); ++i)
      inputs.push_back(outputs[i].contiguous());
    for (const Tensors& group : {run.state.exp_avg, run.state.exp_avg_sq, run.buffers})
      inputs.insert(inputs.end(), group.begin(), group.end());
    inputs.insert(inputs.end(), outputs.end() - std::ssize(run.buffers), outputs.end());
    inputs.insert(inputs.end(), {run.state.step, run.state.lr});
    CheckTypes optimizer(*compiled.module.FindGraph(kOptimizerGraph), inputs);
    REQUIRE_OK(compiled.Bind(kOptimizerGraph).Run(inputs, &optimizer));
    CHECK_GT(optimizer.checked, 80);
  }
}

TEST_CASE("the traced graphs are sound, deterministic and fully labelled") {
  for (const Case& c : kCases) {
    INFO(Title(c));
    const TrainConfig config = Config(c.overrides, c.text);
    const Compiled compiled(config, "");
    const Module& module = compiled.module;
    CHECK_OK(Verify(module));
    CHECK_EQ(PrintText(module), PrintText(Compiled(config, "").module));
    CHECK(compiled.constants.empty());

    for (const std::string_view name : {kStepGraph, kOptimizerGraph}) {
      const Graph& graph = *module.FindGraph(name);
      for (const NodeId id : graph.nodes()) {
        const Node& node = graph.node(id);
        if (node.kind != NodeKind::kCall) continue;
        INFO(graph.name(id));
        CHECK_FALSE(module.str(node.module).empty());
        REQUIRE(node.loc.valid());
        CHECK_FALSE(module.str(module.loc(node.loc).code).empty());
        CHECK_NE(node.phase, Phase::kUnknown);
        CHECK_EQ(node.phase == Phase::kOptimizer, name == kOptimizerGraph);
      }
    }
  }
}

TEST_CASE("forward and backward of a product have the weight's path, one number, one line") {
  const Compiled compiled(Config({}), "");
  const Graph& graph = *compiled.module.FindGraph(kStepGraph);
  std::vector<int32_t> forward, backward;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (graph.op(id) != "aten.mm.default") continue;
    if (compiled.module.str(node.module) != "layers.1.attention.qkv_linear.wk") continue;
    (node.phase == Phase::kForward ? forward : backward).push_back(node.seq_nr);
    const SourceLoc& loc = compiled.module.loc(node.loc);
    CHECK_EQ(compiled.module.str(loc.file), "runtime/models/layers.cc");
    CHECK_EQ(compiled.module.str(loc.function), "GroupedQueryAttention");
    CHECK_EQ(compiled.module.str(loc.code), "Tensor k = heads(wk_(x));");
  }
  REQUIRE_EQ(forward.size(), 1);
  CHECK_EQ(backward, std::vector<int32_t>(2, forward[0]));
}

TEST_CASE("a run may go on eagerly, and back") {
  const TrainConfig config = Config({});
  const auto make = [&] {
    auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
    OrDie(trainer->Compile());
    return trainer;
  };
  const auto graphs = make(), mixed = make();
  for (int64_t step = 0; step < config.steps; ++step) {
    const StepReport expected = OrDie(graphs->Step());
    const StepReport actual = step % 2 == 0 ? OrDie(mixed->StepEagerly()) : OrDie(mixed->Step());
    CHECK_EQ(actual.metrics.step, expected.metrics.step);
    CHECK_EQ(actual.metrics.loss, expected.metrics.loss);
    CHECK_EQ(actual.metrics.grad_norm, expected.metrics.grad_norm);
    CHECK_EQ(actual.executed.empty(), step % 2 == 0);
  }
}

/// Rows of documents, made of a few words.
class Documents final : public DataSource {
 public:
  Documents(const TrainConfig& config, std::vector<int64_t> lengths)
      : config_(config), lengths_(std::move(lengths)) {}
  Result<std::optional<Batch>> Next() override {
    Batch batch{.rows = config_.batch_size, .tokens = {}, .labels = {}, .positions = {}};
    for (int64_t row = 0; row < config_.batch_size; ++row) {
      for (const int64_t length : lengths_) {
        for (int64_t i = 0; i < length; ++i) {
          batch.tokens.push_back((row + 3 * i + seen_) % config_.vocab_size);
          batch.labels.push_back(i % 4 == 3 ? kIgnoredLabel : (7 * i + row) % config_.vocab_size);
          batch.positions.push_back(i);
        }
      }
    }
    ++seen_;
    return std::optional(std::move(batch));
  }
  std::string Position() const override { return std::to_string(seen_); }
  Status Seek(std::string_view /*position*/) override { return Ok(); }

 private:
  TrainConfig config_;
  std::vector<int64_t> lengths_;
  int64_t seen_ = 0;
};

const std::string kAccumulate = "training.num_tokens_per_train_step=60";  // two batches
const std::string kBF16 = "training.mixed_precision_param=bfloat16";
const std::string kChunked = "loss.name=chunked_cross_entropy";

TEST_CASE("graphs of every way to train are eager training, bit for bit") {
  at::set_num_threads(1);
  const std::vector<Overrides> ways = {
      {kAccumulate},
      {kBF16},
      {kChunked, "loss.num_chunks=5"},
      {kChunked, "loss.num_chunks=2", kBF16, kAccumulate, "lr_scheduler.warmup_steps=2"},
      {"attn_mask_type=block_causal", "dataloader.dataset=text", "dataloader.dataset_path=x",
       kAccumulate, kBF16}};
  for (const std::string_view family : {kLlama3, kQwen3, kDeepSeekV3}) {
    for (const Overrides& way : ways) {
      INFO(Title({family, way}));
      const TrainConfig config = Config(way, family);
      const auto make = [&] {
        return OrDie(Trainer::Create(
            {.config = config,
             .data = std::make_unique<Documents>(config, std::vector<int64_t>{4, 1, 5})}));
      };
      const auto graphs = make(), eager = make();
      REQUIRE_OK(graphs->Compile());
      for (int64_t step = 0; step < config.steps; ++step) {
        const StepReport actual = OrDie(graphs->Step());
        const StepReport expected = OrDie(eager->StepEagerly());
        CHECK_EQ(actual.metrics.loss, expected.metrics.loss);
        CHECK_EQ(actual.metrics.grad_norm, expected.metrics.grad_norm);
        CHECK_EQ(actual.executed.size(), config.accumulation_steps > 1 ? 3U : 2U);
      }
      CHECK_OK(Verify(graphs->module()));
    }
  }
}

/// Largest difference of a loss or gradient, relative to the largest value of its tensor.
double WorstDifference(const Tensors& a, const Tensors& b) {
  REQUIRE_EQ(a.size(), b.size());
  double worst = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_floating_point()) continue;
    const double largest = b[i].abs().max().item<double>();
    worst = std::max(worst, (a[i] - b[i]).abs().max().item<double>() / (largest + 1e-30));
  }
  return worst;
}

TEST_CASE("a chunked loss is the loss, with its gradients, up to the order of sums") {
  at::set_num_threads(1);
  for (const std::string_view family : {kLlama3, kQwen3, kDeepSeekV3}) {
    Eager run(Config({}, family));
    const Tensors whole = run.LossAndGradients(0);
    run.config.loss = {.name = LossFunction::kChunkedCrossEntropy, .num_chunks = 5};
    CHECK_LT(WorstDifference(run.LossAndGradients(0), whole), 2e-6);
    run.config.loss.num_chunks = 1;
    CHECK_LT(WorstDifference(run.LossAndGradients(0), whole), 2e-6);
  }
}

TEST_CASE("two batches of a step are one batch of twice the size") {
  at::set_num_threads(1);
  // Without experts, whose counts would be sums of both as well.
  Eager run(Config({"batch_size=4"}));
  const Tensors whole = run.LossAndGradients(0);
  const Tensor tokens = run.Ids(0, 0), labels = run.Ids(0, 1);
  run.config.batch_size = 2;
  run.config.accumulation_steps = 2;
  const Tensor valid = at::scalar_tensor(static_cast<double>(labels.numel()));
  Tensors trained;
  for (const Tensor& parameter : run.parameters)
    trained.push_back(parameter.detach().requires_grad_(true));
  const auto half = [&](int64_t first) {
    return LossAndGradients(run.config,
                            {.parameters = trained, .buffers = {}, .rope_table = run.rope_table},
                            {.tokens = tokens.slice(0, first, first + 2).contiguous(),
                             .labels = labels.slice(0, first, first + 2).contiguous(),
                             .positions = {},
                             .valid_labels = valid});
  };
  const Tensors first = half(0), second = half(2);
  Tensors sums(first.begin() + 1, first.end());
  sums = Accumulate(run.config, sums, Tensors(second.begin() + 1, second.end()));
  sums.insert(sums.begin(), first[0] + second[0]);
  CHECK_LT(WorstDifference(sums, whole), 2e-6);
}

TEST_CASE("documents of one row see nothing of each other") {
  at::set_num_threads(1);
  for (const std::string_view family : {kLlama3, kQwen3, kDeepSeekV3}) {
    // A row of two documents of 5 tokens, against two rows of one.
    Eager run(Config({"batch_size=1", "seq_len=10"}, family));
    const Tensor tokens = run.Ids(0, 0), labels = run.Ids(0, 1);
    Tensors trained;
    for (const Tensor& parameter : run.parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const ModelTensors model{
        .parameters = trained, .buffers = run.buffers, .rope_table = run.rope_table};
    const Tensors apart = LossAndGradients(
        run.config, model, {.tokens = tokens.view({2, 5}), .labels = labels.view({2, 5})});
    run.config.attn_mask_type = AttentionMask::kBlockCausal;
    const Tensor positions = at::arange(10).remainder(5).view({1, 10});
    const Tensors packed = LossAndGradients(
        run.config, model, {.tokens = tokens, .labels = labels, .positions = positions});
    CHECK_LT(WorstDifference(packed, apart), 2e-6);
    // And they would, if nobody kept them apart.
    const Tensors mixed = LossAndGradients(
        run.config, model,
        {.tokens = tokens, .labels = labels, .positions = at::arange(10).view({1, 10})});
    CHECK_GT(WorstDifference(mixed, apart), 1e-3);
  }
}

TEST_CASE("bf16 computes in bf16, and keeps parameters, gradients and sums in fp32") {
  at::set_num_threads(1);
  for (const std::string_view family : {kLlama3, kQwen3, kDeepSeekV3}) {
    Eager run(Config({}, family));
    const Tensors exact = run.LossAndGradients(0);
    run.config.mixed_precision_param = Precision::kBFloat16;
    const Tensors narrow = run.LossAndGradients(0);
    for (size_t i = 0; i <= run.parameters.size(); ++i)
      CHECK((narrow[i].scalar_type() == at::kFloat));
    // bf16 has 8 bits: one rounding is up to 2^-9, and a loss of a few layers a few of them.
    CHECK_LT(WorstDifference({narrow[0]}, {exact[0]}), 0x1p-6);

    const Compiled compiled(run.config, "");
    const Graph& graph = *compiled.module.FindGraph(kStepGraph);
    int64_t products = 0;
    for (const NodeId node : graph.nodes()) {
      if (graph.op(node) != "aten.mm.default") continue;
      const Type& type = compiled.module.types()[graph.value(graph.result(node)).type];
      products += type.dtype == DType::kBF16 ? 1 : 0;
    }
    CHECK_GT(products, 20);
  }
}

TEST_CASE("a loss or norm that is no number ends the run") {
  const TrainConfig config = Config({"optimizer.lr=1e30"});
  const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
  REQUIRE_OK(trainer->Compile());
  REQUIRE_OK(trainer->Step());
  const Result<StepReport> second = trainer->Step();
  REQUIRE_FALSE(second);
  CHECK_EQ(second.error().message(),
           "gradient norm is nan: step 2: lower optimizer.lr, or look at the data of this step");
  CHECK_EQ(trainer->steps_done(), 1);
}

TEST_CASE("what runs has the fingerprint of the graphs that the passes left") {
  const TrainConfig config = Config({});
  const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
  REQUIRE_OK(trainer->Compile());
  const StepReport report = OrDie(trainer->Step());
  REQUIRE_EQ(report.executed.size(), 2);
  CHECK_EQ(report.executed[0].graph, kStepGraph);
  CHECK_EQ(report.executed[1].graph, kOptimizerGraph);
  for (const StepReport::Executed& executed : report.executed) {
    CHECK_EQ(executed.fingerprint, FingerprintOf(*trainer->module().FindGraph(executed.graph)));
  }
}

}  // namespace
}  // namespace strata
