// Training as planned for a GPU: its graphs, kernels and results, on a fake device whose attention
// and norms are the CPU's.

#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "passes/compile/cuda_graph.h"
#include "passes/core/pass_manager.h"
#include "passes/core/registry.h"
#include "passes/passes.h"
#include "runtime/aten/literals.h"
#include "runtime/codegen/nvrtc.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/step/memory_meter.h"
#include "runtime/models/layers.h"
#include "runtime/plan/plan.h"
#include "runtime/trace/scope.h"
#include "runtime/train/programs/trace_programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/cuda_emulator.h"
#include "tests/support/fake_cpu_device.h"
#include "tests/support/graphs.h"
#include "tests/support/replaying_fake_device.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/runtime/gpu_operators_on_cpu.h"

namespace strata {
namespace {

using at::Tensor;
using testing::FakeCpuDevice;
using testing::kSmallDeepSeekV3;
using testing::kSmallLlama3;
using testing::kSmallQwen3;
using testing::OrDie;
using testing::RegisterGpuOperatorsOnCpu;
using testing::ReplayingFakeDevice;
using Overrides = std::vector<std::string>;

// --- Configurations
// ---------------------------------------------------------------------------------

struct DeviceCase {
  std::string_view name, text;
  Overrides overrides;
  std::string_view attention;
};

constexpr std::string_view kHalf = "training.mixed_precision_param=bfloat16";

const std::vector<DeviceCase> kDeviceCases = {
    {"Llama3, fp32", kSmallLlama3, {}, "efficient"},
    {"Llama3, bf16, grouped heads", kSmallLlama3, {std::string(kHalf)}, "flash"},
    {"Llama3, bf16", kSmallLlama3, {std::string(kHalf), "n_kv_heads=4"}, "cudnn"},
    {"Llama3, accumulated, not clipped",
     kSmallLlama3,
     {"training.num_tokens_per_train_step=60", "optimizer.max_grad_norm=null"},
     "efficient"},
    {"Qwen3, fp32", kSmallQwen3, {}, "efficient"},
    // Heads of 10: kernels that want multiples of 8 get them padded.
    {"DeepSeek-V3, fp32", kSmallDeepSeekV3, {"mla.qk_nope_head_dim=6"}, "efficient"},
    // Heads of 8 whose values begin at the sixth element of a projection.
    {"DeepSeek-V3, values between keys",
     kSmallDeepSeekV3,
     {"mla.qk_nope_head_dim=6", "mla.qk_rope_head_dim=2"},
     "efficient"},
};

TrainConfig ConfigOfCase(const DeviceCase& c) {
  return testing::SmallConfig(c.text, c.overrides);
}

DeviceTraits Gpu(std::string name) {
  return {.name = std::move(name), .is_gpu = true, .capability = 9.0, .cudnn = 91900};
}

/// The graphs of a training on a GPU, after passes.
std::unique_ptr<Module> TraceForGpu(const TrainConfig& config, std::string_view passes) {
  auto module = std::make_unique<Module>();
  Constants constants;
  const TargetScope target(Gpu("cuda:0"));
  OrDie(TraceTraining(TrainSpec(config), *module, constants));
  PassManager manager;
  for (auto& pass : OrDie(ParsePipeline(passes, AllPasses())))
    manager.Add(std::move(pass));
  OrDie(manager.Run(*module));
  return module;
}

std::multiset<std::string> OpsOf(const Graph& graph) {
  std::multiset<std::string> ops;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind == NodeKind::kCall) ops.emplace(graph.op(node));
  }
  return ops;
}

// --- Tests
// -----------------------------------------------------------------------------------------

TEST_CASE("attention, norms and the optimizer's update are a GPU's operators, all of it there") {
  for (const DeviceCase& c : kDeviceCases) {
    INFO(c.name);
    const TrainConfig config = ConfigOfCase(c);
    const auto module = TraceForGpu(config, kDefaultPasses);
    const Graph& step = *module->FindGraph(kStepGraph);
    const std::multiset<std::string> ops = OpsOf(step);
    const std::string attention = fmt::format("aten._scaled_dot_product_{}_attention", c.attention);
    const auto layers = static_cast<size_t>(config.n_layers);
    CHECK_EQ(ops.count(attention + ".default"), layers);
    CHECK_EQ(ops.count(attention + "_backward.default"), layers);
    CHECK_EQ(ops.count("aten._fused_rms_norm.default"),
             ops.count("aten._fused_rms_norm_backward.default"));
    CHECK(ops.count("aten._fused_rms_norm.default") >= 2 * layers + 1);
    CHECK_EQ(ops.count("aten.rsqrt.default"), 0);
    const Graph& optimizer = *module->FindGraph(kOptimizerGraph);
    CHECK_EQ(OpsOf(optimizer).count("aten._fused_adamw_.tensor_lr"), 1);

    for (const GraphId id : module->programs()) {
      for (const PlanSlot& slot : OrDie(Lower(module->graph(id))).slots) {
        INFO(slot.name, ": ", slot.type);
        CHECK((slot.type.empty() || slot.type.ends_with("cuda:0")));
      }
    }
  }
}

