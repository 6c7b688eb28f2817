// The stages of a pipeline on ranks of their own train as one rank does.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "passes/simulate/collective_uses.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/checkpoint_writer.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/ranks/pipeline/pipeline_course.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::pipelines::Accumulating;
using testing::pipelines::CheckSameBits;
using testing::pipelines::ConfigOf;
using testing::pipelines::Course;
using testing::pipelines::Finish;
using testing::pipelines::kModel;
using testing::pipelines::kSharded;
using testing::pipelines::Pipeline;
using testing::pipelines::Sets;
using testing::pipelines::Train;
using testing::pipelines::TrainerOf;
using testing::pipelines::Values;
using testing::pipelines::operator+;

TEST_CASE("GR-27: two stages with GPipe train bitwise as one rank on the same microbatches") {
  CheckSameBits(Train(Pipeline("GPipe", 2, 2, 2)), Train(Accumulating(2, 2)));
}

TEST_CASE("GR-27: each schedule has the bits of one rank on the same microbatches") {
  for (const int64_t microbatches : {4, 8}) {
    const Course oracle = Train(Accumulating(microbatches, 1));
    for (const char* schedule : {"GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble",
                                 "ZBVZeroBubble", "DualPipeV"}) {
      CAPTURE(schedule);
      CAPTURE(microbatches);
      CheckSameBits(Train(Pipeline(schedule, 2, microbatches, 1)), oracle);
    }
  }
}

TEST_CASE("GR-27: four ranks, and four stages on each of two ranks, have the bits of one rank") {
  const Course oracle = Train(Accumulating(4, 1));
  for (const char* schedule : {"GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"}) {
    CAPTURE(schedule);
    CheckSameBits(Train(Pipeline(schedule, 4, 4, 1)), oracle);
  }
  CheckSameBits(Train(Pipeline("Interleaved1F1B", 2, 4, 1) +
                      Sets{"parallelism.pipeline_parallel_layers_per_stage=1"}),
                oracle);
}

TEST_CASE("stages that are balanced, or whose modules are named, have the bits of one rank") {
  const Sets named = {
      "parallelism.module_fqns_per_model_part="
      R"([["tok_embeddings"],["layers.0","layers.1","layers.2","layers.3"],)"
      R"(["layers.4","layers.5.attention_norm","layers.5.attention"],)"
      R"(["layers.5","norm","lm_head"]])"};
  const Sets balanced = {"parallelism.pipeline_parallel_split=balanced"};
  for (const Sets& sets : {Sets{}, Sets{"enable_weight_tying=true"}}) {
    CAPTURE(sets.size());
    const Course oracle = Train(sets + Accumulating(4, 1));
    for (const char* schedule : {"Interleaved1F1B", "ZBVZeroBubble", "DualPipeV"}) {
      CAPTURE(schedule);
      CheckSameBits(Train(sets + named + Pipeline(schedule, 2, 4, 1)), oracle);
      CheckSameBits(Train(sets + balanced + Pipeline(schedule, 2, 4, 1)), oracle);
    }
    CheckSameBits(Train(sets + balanced + Pipeline("1F1B", 4, 4, 1)), oracle);
  }
}

/// The batches of another source, in groups of `count`, each from its last batch to its first.
class BackwardSource final : public DataSource {
 public:
  BackwardSource(std::unique_ptr<DataSource> source, size_t count)
      : source_(std::move(source)), count_(count) {}

  Result<std::optional<Batch>> Next() override {
    while (left_ == 0 && group_.size() < count_) {
      STRATA_TRY(std::optional<Batch> batch, source_->Next());
      if (!batch) return std::optional<Batch>();
      group_.push_back(*std::move(batch));
    }
    left_ = group_.size() - 1;
    Batch batch = std::move(group_.back());
    group_.pop_back();
    return std::optional(std::move(batch));
  }
  std::string Position() const override { return source_->Position(); }
  Status Seek(std::string_view position) override { return source_->Seek(position); }

 private:
  std::unique_ptr<DataSource> source_;
  size_t count_, left_ = 0;
  std::vector<Batch> group_;
};

