// What ranks of a pipeline run, by the ids of GraphPP's test plan.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "ir/module.h"
#include "ir/verify.h"
#include "passes/pipeline/slots.h"
#include "runtime/trace/tracer.h"
#include "runtime/train/pipeline.h"
#include "runtime/train/programs.h"
#include "runtime/train/trace_programs.h"
#include "tests/support/small_models.h"
#include "tests/unit/ranks/pipeline_course.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::pipelines::Accumulating;
using testing::pipelines::CheckSameBits;
using testing::pipelines::ConfigOf;
using testing::pipelines::Course;
using testing::pipelines::Differences;
using testing::pipelines::Finish;
using testing::pipelines::Pipeline;
using testing::pipelines::Sets;
using testing::pipelines::Train;
using testing::pipelines::operator+;

using Names = std::vector<std::string>;

const Sets kSharded = {"parallelism.data_parallel_shard_degree=2"};

TEST_CASE("GP-06: experts on ranks that share parameters, cut into forward and backward") {
  const Sets layers = {"n_layers=4", "steps=5"};
  const Sets gathers_each = {"compile.disable_passes=[\"split-fsdp\"]"};
  const std::string_view model = testing::kSmallDeepSeekV3;
  const Course oracle = Train(
      layers + kSharded + Accumulating(4, 1, 10) + Sets{"training.num_tokens_per_train_step=80"},
      model);
  for (const char* schedule : {"GPipe", "1F1B", "ZBVZeroBubble"}) {
    CAPTURE(schedule);
    CheckSameBits(Train(layers + kSharded + gathers_each + Pipeline(schedule, 2, 4, 1), model),
                  oracle);
  }
}

/// 405 billion parameters, 1.6 TB: no machine runs their forward pass here.
constexpr std::string_view kHuge = R"(model = "llama3"
dim = 16384
n_layers = 126
n_heads = 128
n_kv_heads = 8
vocab_size = 128256
multiple_of = 4096
ffn_dim_multiplier = 1.2
seq_len = 8192
steps = 1
)";

TEST_CASE("GR-01: stages are built from shapes; neither forward nor loss runs") {
  const TrainConfig config = ConfigOf(Pipeline("1F1B", 8, 8, 1), kHuge);
  Module module;
  Constants constants;
  CHECK_OK(TraceTraining(TrainSpec(config), module, constants));
  for (const auto& pass : OrDie(TrainingPasses(config, "dce,canonicalize")))
    OrDie(pass->Run(module));
  CHECK_OK(Verify(module));
  for (int64_t stage = 0; stage < 8; ++stage) {
    CAPTURE(stage);
    const Graph* forward = module.FindGraph("stage" + std::to_string(stage) + ".forward");
    REQUIRE(forward != nullptr);
    bool has_loss = false;
    for (const StageSlot& slot : OrDie(StageSlotsOf(*forward)).outputs)
      has_loss |= slot.kind == StageSlot::Kind::kLoss;
    CHECK_EQ(has_loss, stage == 7);
  }
}

/// The tokens of another source; the sequence of batch i is two documents, of which the first one
/// ends after 3 + i % `period` tokens.
class DocumentSource final : public DataSource {
 public:
  DocumentSource(std::unique_ptr<DataSource> source, int64_t period)
      : source_(std::move(source)), period_(period) {}

  Result<std::optional<Batch>> Next() override {
    STRATA_TRY(std::optional<Batch> batch, source_->Next());
    if (!batch) return batch;
    const int64_t seq = batch->seq_len();
    for (int64_t row = 0; row < batch->rows; ++row) {
      const int64_t end = 3 + number_++ % period_;
      for (int64_t i = 0; i < seq; ++i)
        batch->positions[static_cast<size_t>(row * seq + i)] = i < end ? i : i - end;
    }
    return batch;
  }
  std::string Position() const override { return source_->Position(); }
  Status Seek(std::string_view position) override { return source_->Seek(position); }

 private:
  std::unique_ptr<DataSource> source_;
  int64_t period_, number_ = 0;
};