TEST_CASE("dense models can be captured whole; grouped products say why not") {
  for (const DeviceCase& c : kDeviceCases) {
    INFO(c.name);
    const auto module =
        TraceForGpu(ConfigOfCase(c), "dce,canonicalize,place-casts,fuse,cuda-graph");
    const Graph& step = *module->FindGraph(kStepGraph);
    const std::string_view obstacle = step.attribute(step.output(), "no_cuda_graph");
    if (c.text == kSmallDeepSeekV3) {
      CHECK(obstacle.ends_with("a grouped product may read its offsets on the host"));
    } else {
      CHECK_EQ(obstacle, "");
      CHECK(OrDie(Lower(step)).capture == Capture::kWhole);
    }
    CHECK(OrDie(Lower(*module->FindGraph(kOptimizerGraph))).capture == Capture::kWhole);
  }
}

/// Output and gradients of attention, made for a target.
std::vector<Tensor> AttendFor(const DeviceTraits& traits, at::ScalarType type, int64_t kv_heads,
                              int64_t value_width, const Tensor& mask) {
  const TargetScope target(traits);
  at::manual_seed(3);
  const auto random = [&](int64_t heads, int64_t width) {
    return at::randn({2, 10, heads, width}).to(type).requires_grad_(true);
  };
  const Tensor q = random(4, 12), k = random(kv_heads, 12), v = random(kv_heads, value_width);
  const Tensor out = Attention("attention", q, k, v, 0.3, mask.defined() ? mask.to(type) : mask);
  std::vector<Tensor> results = {out.detach()};
  const Tensor weights = at::randn(out.sizes()).to(type);
  for (const Tensor& gradient : torch::autograd::grad({(out * weights).sum()}, {q, k, v}))
    results.push_back(gradient);
  return results;
}

TEST_CASE("attention of a GPU, padded, with groups and masks, is the CPU's") {
  RegisterGpuOperatorsOnCpu();
  // Two documents: rows of one see nothing of the other.
  const Tensor document = at::arange(10).ge(4);
  const Tensor sees = document.unsqueeze(1).eq(document) & at::ones({10, 10}, at::kBool).tril();
  const Tensor mask =
      at::zeros({2, 1, 10, 10})
          .masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity());
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t kv_heads : {4, 2, 1}) {
      for (const int64_t value_width : {12, 8}) {
        for (const Tensor& each : {Tensor(), mask}) {
          INFO(kv_heads, " heads of keys, values of width ", value_width, ", mask ", each.defined(),
               ", bf16 ", type == at::kBFloat16);
          const auto expected = AttendFor(DeviceTraits(), type, kv_heads, value_width, each);
          const auto actual =
              AttendFor(FakeCpuDevice(true).traits(), type, kv_heads, value_width, each);
          for (size_t i = 0; i < expected.size(); ++i) {
            INFO("result ", i);
            const double tolerance = type == at::kFloat ? 1e-5 : 5e-2;
            CHECK(at::allclose(actual[i].to(at::kFloat), expected[i].to(at::kFloat), tolerance,
                               tolerance));
          }
        }
      }
    }
  }
}

/// Losses and gradient norms.
std::vector<double> LossesOf(const TrainConfig& config, std::string_view passes,
                             std::unique_ptr<Device> device) {
  auto trainer = OrDie(Trainer::Create({.config = config,
                                        .data = MakeTokenSource(TokenData::Synthetic(config)),
                                        .passes = std::string(passes),
                                        .device = std::move(device)}));
  OrDie(trainer->Compile());
  CHECK(trainer->warnings().empty());
  std::vector<double> numbers;
  while (OrDie(trainer->HasNext())) {
    const StepReport report = OrDie(trainer->Step());
    numbers.push_back(report.metrics.loss);
    numbers.push_back(report.metrics.grad_norm);
  }
  return numbers;
}

