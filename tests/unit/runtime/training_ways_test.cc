#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "runtime/models/layers.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/runtime/eager_training.h"

namespace strata {
namespace {

using at::Tensor;
using testing::Compiled;
using testing::Eager;
using testing::kSmallDeepSeekV3;
using testing::kSmallLlama3;
using testing::kSmallQwen3;
using testing::OrDie;
using testing::Overrides;
using testing::SmallConfig;
using testing::Tensors;
using testing::Title;
using testing::WorstDifference;

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
  for (const std::string_view family : {kSmallLlama3, kSmallQwen3, kSmallDeepSeekV3}) {
    for (const Overrides& way : ways) {
      INFO(Title({family, way}));
      const TrainConfig config = SmallConfig(family, way);
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

TEST_CASE("a chunked loss is the loss, with its gradients, up to the order of sums") {
  at::set_num_threads(1);
  for (const std::string_view family : {kSmallLlama3, kSmallQwen3, kSmallDeepSeekV3}) {
    Eager run(SmallConfig(family));
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
  Eager run(SmallConfig(kSmallLlama3, {"batch_size=4"}));
  const Tensors whole = run.LossAndGradients(0);
  const Tensor tokens = run.Ids(0, 0), labels = run.Ids(0, 1);
  run.config.batch_size = 2;
  run.config.accumulation_steps = 2;
  const Tensor valid = at::scalar_tensor(static_cast<double>(labels.numel()));
  Tensors trained;
  for (const Tensor& parameter : run.parameters)
    trained.push_back(parameter.detach().requires_grad_(true));
  const auto half = [&](int64_t first) {
    return LossAndGradients(TrainSpec(run.config),
                            {.parameters = trained, .buffers = {}, .rope_table = run.rope_table},
                            {.tokens = tokens.slice(0, first, first + 2).contiguous(),
                             .labels = labels.slice(0, first, first + 2).contiguous(),
                             .positions = {},
                             .valid_labels = valid});
  };
  const Tensors first = half(0), second = half(2);
  Tensors sums(first.begin() + 1, first.end());
  sums = Accumulate(TrainSpec(run.config), sums, Tensors(second.begin() + 1, second.end()));
  sums.insert(sums.begin(), first[0] + second[0]);
  CHECK_LT(WorstDifference(sums, whole), 2e-6);
}

TEST_CASE("documents of one row see nothing of each other") {
  at::set_num_threads(1);
  for (const std::string_view family : {kSmallLlama3, kSmallQwen3, kSmallDeepSeekV3}) {
    // A row of two documents of 5 tokens, against two rows of one.
    Eager run(SmallConfig(family, {"batch_size=1", "seq_len=10"}));
    const Tensor tokens = run.Ids(0, 0), labels = run.Ids(0, 1);
    Tensors trained;
    for (const Tensor& parameter : run.parameters)
      trained.push_back(parameter.detach().requires_grad_(true));
    const ModelTensors model{
        .parameters = trained, .buffers = run.buffers, .rope_table = run.rope_table};
    const Tensors apart =
        LossAndGradients(TrainSpec(run.config), model,
                         {.tokens = tokens.view({2, 5}), .labels = labels.view({2, 5})});
    run.config.attn_mask_type = AttentionMask::kBlockCausal;
    const Tensor positions = at::arange(10).remainder(5).view({1, 10});
    const Tensors packed = LossAndGradients(
        TrainSpec(run.config), model, {.tokens = tokens, .labels = labels, .positions = positions});
    CHECK_LT(WorstDifference(packed, apart), 2e-6);
    // Without boundaries between documents they would.
    const Tensors mixed = LossAndGradients(
        TrainSpec(run.config), model,
        {.tokens = tokens, .labels = labels, .positions = at::arange(10).view({1, 10})});
    CHECK_GT(WorstDifference(mixed, apart), 1e-3);
  }
}

TEST_CASE("bf16 computes in bf16, and keeps parameters, gradients and sums in fp32") {
  at::set_num_threads(1);
  for (const std::string_view family : {kSmallLlama3, kSmallQwen3, kSmallDeepSeekV3}) {
    Eager run(SmallConfig(family));
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

}  // namespace
}  // namespace strata
