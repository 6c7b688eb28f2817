#include "runtime/flex/flex_attention.h"

#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "passes/compile/fast_products.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_mods.h"
#include "passes/flex/flex_node.h"
#include "runtime/codegen/cuda_flex_source.h"
#include "runtime/codegen/nvrtc.h"
#include "runtime/exec/executor.h"
#include "runtime/files/tensor_io.h"
#include "runtime/trace/tracer.h"
#include "runtime/train/trainer.h"
#include "tests/support/cuda_emulator.h"
#include "tests/support/fake_device.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {

struct DeviceFunction {
  const testing::EmulatedCuda* code = nullptr;
  std::vector<std::pair<std::string, CudaLaunch>> launches;
};

namespace {

using at::Tensor;
using testing::kSmallDeepSeekV3;
using testing::kSmallLlama3;
using testing::kSmallQwen3;
using testing::OrDie;
using testing::Overrides;
using testing::SmallConfig;
using testing::Synthetic;
using testing::Tensors;

/// A GPU with the CPU's memory and operators, whose kernels of flex attention are emulated CUDA.
class EmulatedGpu final : public testing::FakeDevice {
 public:
  EmulatedGpu() { traits_ = {.name = "cpu", .is_gpu = true, .capability = 9.0, .cudnn = 91900}; }

  Result<std::vector<DeviceFunction*>> LoadFlex(std::span<const FlexKernel> kernels) override {
    const auto& code =
        code_.emplace_back(std::make_unique<testing::EmulatedCuda>(testing::Emulated(kernels)));
    std::vector<DeviceFunction*> loaded;
    for (size_t i = 0; i < kernels.size(); ++i) {
      auto function =
          std::make_unique<DeviceFunction>(DeviceFunction{.code = code.get(), .launches = {}});
      for (const CudaLaunch& launch : LaunchesOf(kernels[i])) {
        function->launches.emplace_back(fmt::format("{}_{}", i, function->launches.size()), launch);
      }
      loaded.push_back(function.get());
      functions_.push_back(std::move(function));
    }
    return loaded;
  }
  Status Launch(DeviceFunction* function, std::span<void* const> arguments) override {
    for (const auto& [name, launch] : function->launches)
      function->code->Launch(name, launch, arguments);
    return Ok();
  }

