// Several ranks train as one rank does on the same batches.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "runtime/train/data/data.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/checkpoint_writer.h"
#include "runtime/train/trainer.h"
#include "tests/support/graphs.h"
#include "tests/support/rank_courses.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::CheckClose;
using testing::Copy;
using testing::Course;
using testing::Degree;
using testing::Difference;
using testing::MessageOf;
using testing::OrDie;
using testing::TempDir;
using testing::TrainerOf;
using testing::Values;

constexpr std::string_view kDenseModel = R"(model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 64
multiple_of = 16
seq_len = 16
batch_size = 8
steps = 6
seed = 7
[optimizer]
lr = 3e-3
max_grad_norm = 0.5
)";

TrainConfig DenseConfig(const std::vector<std::string>& sets) {
  return testing::ConfigOf(kDenseModel, sets);
}

Course TrainDense(const std::vector<std::string>& sets) {
  return testing::Train(kDenseModel, sets);
}

TEST_CASE("each layout of ranks trains as one rank does") {
  const std::vector<std::string> validates = {"validator.enable=true", "validator.freq=3",
                                              "validator.steps=2"};
  const auto with = [&](std::vector<std::string> sets) {
    sets.insert(sets.end(), validates.begin(), validates.end());
    return sets;
  };
  const Course oracle = TrainDense(with({}));
  struct Layout {
    int64_t replicate, shard, tensor;
  };
  for (const auto& [replicate, shard, tensor] :
       {Layout{1, 2, 1}, {1, 4, 1}, {2, 1, 1}, {2, 2, 1}, {1, 1, 2}, {1, 2, 2}, {2, 1, 2}}) {
    CAPTURE(replicate);
    CAPTURE(shard);
    CAPTURE(tensor);
    const Course course = TrainDense(with(
        {Degree("data_parallel_replicate", replicate), Degree("data_parallel_shard", shard),
         Degree("tensor_parallel", tensor), fmt::format("batch_size={}", 8 / replicate / shard)}));
    CheckClose(course, oracle);
  }
}

TEST_CASE("batches of a step are summed up on several ranks, and parameters may stay gathered") {
  const Course oracle = TrainDense({"training.num_tokens_per_train_step=256"});
  CheckClose(TrainDense({Degree("data_parallel_shard", 2), "batch_size=4",
                         "training.num_tokens_per_train_step=256",
                         "parallelism.fsdp_reshard_after_forward=never"}),
             oracle);
}

TEST_CASE("ranks of tensor parallelism share sequences, or have whole ones") {
  const Course oracle = TrainDense({});
  for (const char* sharing : {"true", "false"}) {
    const std::string key = "parallelism.enable_sequence_parallel=";
    CheckClose(TrainDense({Degree("tensor_parallel", 2), key + sharing}), oracle);
  }
}

TEST_CASE("ranks that share sequences train as one rank does") {
  const Course oracle = TrainDense({});
  struct Layout {
    int64_t shard, context, tensor;
  };
  for (const auto& [shard, context, tensor] : {Layout{1, 2, 1}, {1, 4, 1}, {2, 2, 1}, {1, 2, 2}}) {
    CAPTURE(shard);
    CAPTURE(context);
    CAPTURE(tensor);
    CheckClose(
        TrainDense({Degree("data_parallel_shard", shard), Degree("context_parallel", context),
                    Degree("tensor_parallel", tensor), fmt::format("batch_size={}", 8 / shard)}),
        oracle);
  }
}

TEST_CASE("ranks that compute the loss in chunks train as one rank does") {
  const std::vector<std::string> chunks = {"loss.name=chunked_cross_entropy", "loss.num_chunks=2"};
  const Course oracle = TrainDense(chunks);
  for (const std::vector<std::string>& layout :
       {std::vector{Degree("data_parallel_shard", 2), std::string("batch_size=4")},
        {Degree("tensor_parallel", 2)},
        {Degree("tensor_parallel", 2), "parallelism.enable_sequence_parallel=false"},
        {Degree("tensor_parallel", 2), "parallelism.disable_loss_parallel=true"},
        {Degree("data_parallel_replicate", 2), Degree("data_parallel_shard", 2),
         Degree("tensor_parallel", 2), "batch_size=2"},
        {Degree("context_parallel", 2), Degree("tensor_parallel", 2)}}) {
    CAPTURE(layout);
    std::vector<std::string> sets = chunks;
    sets.insert(sets.end(), layout.begin(), layout.end());
    CheckClose(TrainDense(sets), oracle);
  }
}