Course TrainOnDocuments(const Sets& sets, int64_t period) {
  const TrainConfig tokens = ConfigOf(sets + Sets{"steps=5"});
  const TrainConfig config =
      ConfigOf(sets + Sets{"steps=5", "attn_mask_type=block_causal", "dataloader.dataset=tokens",
                           "dataloader.dataset_path=the tokens are those of the source"});
  const auto trainer = OrDie(Trainer::Create(
      {.config = config,
       .data = std::make_unique<DocumentSource>(OrDie(OpenDataSource(tokens)), period)}));
  OrDie(trainer->Compile());
  return Finish(*trainer);
}

TEST_CASE("GR-05: one graph masks the documents of each microbatch") {
  const Course oracle = TrainOnDocuments(Accumulating(4, 1), 4);
  for (const char* schedule : {"1F1B", "ZBVZeroBubble"}) {
    CAPTURE(schedule);
    CheckSameBits(TrainOnDocuments(Pipeline(schedule, 2, 4, 1), 4), oracle);
  }
  // With the documents of the first microbatch for all, the losses are others.
  CHECK_NE(TrainOnDocuments(Accumulating(4, 1), 1).losses, oracle.losses);
}

TEST_CASE("GR-07: a validation between steps leaves nothing behind") {
  const Sets validated = {"validator.enable=true", "validator.freq=1", "validator.steps=1",
                          "steps=5"};
  for (const char* schedule : {"1F1B", "ZBVZeroBubble", "DualPipeV"}) {
    CAPTURE(schedule);
    const Sets sets = Pipeline(schedule, 2, 4, 1);
    Course course = Train(sets + validated);
    CHECK_EQ(course.validation_losses.size(), 5);
    course.validation_losses.clear();
    CheckSameBits(course, Train(sets + Sets{"steps=5"}));
  }
}

TEST_CASE(
    "GR-09: the loss of a step is that of its last stage, added in the order of microbatches") {
  // Of equally many labels each, a microbatch alone has four times the loss that it adds.
  const Sets one_step = {"steps=1"};
  const double loss = Train(Pipeline("Interleaved1F1B", 2, 4, 1) + one_step).losses.at(0);
  double sum = 0;
  const Course alone = Train(Accumulating(1, 1) + Sets{"steps=4", "optimizer.lr=0"});
  for (const double of_microbatch : alone.losses)
    sum += of_microbatch;
  CHECK_EQ(loss, doctest::Approx(sum / 4).epsilon(1e-6));
}

/// The batches of another source, but one of them has a token that the vocabulary lacks.
class BrokenSource final : public DataSource {
 public:
  BrokenSource(std::unique_ptr<DataSource> source, int64_t broken)
      : source_(std::move(source)), broken_(broken) {}

  Result<std::optional<Batch>> Next() override {
    if (number_++ != broken_) return source_->Next();
    const std::string position = source_->Position();
    STRATA_TRY(std::optional<Batch> batch, source_->Next());
    batch->tokens[0] = 1'000'000;
    STRATA_RETURN_IF_ERROR(source_->Seek(position));
    return batch;
  }
  std::string Position() const override { return source_->Position(); }
  Status Seek(std::string_view position) override { return source_->Seek(position); }

 private:
  std::unique_ptr<DataSource> source_;
  int64_t broken_, number_ = 0;
};

TEST_CASE("GR-28: an action that fails leaves parameters as they are") {
  for (const char* schedule : {"1F1B", "ZBVZeroBubble"}) {
    CAPTURE(schedule);
    const TrainConfig config = ConfigOf(Pipeline(schedule, 2, 4, 1));
    // The batch of the third step: its last microbatch.
    const auto trainer = OrDie(Trainer::Create(
        {.config = config,
         .data = std::make_unique<BrokenSource>(OrDie(OpenDataSource(config)), 4 * 2 + 3)}));
    OrDie(trainer->Compile());
    OrDie(trainer->Step());
    OrDie(trainer->Step());
    const testing::pipelines::Values parameters = testing::pipelines::Copy(trainer->Parameters());
    const testing::pipelines::Values optimizer =
        testing::pipelines::Copy(trainer->OptimizerTensors());
    const std::string message = MessageOf(trainer->Step());
    CHECK_EQ(message.substr(0, message.find(" failed: ")),
             "rank 0: action 0F3: graph stage0.forward");
    CHECK_EQ(Differences(testing::pipelines::Copy(trainer->Parameters()), parameters), Names());
    CHECK_EQ(Differences(testing::pipelines::Copy(trainer->OptimizerTensors()), optimizer),
             Names());
  }
}

}  // namespace
}  // namespace strata