 private:
  std::vector<std::unique_ptr<testing::EmulatedCuda>> code_;
  std::vector<std::unique_ptr<DeviceFunction>> functions_;
};

/// Sizes and bodies of one attention, and what the bodies mean, on tensors that broadcast.
struct FlexCase {
  std::string name;
  std::string score_mod = std::string(kIdentityScoreMod), mask_mod = MaskModText({});
  std::function<Tensor(const Tensor& q, const Tensor& k)> mask =
      [](const Tensor& q, const Tensor& k) { return q.ge(k); };
  std::function<Tensor(const Tensor& s, const Tensor& h, const Tensor& q, const Tensor& k)> score =
      [](const Tensor& s, const Tensor&, const Tensor&, const Tensor&) { return s; };
  int64_t batch = 2, heads = 4, kv_heads = 2, seq = 37, width = 12, value_width = 12, block = 16;
  bool has_documents = false;
};

Tensor Documents(const FlexCase& c) {
  return (at::arange(c.seq).unsqueeze(0) + 5 * at::arange(c.batch).unsqueeze(1)).div(11, "floor");
}

std::vector<FlexCase> Cases() {
  std::vector<FlexCase> cases = {{.name = "causal"}};
  cases.push_back({.name = "one head"});
  // A value of another width, and rows of one block.
  cases.back().heads = cases.back().kv_heads = 1;
  cases.back().seq = 9;
  cases.back().value_width = 20;
  // Several threads of a GPU share a row.
  cases.push_back({.name = "wide heads"});
  cases.back().heads = 2;
  cases.back().kv_heads = 1;
  cases.back().width = 40;
  cases.back().value_width = 24;
  cases.push_back({.name = "window", .mask_mod = MaskModText({.window = 5})});
  cases.back().mask = [](const Tensor& q, const Tensor& k) { return q.ge(k) & (q - k).lt(5); };
  cases.push_back({.name = "prefix", .mask_mod = MaskModText({.prefix = 20})});
  cases.back().mask = [](const Tensor& q, const Tensor& k) { return q.ge(k) | k.lt(20); };
  cases.push_back({.name = "documents", .mask_mod = MaskModText({.has_documents = true})});
  cases.back().has_documents = true;
  cases.push_back({.name = "soft cap", .score_mod = ScoreModText({.soft_cap = 2.0})});
  cases.back().score = [](const Tensor& s, const Tensor&, const Tensor&, const Tensor&) {
    return (s / 2.0).tanh() * 2.0;
  };
  cases.push_back({.name = "alibi", .score_mod = ScoreModText({.alibi_heads = 4})});
  cases.back().score = [](const Tensor& s, const Tensor& h, const Tensor& q, const Tensor& k) {
    return s + (k - q) * at::exp2((h + 1) * -2.0);
  };
  cases.push_back({.name = "alibi of two", .score_mod = ScoreModText({.alibi_heads = 2})});
  cases.back().score = [](const Tensor& s, const Tensor& h, const Tensor& q, const Tensor& k) {
    return s + (k - q) * at::exp2((h + 1) * -4.0);
  };
  cases.push_back({.name = "of a user", .score_mod = R"(class score_mod(torch.nn.Module):
    def forward(self, score, b, h, q_idx, kv_idx):
        remainder = torch.ops.aten.remainder.Scalar(kv_idx, 2)
        is_even = torch.ops.aten.eq.Scalar(remainder, 0)
        square = torch.ops.aten.mul.Tensor(score, score)
        sigmoid = torch.ops.aten.sigmoid.default(square)
        maximum = torch.ops.aten.maximum.default(score, sigmoid)
        where = torch.ops.aten.where.self(is_even, score, maximum)
        return where
)"});
  cases.back().score = [](const Tensor& s, const Tensor&, const Tensor&, const Tensor& k) {
    return at::where(k.remainder(2).eq(0), s, at::maximum(s, (s * s).sigmoid()));
  };
  cases.push_back({.name = "rows that see nothing", .mask_mod = R"(class f(torch.nn.Module):
    def forward(self, b, h, q_idx, kv_idx):
        floor_divide = torch.ops.aten.floor_divide.Scalar(q_idx, 7)
        ne = torch.ops.aten.ne.Scalar(floor_divide, 2)
        gt = torch.ops.aten.gt.Tensor(q_idx, kv_idx)
        and_1 = torch.ops.aten.bitwise_and.Tensor(ne, gt)
        return and_1
)"});
  cases.back().mask = [](const Tensor& q, const Tensor& k) {
    return q.gt(k) & q.div(7, "floor").ne(2);
  };
  return cases;
}

/// Query, key, value and the gradient of the result, `[batch, seq, heads, width]`; documents.
Tensors InputsOf(const FlexCase& c, at::ScalarType type) {
  at::manual_seed(7);
  const auto random = [&](int64_t heads, int64_t width) {
    return at::randn({c.batch, c.seq, heads, width}).to(type);
  };
  Tensors inputs = {random(c.heads, c.width), random(c.kv_heads, c.width),
                    random(c.kv_heads, c.value_width), random(c.heads, c.value_width)};
  if (c.has_documents) inputs.push_back(Documents(c));
  return inputs;
}

constexpr double kScale = 0.3;

/// Result and gradients, by the operators under test.
Tensors Attend(const FlexCase& c, std::span<const Tensor> inputs) {
  FlexMask mask{.score_mod = c.score_mod,
                .mask_mod = c.mask_mod,
                .score_buffers = {},
                .mask_buffers = {},
                .block_size = c.block,
                .blocks = {}};
  if (c.has_documents) mask.mask_buffers = {inputs[4]};
  mask.blocks = MakeBlockMask(mask, c.batch, c.heads, c.seq, inputs[0].device());
  const auto heads_first = [](const Tensor& x) { return x.transpose(1, 2); };
  const Tensor out = FlexAttention(heads_first(inputs[0]), heads_first(inputs[1]),
                                   heads_first(inputs[2]), mask, kScale);
  Tensors results = {out};
  for (const Tensor& gradient :
       torch::autograd::grad({out}, {inputs[0], inputs[1], inputs[2]}, {heads_first(inputs[3])}))
    results.push_back(gradient);
  return results;
}

/// The same by the definition, in double, with autograd's derivatives.
Tensors AttendByDefinition(const FlexCase& c, const Tensors& given) {
  Tensors inputs;
  for (size_t i = 0; i < 4; ++i)
    inputs.push_back(given[i].to(at::kDouble).requires_grad_(i < 3));
  const auto shared = [&](const Tensor& x) {
    return x.transpose(1, 2).repeat_interleave(c.heads / c.kv_heads, 1);
  };
  const Tensor h = at::arange(c.heads).view({-1, 1, 1}), q = at::arange(c.seq).view({-1, 1}),
               k = at::arange(c.seq);
  Tensor mask = c.mask(q, k).expand({c.batch, c.heads, c.seq, c.seq});
  if (c.has_documents) mask = mask & given[4].unsqueeze(2).eq(given[4].unsqueeze(1)).unsqueeze(1);
  const Tensor raw =
      at::matmul(inputs[0].transpose(1, 2), shared(inputs[1]).transpose(-2, -1)) * kScale;
  const Tensor scores = at::where(mask, c.score(raw, h, q, k), at::Scalar(-1e30));
  const Tensor weights = at::where(mask, scores.softmax(-1), at::Scalar(0.0));
  const Tensor out = at::matmul(weights, shared(inputs[2]));
  Tensors results = {out};
  for (const Tensor& gradient :
       torch::autograd::grad({out}, {inputs[0], inputs[1], inputs[2]}, {inputs[3].transpose(1, 2)}))
    results.push_back(gradient);
  return results;
}

double WorstError(const Tensors& actual, const Tensors& expected) {
  double worst = 0.0;
  REQUIRE_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    REQUIRE_EQ(actual[i].sizes(), expected[i].sizes());
    const double scale = std::max(1.0, expected[i].abs().max().item<double>());
    const double error =
        (actual[i].detach().to(at::kDouble) - expected[i].detach()).abs().max().item<double>();
    worst = std::max(worst, std::isnan(error) ? 1e30 : error / scale);
  }
  return worst;
}

/// Graph "g" of `Attend`.
struct TracedCase {
  Module module;
  Constants constants;

  TracedCase(const FlexCase& c, const Tensors& inputs) {
    TraceRequest request{
        .graph = "g", .inputs = {}, .program = [&c](std::span<const Tensor> given) {
          return Attend(c, given);
        }};
    constexpr std::string_view kNames[] = {"q", "k", "v", "grad", "documents"};
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor example = at::empty(inputs[i].sizes(), inputs[i].options().device(at::kMeta));
      request.inputs.push_back(
          {.name = std::string(kNames[i]), .module = {}, .example = example.requires_grad_(i < 3)});
    }
    OrDie(Trace(module, request, constants));
    OrDie(Verify(module));
  }

  const Graph& graph() const { return *module.FindGraph("g"); }

  Tensors Run(const PlanOptions& options, const Tensors& inputs) const {
    EmulatedGpu gpu;
    Device* const device = options.on_gpu ? &gpu : nullptr;
    Executor executor =
        OrDie(Executor::Bind(OrDie(Lower(graph(), options)), constants, {}, device));
    OrDie(executor.Run(inputs));  // the second run may not depend on what the first one left
    Tensors outputs;
    for (const Tensor& output : OrDie(executor.Run(inputs)))
      outputs.push_back(output.clone());
    return outputs;
  }
};

const PlanOptions kOperators = {};
PlanOptions Kernels() {
  return PlanOptions::Fastest();
}

PlanOptions GpuKernels() {
  return {.on_gpu = true};
}

/// The kernels of a plan for a GPU, which NVRTC compiles where it is.
std::vector<FlexKernel> CheckedGpuKernels(const Graph& graph) {
  const Plan plan = OrDie(Lower(graph, GpuKernels()));
  const std::span<const FlexKernel> kernels = plan.flex_kernels.values();
  for (const int32_t arch : {80, 90, 100}) {
    const auto image = CompileCudaSource(CudaFlexSource(kernels), arch);
    if (!image && image.error().code() == ErrorCode::kNotFound) {
      MESSAGE("not compiled: ", image.error().message());
      break;
    }
    CHECK_OK(image);
  }
  return {kernels.begin(), kernels.end()};
}

TEST_CASE("operators and kernels of flex attention compute its definition and gradients") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double tolerance = type == at::kFloat ? 2e-6 : 3e-2;
    for (const FlexCase& c : Cases()) {
      CAPTURE(c.name);
      const Tensors inputs = InputsOf(c, type);
      const Tensors expected = AttendByDefinition(c, inputs);
      const TracedCase traced(c, inputs);
      CHECK_LT(WorstError(traced.Run(kOperators, inputs), expected), tolerance);
      const Plan plan = OrDie(Lower(traced.graph(), Kernels()));
      CHECK_EQ(plan.flex_kernels.size(), 3);
      CHECK_LT(WorstError(traced.Run(Kernels(), inputs), expected), tolerance);
      if (type == at::kBFloat16) continue;  // the references have it
      CHECK_EQ(CheckedGpuKernels(traced.graph()).size(), 3);
      CHECK_LT(WorstError(traced.Run(GpuKernels(), inputs), expected), tolerance);
    }
  }
}