/// A query sees its own document, wherever a rank has a part of it.
TEST_CASE("ranks that share documents in one sequence train as one rank does") {
  const TempDir dir;
  std::string bytes;
  for (uint32_t i = 0; i < 3000; ++i) {
    bytes += static_cast<char>(i * 2654435761U >> 28U == 0 ? 1 : 2 + i * i % 60);
    bytes += '\0';
  }
  OrDie(WriteFile(dir / "tokens.bin", bytes));
  const auto on_documents = [&](std::vector<std::string> sets) {
    for (const char* set : {"attn_mask_type=block_causal", "dataloader.dataset=tokens",
                            "dataloader.end_of_document=1", "dataloader.shuffle=false"})
      sets.emplace_back(set);
    sets.push_back(fmt::format("dataloader.dataset_path={}", dir / "tokens.bin"));
    return TrainDense(sets);
  };
  const Course oracle = on_documents({});
  CHECK_NE(oracle.steps.back().loss, TrainDense({}).steps.back().loss);
  for (const std::vector<std::string>& layout :
       {std::vector{Degree("data_parallel_shard", 2), std::string("batch_size=4")},
        {Degree("tensor_parallel", 2)},
        {Degree("context_parallel", 2)},
        {Degree("context_parallel", 2), Degree("tensor_parallel", 2)},
        {Degree("data_parallel_replicate", 2), Degree("data_parallel_shard", 2), "batch_size=2"}}) {
    CAPTURE(layout);
    CheckClose(on_documents(layout), oracle);
  }
}

TEST_CASE("ranks with flex attention train as one rank does") {
  // Alibi computes with the number of a head: ranks that share heads gather them.
  for (const char* more : {"flex.window=5", "flex.alibi=true"}) {
    CAPTURE(more);
    const std::vector<std::string> flex = {"attn_type=flex", "flex.block_size=4", more};
    const Course oracle = TrainDense(flex);
    for (const std::vector<std::string>& layout :
         {std::vector{Degree("data_parallel_shard", 2), std::string("batch_size=4")},
          {Degree("tensor_parallel", 2)},
          {Degree("context_parallel", 2)},
          {Degree("data_parallel_shard", 2), Degree("tensor_parallel", 2), "batch_size=4"}}) {
      CAPTURE(layout);
      std::vector<std::string> sets = flex;
      sets.insert(sets.end(), layout.begin(), layout.end());
      CheckClose(TrainDense(sets), oracle);
    }
  }
}

TEST_CASE("ranks that do not divide parameters train as one rank does") {
  const std::vector<std::string> odd = {"vocab_size=41", "batch_size=6"};
  const Course oracle = TrainDense(odd);
  struct Layout {
    int64_t shard, tensor;
  };
  for (const auto& [shard, tensor] : {Layout{3, 1}, {1, 2}, {3, 2}}) {
    CAPTURE(shard);
    CAPTURE(tensor);
    CheckClose(
        TrainDense({"vocab_size=41", fmt::format("batch_size={}", 6 / shard),
                    Degree("data_parallel_shard", shard), Degree("tensor_parallel", tensor)}),
        oracle);
  }
}

TEST_CASE("ranks gather the logits before the loss, or do not") {
  const Course oracle = TrainDense({});
  for (const char* disabled : {"true", "false"}) {
    const std::string key = "parallelism.disable_loss_parallel=";
    CheckClose(TrainDense({Degree("tensor_parallel", 2), key + disabled}), oracle);
  }
}

TEST_CASE("two runs on the same ranks have equal bits") {
  const std::vector<std::string> sets = {Degree("data_parallel_shard", 2), "batch_size=4"};
  const Course first = TrainDense(sets), second = TrainDense(sets);
  CHECK_EQ(Difference(first.parameters, second.parameters), 0.0);
  for (size_t i = 0; i < first.steps.size(); ++i)
    CHECK_EQ(first.steps[i].loss, second.steps[i].loss);
}