TEST_CASE("GR-27: a schedule that runs microbatches backwards adds their gradients in that order") {
  for (const int64_t microbatches : {2, 4, 8}) {
    CAPTURE(microbatches);
    const Course course = Train(Pipeline("LoopedBFS", 2, microbatches, 1));
    const TrainConfig config = ConfigOf(Accumulating(microbatches, 1));
    const auto one_rank = OrDie(
        Trainer::Create({.config = config,
                         .data = std::make_unique<BackwardSource>(
                             OrDie(OpenDataSource(config)), static_cast<size_t>(microbatches))}));
    OrDie(one_rank->Compile());
    Course oracle = Finish(*one_rank);
    // Losses are added from the first microbatch to the last.
    for (size_t i = 0; i < oracle.losses.size(); ++i)
      CHECK_EQ(course.losses[i], doctest::Approx(oracle.losses[i]).epsilon(1e-6));
    oracle.losses = course.losses;
    CheckSameBits(course, oracle);
  }
}

TEST_CASE("GR-29: a schedule runs several times in a step") {
  const Sets sets = Pipeline("1F1B", 2, 2, 1) + Sets{"training.num_tokens_per_train_step=64"};
  CheckSameBits(Train(sets), Train(Accumulating(4, 1)));
  CheckSameBits(
      Train({"parallelism.pipeline_parallel_degree=2", "parallelism.num_pp_microbatches=2",
             "batch_size=1", "training.num_tokens_per_train_step=64"}),
      Train(Accumulating(4, 1)));
}

TEST_CASE("stages of each model family have the bits of one rank") {
  const Sets layers = {"steps=5", "n_layers=4"};
  for (const auto& [model, ties] : {std::pair(testing::kSmallLlama3, false),
                                    {testing::kSmallLlama3, true},
                                    {testing::kSmallQwen3, false},
                                    {testing::kSmallQwen3, true},
                                    {testing::kSmallDeepSeekV3, false}}) {
    CAPTURE(model);
    CAPTURE(ties);
    const Sets sets = layers + (model == testing::kSmallDeepSeekV3
                                    ? Sets{}
                                    : Sets{fmt::format("enable_weight_tying={}", ties)});
    const Course oracle = Train(sets + Accumulating(4, 1, 10), model);
    for (const char* schedule :
         {"GPipe", "1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"}) {
      CAPTURE(schedule);
      CheckSameBits(Train(sets + Pipeline(schedule, 2, 4, 1), model), oracle);
    }
  }
}

TEST_CASE("weights that the first and the last stage share are those of one rank") {
  const Sets tied = {"enable_weight_tying=true"};
  const Sets validated = {"validator.enable=true", "validator.freq=2"};
  for (const Sets& sets :
       {tied, tied + Sets{"loss.name=chunked_cross_entropy", "loss.num_chunks=4"},
        tied + Sets{"training.mixed_precision_param=bfloat16"}, tied + validated}) {
    CAPTURE(sets.back());
    const bool validates = sets.back() == validated.back();
    const auto steps = [&](int count) {
      return validates ? Sets{fmt::format("validator.steps={}", count)} : Sets{};
    };
    const Course oracle = Train(sets + Accumulating(4, 1) + steps(8));
    CHECK_EQ(oracle.validation_losses.size(), validates ? 3 : 0);
    for (const char* schedule : {"1F1B", "Interleaved1F1B", "ZBVZeroBubble"}) {
      CAPTURE(schedule);
      CheckSameBits(Train(sets + Pipeline(schedule, 2, 4, 1) + steps(2)), oracle);
    }
    CheckSameBits(Train(sets + Pipeline("1F1B", 4, 4, 1) + steps(2)), oracle);
  }
}