TEST_CASE("what is made for a GPU trains like the CPU's, with kernels and without") {
  RegisterGpuOperatorsOnCpu();
  for (const DeviceCase& c : kDeviceCases) {
    INFO(c.name);
    const TrainConfig config = ConfigOfCase(c);
    const bool is_half = config.mixed_precision_param == Precision::kBFloat16;
    const std::vector<double> expected = LossesOf(config, kDefaultPasses, nullptr);
    for (const char* passes : {"dce,canonicalize", "dce,canonicalize,fuse"}) {
      INFO(passes);
      const std::vector<double> actual =
          LossesOf(config, passes, std::make_unique<FakeCpuDevice>(/*is_gpu=*/true));
      REQUIRE_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        INFO("number ", i);
        CHECK(std::isfinite(actual[i]));
        CHECK(std::abs(actual[i] - expected[i]) <= (is_half ? 3e-2 : 3e-5) * std::abs(expected[i]));
      }
    }
  }
}

TEST_CASE("flex attention of a GPU trains like the CPU's, in streams and in replayed graphs") {
  RegisterGpuOperatorsOnCpu();
  const DeviceCase window{
      "flex",
      kSmallLlama3,
      {"attn_type=flex", "flex.window=5", "flex.soft_cap=2", "flex.block_size=4"},
      ""};
  const TrainConfig config = ConfigOfCase(window);
  const std::vector<double> expected = LossesOf(config, kDefaultPasses, nullptr);
  const std::vector<double> streams =
      LossesOf(config, "dce,canonicalize,fuse", std::make_unique<FakeCpuDevice>(true));
  REQUIRE_EQ(streams.size(), expected.size());
  for (size_t i = 0; i < streams.size(); ++i)
    CHECK(std::abs(streams[i] - expected[i]) <= 3e-5 * std::abs(expected[i]));
  const std::vector<double> replayed =
      LossesOf(config, "dce,canonicalize,place-casts,fuse,cuda-graph{force=true}",
               std::make_unique<ReplayingFakeDevice>(true));
  CHECK_EQ(replayed, streams);
}

struct OtherCapability : FakeCpuDevice {
  OtherCapability() : FakeCpuDevice(/*is_gpu=*/true) { traits_.capability = 8.0; }
};

TEST_CASE("graphs for a GPU are stored, loaded with the same results, and of its capability") {
  RegisterGpuOperatorsOnCpu();
  const testing::TempDir folder;
  TrainConfig config = ConfigOfCase(kDeviceCases[0]);
  config.compile.precompile_artifact_dir = folder / "artifact";
  const std::string passes = "dce,canonicalize,fuse";
  const auto losses = [&] {
    return LossesOf(config, passes, std::make_unique<FakeCpuDevice>(/*is_gpu=*/true));
  };
  const std::vector<double> made = losses();
  CHECK(std::filesystem::exists(folder / "artifact/graphs.safetensors"));
  CHECK_EQ(losses(), made);
  const auto warnings_on = [&](std::unique_ptr<Device> device) {
    auto trainer = OrDie(Trainer::Create({.config = config,
                                          .data = MakeTokenSource(TokenData::Synthetic(config)),
                                          .passes = passes,
                                          .device = std::move(device)}));
    OrDie(trainer->Compile());
    return trainer->warnings();
  };
  const std::vector<std::string> other = warnings_on(std::make_unique<OtherCapability>());
  REQUIRE_EQ(other.size(), 1);
  CHECK(
      other[0].ends_with("made with another device: cpu, capability 9, cuDNN 91900, now cpu, "
                         "capability 8, cuDNN 91900"));
  CHECK(warnings_on(std::make_unique<OtherCapability>()).empty());
  CHECK_EQ(warnings_on(nullptr).size(), 1);
}