TEST_CASE(
    "causal attention of ATen with fast numerics takes kernels that give the same in rounding") {
  const auto module = testing::ParseBody(R"(
  q = placeholder : f32[2, 3, 200, 24][14400, 24, 72, 1]cpu
  k = placeholder : f32[2, 3, 200, 24][14400, 24, 72, 1]cpu
  v = placeholder : f32[2, 3, 200, 24][14400, 24, 72, 1]cpu
  g = placeholder : f32[2, 3, 200, 24][14400, 4800, 24, 1]cpu
  (out, sums) = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, 0.0, True, scale=0.3) as attention : (f32[2, 3, 200, 24][14400, 24, 72, 1]cpu, f32[2, 3, 200][600, 1, 3]cpu)
  (dq, dk, dv) = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(g, q, k, v, out, sums, 0.0, True, scale=0.3) as backward : (f32[2, 3, 200, 24][14400, 24, 72, 1]cpu, f32[2, 3, 200, 24][14400, 24, 72, 1]cpu, f32[2, 3, 200, 24][14400, 24, 72, 1]cpu)
  output([out, sums, dq, dk, dv])
)");
  Graph& graph = *module->FindGraph("g");
  Tensors inputs;
  for (int i = 0; i < 3; ++i)
    inputs.push_back(at::randn({2, 200, 3, 24}).transpose(1, 2));
  inputs.push_back(at::randn({2, 3, 200, 24}));
  const auto run = [&](const PlanOptions& options) {
    Executor executor = OrDie(Executor::Bind(OrDie(Lower(graph, options)), {}));
    Tensors outputs;
    for (const Tensor& output : OrDie(executor.Run(inputs)))
      outputs.push_back(output.clone());
    return outputs;
  };
  const Plan exact = OrDie(Lower(graph, Kernels()));
  CHECK(exact.flex_kernels.empty());
  Tensors expected = run(Kernels());
  for (Tensor& tensor : expected)
    tensor = tensor.to(at::kDouble);
  REQUIRE(MarkFastProducts(graph));
  const Plan fast = OrDie(Lower(graph, Kernels()));
  if (fast.flex_kernels.empty()) return;  // ATen's are the faster ones on this processor
  CHECK_EQ(fast.flex_kernels.size(), 2);
  CHECK(fast.fingerprint() != exact.fingerprint());
  CHECK_LT(WorstError(run(Kernels()), expected), 2e-6);
  CHECK_LT(WorstError(run(kOperators), expected), 1e-30);  // these are ATen's
}