TEST_CASE("stages validate as one rank does") {
  const auto sets = [](int64_t steps) {
    return Sets{"validator.enable=true", "validator.freq=2",
                fmt::format("validator.steps={}", steps)};
  };
  const Course oracle = Train(sets(8) + Accumulating(4, 1));
  CHECK_EQ(oracle.validation_losses.size(), 3);
  for (const char* schedule : {"GPipe", "Interleaved1F1B", "DualPipeV"}) {
    CAPTURE(schedule);
    CheckSameBits(Train(sets(2) + Pipeline(schedule, 2, 4, 1)), oracle);
  }
  // Of a batch that is a microbatch the steps are not multiplied: a group of 4, and one of 1.
  const Sets by_number = {"parallelism.pipeline_parallel_degree=2",
                          "parallelism.num_pp_microbatches=4", "batch_size=1"};
  CheckSameBits(Train(sets(5) + by_number), Train(sets(5) + Accumulating(4, 1)));
}

TEST_CASE("GR-24: a chunked loss, narrow types, recomputation and fused kernels keep the bits") {
  for (const Sets& sets :
       {Sets{"loss.name=chunked_cross_entropy", "loss.num_chunks=4"},
        Sets{"training.mixed_precision_param=bfloat16"}, Sets{"compile.memory_policy=full"},
        Sets{"compile.inductor_compilation=regional", "compile.memory_policy=full"}}) {
    CAPTURE(sets[0]);
    const Course oracle = Train(sets + Accumulating(4, 1));
    for (const char* schedule : {"1F1B", "ZBVZeroBubble"})
      CheckSameBits(Train(sets + Pipeline(schedule, 2, 4, 1)), oracle);
  }
  const std::string fused = "dce,canonicalize,fuse";
  CheckSameBits(Train(Pipeline("1F1B", 2, 4, 1), kModel, fused),
                Train(Accumulating(4, 1), kModel, fused));
}

/// Gradients are reduced for each microbatch.
const Sets kReducedEach = {"compile.disable_passes=[\"split-fsdp\"]"};

TEST_CASE("GP-15: stages whose ranks share parameters have the bits of those ranks alone") {
  const Course oracle =
      Train(kSharded + Accumulating(4, 1) + Sets{"training.num_tokens_per_train_step=128"});
  for (const char* schedule : {"GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble", "DualPipeV"}) {
    CAPTURE(schedule);
    CheckSameBits(Train(kSharded + kReducedEach + Pipeline(schedule, 2, 4, 1)), oracle);
  }
}