TEST_CASE("replayed graphs train with the bits of the streams") {
  RegisterGpuOperatorsOnCpu();
  for (const DeviceCase& c : kDeviceCases) {
    INFO(c.name);
    const TrainConfig config = ConfigOfCase(c);
    const std::vector<double> expected =
        LossesOf(config, "dce,canonicalize,fuse", std::make_unique<FakeCpuDevice>(true));
    auto device = std::make_unique<ReplayingFakeDevice>(true);
    const std::string& log = device->log;
    auto trainer =
        OrDie(Trainer::Create({.config = config,
                               .data = MakeTokenSource(TokenData::Synthetic(config)),
                               .passes = "dce,canonicalize,place-casts,fuse,cuda-graph{force=true}",
                               .device = std::move(device)}));
    OrDie(trainer->Compile());
    std::vector<double> actual;
    while (OrDie(trainer->HasNext())) {
      const StepReport report = OrDie(trainer->Step());
      actual.push_back(report.metrics.loss);
      actual.push_back(report.metrics.grad_norm);
    }
    CHECK_EQ(actual, expected);
    // step, optimizer and, with several batches, accumulate: each is captured once.
    const bool accumulates = config.accumulation_steps > 1;
    size_t captures = 0;
    for (size_t at = log.find("begin "); at != std::string::npos; at = log.find("begin ", at + 1))
      ++captures;
    CHECK_EQ(captures, accumulates ? 3 : 2);
    CHECK_EQ(trainer->Kernels().size(), captures);
  }
}

/// The same graphs where the memory of a double is.
std::unique_ptr<Module> OnDouble(const Module& module) {
  std::string text = PrintText(module);
  constexpr std::string_view kGpu = "cuda:0";
  for (size_t at = text.find(kGpu); at != std::string::npos; at = text.find(kGpu, at))
    text.replace(at, kGpu.size(), "cpu");
  return OrDie(ParseText(text));
}

/// Random, and tokens of the vocabulary.
std::vector<Tensor> RandomInputs(const Plan& plan) {
  std::vector<Tensor> inputs;
  for (const Plan::Input& input : plan.inputs) {
    const bool is_token = input.dtype == DType::kI64;
    inputs.push_back(is_token ? at::randint(0, 8, input.sizes, at::kLong)
                              : at::rand(input.sizes).to(ToScalarType(input.dtype)));
  }
  return inputs;
}

TEST_CASE("steps with grouped products run in pieces with the bits of their steps") {
  RegisterGpuOperatorsOnCpu();
  for (const DeviceCase& c : kDeviceCases) {
    INFO(c.name);
    const bool has_experts = c.text == kSmallDeepSeekV3;
    const auto module = OnDouble(
        *TraceForGpu(ConfigOfCase(c), "dce,canonicalize,place-casts,fuse,cuda-graph{pieces=true}"));
    const Graph& graph = *module->FindGraph(kStepGraph);
    CHECK_EQ(graph.attribute(graph.output(), "cuda_graph"), has_experts ? "pieces" : "full");
    if (!has_experts) continue;
    FakeCpuDevice plain(true);
    ReplayingFakeDevice device(true);
    Plan uncaptured = OrDie(Lower(graph));
    uncaptured.capture = Capture::kNothing;
    Executor steps = OrDie(Executor::Bind(std::move(uncaptured), {}, {}, &plain));
    Executor pieces = OrDie(Executor::Bind(OrDie(Lower(graph)), {}, {}, &device));
    std::vector<Tensor> inputs = RandomInputs(steps.plan());
    for (int run = 0; run < 4; ++run) {
      INFO("run ", run);
      // Parameters stay where they are.
      for (size_t i = 0; i < inputs.size(); ++i)
        if (!steps.plan().inputs[i].is_static) inputs[i] = RandomInputs(steps.plan())[i];
      const std::vector<Tensor> expected = OrDie(steps.Run(inputs));
      const std::vector<Tensor> actual = OrDie(pieces.Run(inputs));
      REQUIRE_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        INFO("output ", i);
        CHECK(at::equal(actual[i], expected[i]));
      }
    }
    size_t captures = 0;
    for (size_t at = device.log.find("begin "); at != std::string::npos;
         at = device.log.find("begin ", at + 1))
      ++captures;
    CHECK(captures >= 3);  // before, between and after the products
    const std::vector<KernelAnnotation> kernels = pieces.annotations();
    REQUIRE(!kernels.empty());
    CHECK_EQ(kernels.back().piece, static_cast<int64_t>(captures) - 1);
  }
}

/// The gradients of the first step.
std::vector<float> Gradients(const TrainConfig& config, std::unique_ptr<Device> device) {
  auto trainer = OrDie(Trainer::Create({.config = config,
                                        .data = MakeTokenSource(TokenData::Synthetic(config)),
                                        .device = std::move(device)}));
  OrDie(trainer->Compile());
  trainer->KeepGradients();
  OrDie(trainer->Step());
  std::vector<float> numbers;
  for (const TensorView& view : trainer->Gradients()) {
    const auto* first = reinterpret_cast<const float*>(view.bytes.data());
    numbers.insert(numbers.end(), first, first + view.bytes.size() / sizeof(float));
  }
  return numbers;
}

