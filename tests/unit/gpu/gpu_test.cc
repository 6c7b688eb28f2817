// Training on a GPU, against the CPU and against itself.

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/compile/fuse.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/device/cuda_loader.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using Overrides = std::vector<std::string>;

/// Whether there is a GPU; says why not.
bool HasGpu() {
  static const std::string missing = [] {
    const auto device = OpenCuda({});
    return device ? std::string() : device.error().message();
  }();
  if (!missing.empty()) MESSAGE("skipped: ", missing);
  return missing.empty();
}

constexpr std::string_view kModels[] = {R"(
model = "llama3"
dim = 64
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 128
multiple_of = 8
seq_len = 32
batch_size = 2
steps = 6
seed = 5
)",
                                        R"(
model = "qwen3"
dim = 64
n_layers = 2
n_heads = 4
n_kv_heads = 2
head_dim = 16
hidden_dim = 96
vocab_size = 128
seq_len = 32
batch_size = 2
steps = 6
seed = 6
)",
                                        R"(
model = "deepseek_v3"
dim = 64
n_layers = 2
n_heads = 4
hidden_dim = 96
vocab_size = 128
seq_len = 32
batch_size = 2
steps = 6
seed = 7
[mla]
kv_lora_rank = 16
qk_nope_head_dim = 8
qk_rope_head_dim = 8
v_head_dim = 16
[moe]
num_experts = 8
top_k = 2
moe_hidden_dim = 32
num_shared_experts = 1
)"};

std::unique_ptr<Trainer> Make(std::string_view text, Overrides overrides, std::string_view passes) {
  const TrainConfig config =
      OrDie(ParseTrainConfig(text, ConfigFormat::kToml, "small.toml", overrides));
  auto trainer = OrDie(Trainer::Create({.config = config,
                                        .data = MakeTokenSource(TokenData::Synthetic(config)),
                                        .passes = std::string(passes)}));
  OrDie(trainer->Compile());
  CHECK(trainer->warnings().empty());
  return trainer;
}

/// Losses and gradient norms.
std::vector<double> Train(std::string_view text, const Overrides& overrides,
                          std::string_view passes) {
  const auto trainer = Make(text, overrides, passes);
  std::vector<double> numbers;
  while (OrDie(trainer->HasNext())) {
    const StepReport report = OrDie(trainer->Step());
    numbers.push_back(report.metrics.loss);
    numbers.push_back(report.metrics.grad_norm);
  }
  return numbers;
}

constexpr std::string_view kStreams = "dce,canonicalize,fuse";
constexpr std::string_view kGraphs = "dce,canonicalize,fuse,cuda-graph";
constexpr std::string_view kPieces = "dce,canonicalize,fuse,cuda-graph{pieces=true}";
/// As `strata bench train` runs it: sums, softmax and functions in kernels, too.
constexpr std::string_view kFast = "dce,canonicalize,place-casts,fuse{numerics=fast},cuda-graph";