TEST_CASE("GP-15: reduced once for all microbatches, schedules have the same bits") {
  const Sets tied = {"enable_weight_tying=true"};
  for (const Sets& sets : {Sets{}, tied, Sets{"training.mixed_precision_param=bfloat16"}}) {
    const Course oracle = Train(kSharded + sets + Pipeline("GPipe", 2, 4, 1));
    for (const char* schedule : {"1F1B", "Interleaved1F1B", "ZBVZeroBubble", "DualPipeV"}) {
      CAPTURE(schedule);
      CheckSameBits(Train(kSharded + sets + Pipeline(schedule, 2, 4, 1)), oracle);
    }
    // Two runs of a schedule are reduced together.
    CheckSameBits(Train(kSharded + sets + Pipeline("1F1B", 2, 2, 1) +
                        Sets{"training.num_tokens_per_train_step=128"}),
                  oracle);
  }
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_CASE("GP-15: one reduction and one for each microbatch differ by the rounding of two sums") {
  const Sets one_step = {"steps=1"};
  const int64_t ranks = 2, microbatches = 4, terms = ranks * microbatches;
  const Sets pipeline = kSharded + Pipeline("1F1B", 2, microbatches, 1) + one_step;
  const Values once = Train(pipeline).gradients;
  const Values each = Train(pipeline + kReducedEach).gradients;
  // What is summed: the gradient of each sequence, whose loss is divided by a power of two.
  std::map<std::string, std::vector<double>> magnitudes;
  const TrainConfig whole = ConfigOf(pipeline), single = ConfigOf(one_step + Sets{"batch_size=1"});
  const auto batches = OrDie(OpenDataSource(whole));
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    const Batch batch = *OrDie(batches->Next());
    REQUIRE_EQ(batch.rows, ranks);
    for (int64_t row = 0; row < ranks; ++row) {
      class OneRow final : public DataSource {
       public:
        explicit OneRow(Batch batch) : batch_(std::move(batch)) {}
        Result<std::optional<Batch>> Next() override { return std::exchange(batch_, std::nullopt); }
        std::string Position() const override { return "0"; }
        Status Seek(std::string_view) override { return Ok(); }

       private:
        std::optional<Batch> batch_;
      };
      const auto row_of = [&](const std::vector<int64_t>& values) {
        const auto begin = values.begin() + row * whole.seq_len;
        return std::vector<int64_t>(begin, begin + whole.seq_len);
      };
      Batch one{.rows = 1,
                .tokens = row_of(batch.tokens),
                .labels = row_of(batch.labels),
                .positions = row_of(batch.positions)};
      const auto trainer = OrDie(
          Trainer::Create({.config = single, .data = std::make_unique<OneRow>(std::move(one))}));
      OrDie(trainer->Compile());
      for (const auto& [name, bytes] : Finish(*trainer).gradients) {
        const std::vector<float> gradient = Floats(bytes);
        std::vector<double>& sums = magnitudes[name];
        sums.resize(gradient.size());
        for (size_t i = 0; i < gradient.size(); ++i)
          sums[i] += std::abs(gradient[i]) / static_cast<double>(terms);
      }
    }
  }
  int64_t differences = 0;
  for (const auto& [name, bytes] : once) {
    CAPTURE(name);
    const std::vector<float> a = Floats(bytes), b = Floats(each.at(name));
    const std::vector<double>& sums = magnitudes.at(name);
    REQUIRE_EQ(a.size(), sums.size());
    bool is_bounded = true;
    for (size_t i = 0; i < a.size(); ++i) {
      const double bound = 2.0 * static_cast<double>(terms - 1) * std::ldexp(1.0, -24) * sums[i];
      is_bounded &= std::abs(static_cast<double>(a[i]) - b[i]) <= bound;
      differences += a[i] == b[i] ? 0 : 1;
    }
    CHECK(is_bounded);
  }
  CHECK_GT(differences, 0);
}

/// How often the first rank ran each graph.
class GraphCounter final : public TrainingObserver {
 public:
  void BeginGraph(const Graph& graph) override { ++runs[std::string(graph.name_text())]; }
  void OnStep(const PlanStep&, std::span<const at::Tensor>) override {}
  bool WantsAllSteps() const override { return false; }

  std::map<std::string, int> runs;
};

TEST_CASE("microbatches do not gather again") {
  const auto trainer =
      TrainerOf(ConfigOf(kSharded + Pipeline("1F1B", 2, 4, 1)), std::string(kDefaultPasses));
  OrDie(trainer->Compile());
  GraphCounter counter;
  OrDie(trainer->Step(&counter));
  CHECK_EQ(counter.runs, std::map<std::string, int>{{"stage0.unshard", 1},
                                                    {"stage0.forward", 4},
                                                    {"stage0.backward", 4},
                                                    {"stage0.accumulate", 3},
                                                    {"stage0.reduce", 1},
                                                    {"optimizer.rank0", 1}});
  for (const GraphId id : trainer->module().programs()) {
    const Graph& graph = trainer->module().graph(id);
    const std::string name(graph.name_text());
    if (!name.ends_with(".forward") && !name.ends_with(".backward")) continue;
    CAPTURE(name);
    for (const CollectiveUse& use : CollectiveUses(graph))
      CHECK_EQ(use.op, "all_reduce");  // of the loss, and of the number of labels
  }
}

TEST_CASE("GR-14: a forward and a backward that the schedule overlaps are one graph") {
  const auto trainer =
      TrainerOf(ConfigOf(Pipeline("DualPipeV", 2, 4, 1)), std::string(kDefaultPasses));
  OrDie(trainer->Compile());
  GraphCounter counter;
  OrDie(trainer->Step(&counter));
  // 0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) 3B3 0I2 0W2 0I3 0W3, and of stage
  // 0, whose backward is not split, W is B.
  CHECK_EQ(counter.runs, std::map<std::string, int>{{"stage0.forward", 3},
                                                    {"stage3.forward", 2},
                                                    {"stage3.backward_input", 1},
                                                    {"stage3.backward_weight", 1},
                                                    {"overlap.F0.B3", 1},
                                                    {"overlap.F3.B0", 2},
                                                    {"stage3.backward", 2},
                                                    {"stage0.backward", 2},
                                                    {"stage0.accumulate", 3},
                                                    {"stage3.accumulate", 3},
                                                    {"optimizer.rank0", 1}});
}

