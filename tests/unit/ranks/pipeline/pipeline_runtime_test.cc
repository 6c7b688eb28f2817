// What ranks of a pipeline run, by the ids of GraphPP's test plan.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

#include "ir/module.h"
#include "ir/rewriter.h"
#include "ir/verify.h"
#include "passes/pipeline/multiplex_overlaps.h"
#include "passes/pipeline/slots.h"
#include "runtime/exec/executor.h"
#include "runtime/trace/tracer.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/trace_programs.h"
#include "tests/support/small_models.h"
#include "tests/unit/ranks/pipeline/pipeline_course.h"

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
using testing::pipelines::kSharded;
using testing::pipelines::Pipeline;
using testing::pipelines::Sets;
using testing::pipelines::Train;
using testing::pipelines::operator+;

using Names = std::vector<std::string>;

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

/// Batches of another source, and what was read of it.
class RecordingSource final : public DataSource {
 public:
  RecordingSource(std::unique_ptr<DataSource> source, std::vector<std::vector<int64_t>>& read)
      : source_(std::move(source)), read_(read) {}

  Result<std::optional<Batch>> Next() override {
    auto batch = source_->Next();
    if (batch && *batch) read_.push_back((*batch)->tokens);
    return batch;
  }
  std::string Position() const override { return source_->Position(); }
  Status Seek(std::string_view position) override { return source_->Seek(position); }

 private:
  std::unique_ptr<DataSource> source_;
  std::vector<std::vector<int64_t>>& read_;
};

TEST_CASE("GR-06: a step takes the next microbatches, in their order, whatever the schedule") {
  const auto read = [](const Sets& sets) {
    const TrainConfig config = ConfigOf(sets + Sets{"steps=3"});
    std::vector<std::vector<int64_t>> batches;
    const auto trainer = OrDie(Trainer::Create(
        {.config = config,
         .data = std::make_unique<RecordingSource>(OrDie(OpenDataSource(config)), batches)}));
    OrDie(trainer->Compile());
    Finish(*trainer);
    return batches;
  };
  const auto expected = read(Accumulating(4, 1));
  CHECK_GE(expected.size(), 3 * 4);
  for (const char* schedule : {"1F1B", "LoopedBFS", "ZBVZeroBubble"}) {
    CAPTURE(schedule);
    CHECK_EQ(read(Pipeline(schedule, 2, 4, 1)), expected);
  }
}

TEST_CASE("GR-08: stages are there before the first step, with a sum for each parameter") {
  const auto trainer =
      testing::pipelines::TrainerOf(ConfigOf(Pipeline("Interleaved1F1B", 2, 4, 1)), "");
  OrDie(trainer->Compile());
  for (const char* graph : {"stage0.forward", "stage3.backward", "optimizer.rank1"})
    CHECK_NE(trainer->module().FindGraph(graph), nullptr);
  trainer->KeepGradients();
  OrDie(trainer->Step());
  std::map<std::string, size_t> sums, parameters;
  for (const TensorView& view : trainer->Gradients())
    sums[view.name] = view.bytes.size();
  for (const TensorView& view : trainer->Parameters())
    parameters[view.name] = view.bytes.size();
  CHECK_EQ(sums, parameters);
}

std::vector<std::string> PassNames(const Sets& sets, std::string_view text) {
  std::vector<std::string> names;
  for (const auto& pass : OrDie(TrainingPasses(ConfigOf(sets), text)))
    names.emplace_back(pass->name());
  return names;
}

TEST_CASE("GR-10, GR-12: graphs of stages become kernels last, and no device graphs") {
  const Sets stages = Pipeline("ZBVZeroBubble", 2, 4, 1);
  CHECK_EQ(PassNames(stages, "dce,fuse"),
           Names{"dce", "split-stages", "split-backward", "split-weight-gradients",
                 "split-optimizer", "fuse"});
  CHECK_EQ(PassNames(Accumulating(4, 1), "dce,fuse,cuda-graph").back(), "cuda-graph");
  CHECK_EQ(MessageOf(TrainingPasses(ConfigOf(stages), "dce,fuse,cuda-graph")),
           "pass and configuration contradict each other: cuda-graph: "
           "parallelism.pipeline_parallel_degree is 2, and a device graph writes over what the "
           "microbatch before left for backward: take one of them out");
}

TEST_CASE("GR-18: a constant that a part of an overlap reads must be there") {
  const auto module = testing::ParseOrDie(R"(graph %'stage0.forward'
  x = placeholder : f32[2][1]cpu {+slot='activation 0'}
  c = attr _tensor_constant0 : f32[2][1]cpu
  y = aten.add.Tensor(x, c) : f32[2][1]cpu
  output([y])
graph %'stage1.backward'
  g = placeholder : f32[2][1]cpu {+slot='gradient 0'}
  output([g])
)");
  for (const char* name : {"stage0.forward", "stage1.backward"}) {
    Rewriter rewriter(*module->FindGraph(name));
    SetOutputSlots(rewriter, {{StageSlot::Kind::kExtra, "0"}});
  }
  OrDie(MultiplexOverlaps({.pairs = "0-1"}).Run(*module));
  const Graph& overlap = *module->FindGraph("overlap.F0.B1");
  const auto bind = [&](const Constants& constants) {
    return Executor::Bind(OrDie(Lower(overlap, PlanOptions::Fastest())), constants);
  };
  CHECK_EQ(MessageOf(bind({})),
           "graph overlap.F0.B1 cannot be executed: no constant _tensor_constant0");
  Executor executor = OrDie(bind({{"_tensor_constant0", at::full({2}, 3.0)}}));
  const std::vector<at::Tensor> inputs = {at::ones({2}), at::ones({2})};
  CHECK(at::equal(OrDie(executor.Run(inputs))[1], at::full({2}, 4.0)));
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