/// A case with the sizes, inputs, results and gradients that PyTorch computed. See
/// tests/data/flex/make_reference.py.
struct ReferenceCase {
  FlexCase c;
  at::ScalarType type;
  Tensors inputs, expected;
};

std::vector<ReferenceCase> ReferenceCases() {
  const NamedTensors tensors = OrDie(LoadTensors("tests/data/flex/reference.safetensors"));
  std::vector<ReferenceCase> cases;
  for (FlexCase& c : Cases()) {
    const std::string sizes = tensors.contains(c.name + "/q") ? c.name : "main";
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const std::string results = c.name + (type == at::kFloat ? "/float/" : "/bfloat16/");
      if (!tensors.contains(results + "out")) continue;
      ReferenceCase reference{.c = c, .type = type, .inputs = {}, .expected = {}};
      for (const char* const input : {"/q", "/k", "/v", "/grad"})
        reference.inputs.push_back(tensors.at(sizes + input).to(type));
      for (const char* const result : {"out", "q", "k", "v"})
        reference.expected.push_back(tensors.at(results + result));
      reference.c.batch = reference.inputs[0].size(0);
      reference.c.seq = reference.inputs[0].size(1);
      reference.c.width = reference.inputs[0].size(3);
      reference.c.value_width = reference.inputs[2].size(3);
      if (c.has_documents) reference.inputs.push_back(Documents(reference.c));
      cases.push_back(std::move(reference));
    }
  }
  return cases;
}