TEST_CASE("a checkpoint resumes on any number of stages") {
  const Sets one = Accumulating(4, 1), two = Pipeline("1F1B", 2, 4, 1);
  const Course oracle = Train(one);
  for (const auto& [from, to] : {std::pair(one, two), std::pair(two, one)}) {
    const testing::TempDir dir;
    const auto trainer = TrainerOf(ConfigOf(from), std::string(kDefaultPasses));
    OrDie(trainer->Compile());
    OrDie(trainer->Step());
    CheckpointWriter writer = OrDie(CheckpointWriter::Open(dir.path(), {}));
    CHECK_OK(writer.Save(trainer->Position(), {.model = trainer->Parameters(),
                                               .optimizer = trainer->OptimizerTensors()}));
    const auto resumed = TrainerOf(ConfigOf(to), std::string(kDefaultPasses));
    OrDie(resumed->Restore(OrDie(LoadCheckpoint(dir.path(), 1))));
    OrDie(resumed->Compile());
    const Course course = Finish(*resumed);
    CHECK_EQ(course.losses.back(), oracle.losses.back());
    CHECK(course.parameters == oracle.parameters);
    CHECK(course.optimizer == oracle.optimizer);
  }
}

TEST_CASE("a schedule file replaces the generated schedule") {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/s.csv";
  const auto train = [&](std::string_view csv) {
    OrDie(WriteFile(path, csv));
    return Pipeline("1F1B", 2, 2, 1) + Sets{"parallelism.pipeline_parallel_schedule_csv=" + path};
  };
  const Course oracle = Train(Accumulating(2, 1));
  // Both forwards first, and a split backward on the second rank.
  CheckSameBits(Train(train("0F0,0F1,0B0,0B1\n1F0,1I0,1F1,1W0,1B1\n")), oracle);
  const auto error = [&](std::string_view csv) {
    const TrainConfig config = ConfigOf(train(csv));
    std::string message =
        MessageOf(Trainer::Create({.config = config, .data = OrDie(OpenDataSource(config))}));
    if (const size_t at = message.find(path); at != std::string::npos)
      message.replace(at, path.size(), "s.csv");
    return message;
  };
  CHECK_EQ(error("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1X1\n").substr(0, 31),
           "s.csv:2:13: '1X1' is not an act");
  CHECK_EQ(error("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"), "s.csv: rank 1: 1B1 is missing");
  CHECK_EQ(error("0F0,0B0\n1F0,1B0\n"),
           "a schedule for another pipeline: s.csv: 2 ranks, 2 stages and 1 microbatches, the "
           "configuration has 2, 2 and 2");
}

TEST_CASE("the passes of a pipeline stand before those that make kernels") {
  const auto pipeline = [](const Sets& sets, std::string passes) {
    return TrainerOf(ConfigOf(sets), std::move(passes))->pipeline();
  };
  CHECK_EQ(pipeline(Pipeline("1F1B", 2, 2, 1), "dce,canonicalize,fuse"),
           "dce,canonicalize,split-stages,split-backward,split-optimizer,fuse");
  CHECK_EQ(pipeline(Pipeline("ZBVZeroBubble", 2, 4, 1) +
                        Sets{"parallelism.data_parallel_shard_degree=2"},
                    "dce"),
           "dce,place{mesh=\"fsdp=2\"},lower,dedup-unshards{across_phases=true},"
           "split-stages{stages=4},split-fsdp,split-backward,split-weight-gradients,"
           "split-optimizer{style=v}");
}

}  // namespace
}  // namespace strata