TEST_CASE("gradients are told as they were before the optimizer clipped them in place") {
  RegisterGpuOperatorsOnCpu();
  const TrainConfig config =
      ConfigOfCase({"", kSmallLlama3, {"optimizer.max_grad_norm=0.001"}, ""});
  const std::vector<float> expected = Gradients(config, nullptr);
  const std::vector<float> actual = Gradients(config, std::make_unique<FakeCpuDevice>(true));
  REQUIRE_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(actual[i] - expected[i]) > 1e-4F * (0.01F + std::abs(expected[i]))) {
      FAIL_CHECK(i, ": ", actual[i], " ", expected[i]);
    }
  }
}

TEST_CASE("steps on a device leave no memory behind") {
  RegisterGpuOperatorsOnCpu();
  const TrainConfig config = ConfigOfCase({"", kSmallLlama3, {"steps=60"}, ""});
  auto trainer = OrDie(Trainer::Create({.config = config,
                                        .data = MakeTokenSource(TokenData::Synthetic(config)),
                                        .passes = "dce,canonicalize,fuse",
                                        .device = std::make_unique<FakeCpuDevice>(true)}));
  OrDie(trainer->Compile());
  const auto live = [&](int steps) {
    const MemoryMeter meter;
    for (int i = 0; i < steps; ++i)
      OrDie(trainer->Step());
    return meter.live_bytes();
  };
  live(5);
  CHECK_EQ(live(50), 0);  // what a step leaves takes the place of what the one before left
}

TEST_CASE("fused kernels of all families: the CUDA computes what the C++ does, NVRTC compiles it") {
  size_t num_kernels = 0, num_bitwise = 0;
  for (const DeviceCase& c : kDeviceCases) {
    INFO(c.name);
    const auto module = TraceForGpu(ConfigOfCase(c), "dce,canonicalize,fuse{numerics=fast}");
    std::vector<Kernel> kernels;
    for (const GraphId id : module->programs()) {
      const Plan plan = OrDie(Lower(module->graph(id)));
      kernels.insert(kernels.end(), plan.kernels.begin(), plan.kernels.end());
    }
    num_kernels += kernels.size();
    CHECK_EQ(testing::CompareWithCpp(kernels, num_bitwise), "");
    for (const int32_t arch : {80, 90, 100}) {
      const auto image = CompileCuda(kernels, arch);
      if (!image && image.error().code() == ErrorCode::kNotFound) {
        MESSAGE("not compiled: ", image.error().message());
        break;
      }
      CHECK_OK(image);
    }
  }
  CHECK(num_kernels >= 20);
  CHECK(num_bitwise >= 5);
}

/// LibTorch's operators for CUDA, where its libraries are: they need no GPU to be registered.
bool LoadCudaOperators() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&at::_ops::mm::call), &info) == 0) return false;
  const auto folder = std::filesystem::path(info.dli_fname).parent_path();
  if (::dlopen((folder / "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr)
    return true;
  MESSAGE("skipped: ", std::string(::dlerror()));
  return false;
}

TEST_CASE("every operator of a graph that is made for a GPU has a kernel for CUDA") {
  if (!LoadCudaOperators()) return;
  std::set<std::string> ops;
  for (const DeviceCase& c : kDeviceCases) {
    const auto module = TraceForGpu(ConfigOfCase(c), kDefaultPasses);
    for (const GraphId id : module->programs()) {
      for (const PlanStep& step : OrDie(Lower(module->graph(id))).steps)
        ops.insert(step.op);
    }
  }
  CHECK(ops.size() > 40);
  for (const std::string& op : ops) {
    INFO(op);
    const auto handle = c10::Dispatcher::singleton().findSchema(SchemaName(op));
    REQUIRE(handle.has_value());
    CHECK(handle->hasComputedKernelForDispatchKey(c10::DispatchKey::CUDA));
  }
  const auto of_cpu = c10::Dispatcher::singleton().findSchema(
      SchemaName("aten._scaled_dot_product_flash_attention_for_cpu.default"));
  CHECK_FALSE(of_cpu->hasComputedKernelForDispatchKey(c10::DispatchKey::CUDA));
}

}  // namespace
}  // namespace strata