TEST_CASE("operators and kernels of flex attention compute what PyTorch computes") {
  const std::vector<ReferenceCase> cases = ReferenceCases();
  REQUIRE_EQ(cases.size(), 12);
  for (const ReferenceCase& reference : cases) {
    CAPTURE(reference.c.name);
    CAPTURE(at::toString(reference.type));
    // Both sides are rounded to the type: twice the tolerance against the definition in double.
    const double tolerance = reference.type == at::kFloat ? 4e-6 : 6e-2;
    const TracedCase traced(reference.c, reference.inputs);
    for (const PlanOptions& options : {kOperators, Kernels(), GpuKernels()})
      CHECK_LT(WorstError(traced.Run(options, reference.inputs), reference.expected), tolerance);
  }
}

TEST_CASE("attention over long rows has kernels on a GPU; on a CPU they need too much memory") {
  FlexCase c{.name = "long rows"};
  c.batch = c.kv_heads = 1;
  c.heads = 16;
  c.seq = 300'000;
  c.block = 128;
  const auto on_meta = [&](int64_t heads) {
    return at::empty({c.batch, c.seq, heads, c.width}, at::TensorOptions(at::kMeta));
  };
  const TracedCase traced(c, {on_meta(16), on_meta(1), on_meta(1), on_meta(16)});
  CHECK_EQ(OrDie(Lower(traced.graph(), Kernels())).flex_kernels.size(), 1);  // the block mask
  CHECK_EQ(OrDie(Lower(traced.graph(), GpuKernels())).flex_kernels.size(), 3);
}