TEST_CASE("a GPU trains like the CPU") {
  if (!HasGpu()) return;
  for (const std::string_view text : kModels) {
    INFO(text);
    const std::vector<double> expected = Train(text, {}, "dce,canonicalize");
    for (const std::string_view passes :
         {std::string_view("dce,canonicalize"), kStreams, kGraphs, kFast}) {
      INFO(passes);
      const std::vector<double> actual = Train(text, {"device=cuda"}, passes);
      REQUIRE_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i)
        CHECK_EQ(actual[i], doctest::Approx(expected[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("flex attention of a GPU trains like the CPU's") {
  if (!HasGpu()) return;
  const Overrides flex = {"attn_type=flex", "flex.window=20", "flex.alibi=true",
                          "flex.block_size=16"};
  Overrides on_gpu = flex;
  on_gpu.emplace_back("device=cuda");
  for (const std::string_view model : kModels) {
    const std::vector<double> expected = Train(model, flex, kStreams);
    const std::vector<double> actual = Train(model, on_gpu, kStreams);
    REQUIRE_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i)
      CHECK_EQ(actual[i], doctest::Approx(expected[i]).epsilon(1e-4));
  }
}

TEST_CASE("a replayed graph computes the bits of the streams") {
  if (!HasGpu()) return;
  for (const char* precision : {"float32", "bfloat16"}) {
    INFO(precision);
    const Overrides overrides = {"device=cuda", "debug.deterministic=true",
                                 std::string("training.mixed_precision_param=") + precision};
    CHECK_EQ(Train(kModels[0], overrides, kGraphs), Train(kModels[0], overrides, kStreams));
    CHECK_EQ(Train(kModels[2], overrides, kPieces), Train(kModels[2], overrides, kStreams));
  }
}

TEST_CASE("a thousand steps leave no memory behind") {
  if (!HasGpu()) return;
  for (const std::string_view passes : {kStreams, kGraphs}) {
    INFO(passes);
    const auto trainer = Make(kModels[0], {"device=cuda", "steps=1000"}, passes);
    for (int step = 0; step < 10; ++step)
      OrDie(trainer->Step());
    const DeviceMemory before = trainer->device()->memory();
    while (OrDie(trainer->HasNext()))
      OrDie(trainer->Step());
    const DeviceMemory after = trainer->device()->memory();
    CHECK_EQ(after.allocated, before.allocated);
    CHECK_EQ(after.reserved, before.reserved);
  }
}

TEST_CASE("kernels over many elements, and over long rows, compute what the operators do") {
  if (!HasGpu()) return;
  const auto device = OrDie(OpenCuda({}));
  // Tiles that are full, and a last one that is not.
  for (const int64_t columns : {1024, 1021}) {
    INFO("columns ", columns);
    const std::string type = fmt::format("f32[1031, {0}][{0}, 1]cuda:0", columns);
    const auto module = testing::ParseBody(fmt::format(R"(
  x = placeholder : {0}
  y = placeholder : {0}
  a = aten.mul.Tensor(x, y) : {0}
  b = aten.neg.default(a) : {0}
  s = aten._log_softmax.default(y, -1, False) : {0}
  e = aten.exp.default(s) : {0}
  output([a, b, s, e])
)",
                                                       type));
    OrDie(Fuse({.numerics = Fuse::Numerics::kFast}).Run(*module));
    Executor executor =
        OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"))), {}, {}, device.get()));
    const c10::Device gpu("cuda:0");
    const std::vector<at::Tensor> inputs = {at::rand({1031, columns}).to(gpu),
                                            at::rand({1031, columns}).to(gpu)};
    const std::vector<at::Tensor> outputs = OrDie(executor.Run(inputs));
    CHECK(at::equal(outputs[0], inputs[0] * inputs[1]));
    CHECK(at::equal(outputs[1], -(inputs[0] * inputs[1])));
    CHECK(at::allclose(outputs[2], at::log_softmax(inputs[1], -1), 1e-5, 1e-5));
    CHECK(at::allclose(outputs[3], at::softmax(inputs[1], -1), 1e-5, 1e-8));
  }
}

TEST_CASE("side streams compute what one stream does") {
  if (!HasGpu()) return;
  const auto module = testing::ParseBody(R"(
  x = placeholder : f32[512, 512][512, 1]cuda:0
  g = aten.mm.default(x, x) : f32[512, 512][512, 1]cuda:0 {forward stream=1}
  a = aten.relu.default(x) : f32[512, 512][512, 1]cuda:0
  b = aten.mul.Tensor(a, g) : f32[512, 512][512, 1]cuda:0
  h = aten.mm.default(a, a) : f32[512, 512][512, 1]cuda:0 {forward stream=2}
  c = aten.add.Tensor(b, h) : f32[512, 512][512, 1]cuda:0
  output([c])
)");
  const auto device = OrDie(OpenCuda({}));
  Executor executor =
      OrDie(Executor::Bind(OrDie(Lower(*module->FindGraph("g"))), {}, {}, device.get()));
  const at::Tensor x = at::rand({512, 512}) / 16;
  const at::Tensor a = x.relu();
  const at::Tensor expected = a * x.mm(x) + a.mm(a);
  for (int run = 0; run < 20; ++run) {
    const std::vector<at::Tensor> inputs = {x.to(c10::Device("cuda:0"))};
    const at::Tensor actual = OrDie(executor.Run(inputs))[0].cpu();
    CHECK(at::allclose(actual, expected, 1e-4, 1e-4));
  }
}

}  // namespace
}  // namespace strata