TEST_CASE("a checkpoint resumes on any number of ranks") {
  const std::vector<std::vector<std::string>> layouts = {
      {},
      {Degree("data_parallel_shard", 2), "batch_size=4"},
      {Degree("data_parallel_shard", 2), Degree("data_parallel_replicate", 2), "batch_size=2"}};
  for (const std::vector<std::string>& from : layouts) {
    const TempDir dir;
    const auto trainer = TrainerOf(DenseConfig(from));
    OrDie(trainer->Compile());
    for (int step = 0; step < 3; ++step)
      OrDie(trainer->Step());
    CheckpointWriter writer = OrDie(CheckpointWriter::Open(dir.path(), {}));
    CHECK_OK(writer.Save(trainer->Position(), {.model = trainer->Parameters(),
                                               .optimizer = trainer->OptimizerTensors()}));
    const Values at_checkpoint = Copy(trainer->Parameters());
    std::vector<double> losses;
    while (OrDie(trainer->HasNext()))
      losses.push_back(OrDie(trainer->Step()).metrics.loss);
    for (const std::vector<std::string>& to : layouts) {
      const auto resumed = TrainerOf(DenseConfig(to));
      const Checkpoint checkpoint = OrDie(LoadCheckpoint(dir.path(), 3));
      CHECK(OrDie(resumed->Restore(checkpoint)).empty());
      OrDie(resumed->Compile());
      CHECK_EQ(Difference(Copy(resumed->Parameters()), at_checkpoint), 0.0);
      for (size_t i = 0; OrDie(resumed->HasNext()); ++i) {
        const double loss = OrDie(resumed->Step()).metrics.loss;
        if (from == to) {
          CHECK_EQ(loss, losses[i]);  // bit for bit
        } else {
          CHECK_EQ(loss, doctest::Approx(losses[i]).epsilon(2e-6));
        }
      }
    }
  }
}

TEST_CASE("place and lower stand in the pipeline after the cleanup, with what they need") {
  const auto pipeline = [](const std::string& passes, std::vector<std::string> sets) {
    const TrainConfig config = DenseConfig(sets);
    return OrDie(Trainer::Create(
                     {.config = config, .data = OrDie(OpenDataSource(config)), .passes = passes}))
        ->pipeline();
  };
  const std::string two = Degree("data_parallel_shard", 2);
  CHECK_EQ(pipeline("dce,canonicalize", {}), "dce,canonicalize");
  CHECK_EQ(pipeline("dce,canonicalize", {two}),
           "dce,canonicalize,place{mesh=\"fsdp=2\"},lower,bucket-transformer-blocks");
  CHECK_EQ(pipeline("dce,canonicalize",
                    {Degree("tensor_parallel", 2), "parallelism.enable_sequence_parallel=false",
                     "parallelism.fsdp_reshard_after_forward=never"}),
           "dce,canonicalize,place{mesh=\"tp=2\",plan=llama3,sequence_parallel=false,"
           "reshard_after_forward=false},lower,bucket-transformer-blocks");
  CHECK_EQ(pipeline("dce,canonicalize,fuse", {two}),
           "dce,canonicalize,place{mesh=\"fsdp=2\"},lower,bucket-transformer-blocks,fuse");
  CHECK_EQ(pipeline("fuse", {two, "compile.enable_passes=false"}), "place{mesh=\"fsdp=2\"},lower");
  CHECK_EQ(pipeline("place{mesh=\"fsdp=2\"},dce,lower", {two}),
           "place{mesh=\"fsdp=2\"},dce,lower,bucket-transformer-blocks");
  CHECK_EQ(pipeline("fuse",
                    {two, "compile.enable_fsdp_ag_rs_overlap=true", "compile.memory_policy=full"}),
           "place{mesh=\"fsdp=2\"},lower,tag-memory{policy=full},recompute,reassign-groups,"
           "bucket-transformer-blocks,fuse");
  CHECK_EQ(pipeline("dce,bucket-transformer-blocks{reorder=false}", {two}),
           "dce,place{mesh=\"fsdp=2\"},lower,bucket-transformer-blocks{reorder=false}");
}

TEST_CASE("what several ranks cannot do yet is refused") {
  const auto refusal = [](std::vector<std::string> sets) {
    sets.push_back(Degree("data_parallel_shard", 2));
    const TrainConfig config = DenseConfig(sets);
    return MessageOf(Trainer::Create({.config = config, .data = OrDie(OpenDataSource(config))}));
  };
  CHECK_EQ(
      refusal({"device=cuda"}),
      "ranks on GPUs are processes: parallelism: the degrees make 2 (fsdp=2), start as many by "
      "--nproc or a launcher, or take device = 'cpu'");
  CHECK_EQ(refusal({"compile.symbolic_dims=batch"}),
           "several ranks have batches of one size: compile.symbolic_dims: take 'none'");
}

TEST_CASE("graphs that no pass lowered are refused") {
  TrainConfig config = DenseConfig({Degree("data_parallel_shard", 2)});
  const auto trainer = OrDie(Trainer::Create({.config = config,
                                              .data = OrDie(OpenDataSource(config)),
                                              .passes = "place{mesh=\"fsdp=2\"}"}));
  CHECK_EQ(MessageOf(trainer->Compile()),
           "graph step cannot run on several ranks: tok_embeddings_weight: no attribute 'global': "
           "run the passes place and lower");
}

}  // namespace
}  // namespace strata