TEST_CASE("kernels give the same bits with any number of threads") {
  const int threads = at::get_num_threads();
  FlexCase c{.name = "causal"};
  c.seq = 300;
  const Tensors inputs = InputsOf(c, at::kFloat);
  const TracedCase traced(c, inputs);
  at::set_num_threads(1);
  const Tensors one = traced.Run(Kernels(), inputs);
  at::set_num_threads(3);
  const Tensors three = traced.Run(Kernels(), inputs);
  at::set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i)
    CHECK(at::equal(one[i], three[i]));
}

TEST_CASE("a block mask lists partial and full blocks of rows and of columns") {
  const FlexMask mask{.score_mod = {},
                      .mask_mod = MaskModText({}),
                      .score_buffers = {},
                      .mask_buffers = {},
                      .block_size = 4,
                      .blocks = {}};
  // Ten queries: three blocks, of which the last is not whole, and so never full.
  const Tensors blocks = MakeBlockMask(mask, 2, 3, 10, at::kCPU);
  REQUIRE_EQ(blocks.size(), kNumBlockTensors);
  const auto numbers = [](const Tensor& x) {
    return std::vector<int32_t>(x.data_ptr<int32_t>(), x.data_ptr<int32_t>() + x.numel());
  };
  using Numbers = std::vector<int32_t>;
  CHECK_EQ(blocks[0].sizes(), at::IntArrayRef({1, 1, 3}));
  CHECK_EQ(numbers(blocks[0]), Numbers{1, 1, 3});
  CHECK_EQ(numbers(blocks[1]), Numbers{0, 1, 2, 1, 0, 2, 0, 1, 2});
  CHECK_EQ(numbers(blocks[2]), Numbers{0, 1, 0});
  CHECK_EQ(numbers(blocks[3]), Numbers{0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK_EQ(numbers(blocks[4]), Numbers{2, 2, 1});
  CHECK_EQ(numbers(blocks[6]), Numbers{1, 0, 0});
}

TEST_CASE("a traced attention is PyTorch's higher-order operator over bodies of the module") {
  const FlexCase c{.name = "causal"};
  const TracedCase traced(c, InputsOf(c, at::kFloat));
  std::vector<std::string> ops;
  for (const NodeId node : traced.graph().nodes()) {
    if (!IsFlexOp(traced.graph().op(node))) continue;
    ops.emplace_back(traced.graph().op(node));
    const FlexNode flex = OrDie(ReadFlexNode(traced.graph(), node));
    CHECK_EQ(traced.module.graph(flex.score_mod).name_text(), "score_mod_0");
    CHECK_EQ(traced.module.graph(flex.mask_mod).name_text(), "mask_mod_0");
    CHECK_EQ(flex.scale, kScale);
    if (flex.is_backward)
      CHECK_EQ(traced.module.graph(flex.joint_graph).name_text(), "joint_graph_0");
  }
  CHECK_EQ(ops, std::vector<std::string>{"higher_order.flex_attention",
                                         "higher_order.flex_attention_backward"});
}

TEST_CASE("the kernel of a block mask gives the bits of the operator") {
  FlexCase c{.name = "documents", .mask_mod = MaskModText({.window = 20, .has_documents = true})};
  c.seq = 75;
  const Tensor documents = Documents(c);
  Module module;
  Constants constants;
  TraceRequest request{.graph = "g", .inputs = {}, .program = [&c](std::span<const Tensor> given) {
                         const FlexMask mask{.score_mod = {},
                                             .mask_mod = c.mask_mod,
                                             .score_buffers = {},
                                             .mask_buffers = {given[0]},
                                             .block_size = 16,
                                             .blocks = {}};
                         return MakeBlockMask(mask, c.batch, c.heads, c.seq, given[0].device());
                       }};
  request.inputs.push_back(
      {.name = "documents",
       .module = {},
       .example = at::empty(documents.sizes(), documents.options().device(at::kMeta))});
  OrDie(Trace(module, request, constants));
  EmulatedGpu gpu;
  const auto run = [&](const PlanOptions& options) {
    Device* const device = options.on_gpu ? &gpu : nullptr;
    Executor executor =
        OrDie(Executor::Bind(OrDie(Lower(*module.FindGraph("g"), options)), constants, {}, device));
    Tensors outputs;
    for (const Tensor& output : OrDie(executor.Run(std::span(&documents, 1))))
      outputs.push_back(output.clone());
    return outputs;
  };
  const Tensors expected = run(kOperators), actual = run(Kernels()), of_gpu = run(GpuKernels());
  REQUIRE_EQ(actual.size(), kNumBlockTensors);
  REQUIRE_EQ(of_gpu.size(), kNumBlockTensors);
  CHECK_EQ(expected[0].size(0), c.batch);
  CHECK_LT(0, expected[0].sum().item<int64_t>() + expected[2].sum().item<int64_t>());
  for (size_t i = 0; i < actual.size(); ++i)
    CHECK((at::equal(actual[i], expected[i]) && at::equal(of_gpu[i], expected[i])));
}

/// Losses of a training by graphs with kernels.
std::vector<double> LossesOf(std::string_view model, Overrides overrides) {
  const TrainConfig config = SmallConfig(model, overrides);
  const auto trainer = OrDie(Trainer::Create({.config = config, .data = Synthetic(config)}));
  OrDie(trainer->Compile());
  std::vector<double> losses;
  for (int64_t step = 0; step < config.steps; ++step)
    losses.push_back(OrDie(trainer->Step()).metrics.loss);
  return losses;
}

TEST_CASE("models train with flex attention as with sdpa, within 1e-5 of the loss") {
  for (const std::string_view model : {kSmallLlama3, kSmallQwen3, kSmallDeepSeekV3}) {
    CAPTURE(model);
    const Overrides sizes = {"seq_len=40", "steps=6"};
    Overrides with_flex = sizes;
    with_flex.insert(with_flex.end(), {"attn_type=flex", "flex.block_size=16"});
    const std::vector<double> expected = LossesOf(model, sizes),
                              actual = LossesOf(model, with_flex);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK_EQ(actual[i], doctest::Approx(expected[i]).epsilon(1e-5));
    with_flex.emplace_back("flex.window=3");
    CHECK_NE(LossesOf(model, with_flex), actual);
  }
}

TEST_CASE("packed documents give the loss and the gradients of sdpa with their mask") {
  const Overrides documents = {"attn_mask_type=block_causal", "dataloader.dataset=text",
                               "dataloader.dataset_path=x", "seq_len=24"};
  Overrides with_flex = documents;
  with_flex.insert(with_flex.end(), {"attn_type=flex", "flex.block_size=8"});
  const auto run = [](const Overrides& overrides) {
    const TrainConfig config = SmallConfig(kSmallLlama3, overrides);
    const ModelSpecs specs = SpecsOf(config);
    Tensors parameters;
    for (const ParameterSpec& spec : specs.parameters) {
      Tensor value = at::empty(spec.shape);
      InitializeParameter(spec, config.seed,
                          {value.data_ptr<float>(), static_cast<size_t>(value.numel())});
      parameters.push_back(value.requires_grad_(true));
    }
    const Tensor ids =
        at::arange(config.batch_size * config.seq_len).view({config.batch_size, config.seq_len});
    const ModelTensors model{
        .parameters = parameters, .buffers = {}, .rope_table = RopeTable(config)};
    return LossAndGradients(TrainSpec(config), model,
                            {.tokens = ids.remainder(config.vocab_size),
                             .labels = (ids * 7).remainder(config.vocab_size),
                             .positions = ids.remainder(9)});
  };
  CHECK_LT(WorstError(run(with_flex), run(documents)), 1e-5);
  CHECK_LT(1e-3, WorstError(run({"attn_type=flex", "seq_len=24"}), run(documents)));
}

}  // namespace
}  // namespace strata
