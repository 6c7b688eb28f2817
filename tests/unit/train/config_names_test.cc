#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/config/config.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using Sets = std::vector<std::string>;

constexpr std::string_view kNested = R"(
model = "llama3"
dim = 32
n_layers = 2
n_heads = 4
vocab_size = 48
multiple_of = 16
batch_size = 2
[training]
steps = 10
max_context_length = 16
max_norm = 0.5
[debug]
seed = 3
)";

// As torchtitan's configurations were written while they were TOML.
constexpr std::string_view kJob = R"(
[job]
dump_folder = "./runs/first"
description = "a first look at the loop"
print_args = false
[profiling]
enable_profiling = false
save_traces_folder = "profile_trace"
profile_freq = 20
[metrics]
log_freq = 5
enable_tensorboard = false
[model]
name = "qwen3"
flavor = "30B-A3B"
hf_assets_path = "./assets/hf/Qwen3-30B-A3B"
converters = []
[optimizer]
name = "AdamW"
lr = 3e-4
[lr_scheduler]
warmup_steps = 4
lr_min = 0.1
[training]
local_batch_size = 2
global_batch_size = 8
seq_len = 128
max_norm = 0.5
steps = 40
compile = true
dataset = "c4_test"
dataset_path = "data/c4.jsonl"
[parallelism]
data_parallel_shard_degree = -1
context_parallel_rotate_method = "allgather"
[checkpoint]
enable_checkpoint = true
interval = 10
model_weights_only = false
[activation_checkpoint]
mode = "none"
selective_ac_option = "op"
[quantize.linear.float8]
enable_fsdp_float8_all_gather = false
[validation]
enable = true
dataset_path = "data/held_out.jsonl"
freq = 7
steps = 2
)";

TrainConfig Parse(std::string_view text, const Sets& sets = {}) {
  Result<TrainConfig> config = ParseTrainConfig(text, ConfigFormat::kToml, "c.toml", sets);
  REQUIRE_OK(config);
  return *std::move(config);
}

std::string ErrorOf(std::string_view text, const Sets& sets = {}) {
  const auto config = ParseTrainConfig(text, ConfigFormat::kToml, "c.toml", sets);
  return config ? "" : std::string(config.error().message());
}

TEST_CASE("an override replaces what the file says by another name") {
  const TrainConfig config = Parse(
      kNested, {"steps=5", "seq_len=8", "optimizer.max_grad_norm=2", "seed=9", "training.steps=7"});
  CHECK_EQ(config.steps, 7);
  CHECK_EQ(config.seq_len, 8);
  CHECK_EQ(config.optimizer.max_grad_norm, 2.0);
  CHECK_EQ(config.seed, 9);
}

TEST_CASE("an override of the batch replaces what the file says in another unit") {
  const TrainConfig by_tokens =
      Parse(kNested, {"training.num_tokens_per_microbatch_per_dp_rank=64"});
  CHECK_EQ(by_tokens.batch_size, 4);
  const TrainConfig by_sequences =
      Parse(kNested, {"training.num_tokens_per_train_step=64", "training.global_batch_size=6"});
  CHECK_EQ(by_sequences.accumulation_steps, 3);
}

TEST_CASE("a field that a file gives by two names is an error that names both") {
  CHECK_EQ(ErrorOf(std::string("steps = 4\n") + std::string(kNested)),
           "'steps' and 'training.steps' are the same: c.toml:11: give one of them");
}

TEST_CASE("messages name a key as the file does") {
  CHECK_EQ(ErrorOf(kNested, {"training.max_norm=-1"}),
           "impossible value for 'training.max_norm': --set training.max_norm=-1: -1 must be more "
           "than 0");
  CHECK_EQ(ErrorOf(kNested, {"training.local_batch_size=many"}),
           "wrong type for 'training.local_batch_size': --set training.local_batch_size=many: "
           "expected an integer, found the string 'many'");
  CHECK_EQ(ErrorOf(kNested, {"training.stps=4"}),
           "unknown key 'training.stps': --set training.stps=4: did you mean 'training.steps'?");
}

TEST_CASE("a configuration of torchtitan's in TOML is read by its own names") {
  const TrainConfig config = Parse(kJob);
  CHECK_EQ(config.model, ModelFamily::kQwen3);
  CHECK_EQ(config.dim, 2048);
  CHECK_EQ(config.n_layers, 48);
  REQUIRE(config.moe.has_value());
  CHECK_EQ(config.moe->num_experts, 128);
  CHECK_EQ(config.moe->score_func, ScoreFunction::kSoftmax);
  CHECK_EQ(config.rope.theta, 1e6);
  CHECK_EQ(config.batch_size, 2);
  CHECK_EQ(config.accumulation_steps, 4);
  CHECK_EQ(config.seq_len, 128);
  CHECK_EQ(config.steps, 40);
  CHECK_EQ(config.optimizer.lr, 3e-4);
  CHECK_EQ(config.optimizer.max_grad_norm, 0.5);
  REQUIRE(config.lr_scheduler.has_value());
  CHECK_EQ(config.lr_scheduler->min_lr_factor, 0.1);
  CHECK_EQ(config.dump_folder, "./runs/first");
  CHECK_EQ(config.profiler.profile_freq, 20);
  CHECK_EQ(config.dataloader.dataset, DatasetKind::kText);
  CHECK_EQ(config.dataloader.dataset_path, std::vector<std::string>{"data/c4.jsonl"});
  CHECK_EQ(config.dataloader.tokenizer, "./assets/hf/Qwen3-30B-A3B");
  CHECK(config.checkpoint.enable);
  CHECK_FALSE(config.checkpoint.last_save_model_only);
  CHECK(config.validator.enable);
  CHECK_EQ(config.validator.freq, 7);
}

TEST_CASE("degrees are read where older configurations of torchtitan's have them") {
  const Sets sets = {"batch_size=8", "training.data_parallel_shard_degree=2",
                     "training.tensor_parallel_degree=2",
                     "experimental.pipeline_parallel_degree=2"};
  const TrainConfig config = Parse(kNested, sets);
  CHECK_EQ(config.parallelism.dp_shard, 2);
  CHECK_EQ(config.parallelism.tensor, 2);
  CHECK_EQ(config.parallelism.pipeline.degree, 2);
  CHECK_EQ(ErrorOf(kNested, {"training.data_parallel_degree=4"}),
           "unknown key 'training.data_parallel_degree': --set training.data_parallel_degree=4: "
           "take 'parallelism.data_parallel_shard_degree' (FSDP), or "
           "'parallelism.data_parallel_replicate_degree' (whole copies)");
}

TEST_CASE("a batch of validation has the sizes of training, whatever torchtitan's keys say") {
  CHECK_EQ(ErrorOf(kNested, {"validation.local_batch_size=2", "validation.seq_len=16"}), "");
  CHECK_EQ(ErrorOf(kNested, {"validation.local_batch_size=4"}),
           "impossible value for 'validation.local_batch_size': --set "
           "validation.local_batch_size=4: a batch of validation is as large as one of training, "
           "remove it");
  CHECK_EQ(ErrorOf(kNested, {"validation.seq_len=32"}),
           "impossible value for 'validation.seq_len': --set validation.seq_len=32: a batch of "
           "validation is as large as one of training, remove it");
}

TEST_CASE("fields beside a flavor win over those of the flavor") {
  const TrainConfig config = Parse(kJob, {"n_layers=2", "moe.top_k=4"});
  CHECK_EQ(config.n_layers, 2);
  CHECK_EQ(config.moe->top_k, 4);
  CHECK_EQ(config.moe->num_experts, 128);
}

TEST_CASE("a flavor that the model does not have is an error that lists those it has") {
  CHECK_EQ(ErrorOf(kJob, {"model.name=llama3", "model.flavor=7B"}),
           "no flavor '7B' of llama3: --set model.flavor=7B: choose one of 1b, 3b, 8b, 70b, 405b, "
           "debugmodel, did you mean '1b'");
}

TEST_CASE("sequences of a step are those of whole batches") {
  CHECK_EQ(ErrorOf(kNested, {"training.global_batch_size=5"}),
           "impossible value for 'training.global_batch_size': --set training.global_batch_size=5: "
           "5 sequences are no multiple of the 2 of a batch (batch_size)");
  CHECK_EQ(ErrorOf(kNested, {"training.global_batch_size=0"}),
           "impossible value for 'training.global_batch_size': --set training.global_batch_size=0: "
           "0 must be from 1 to 2147483647, or -1 for one batch");
  CHECK_EQ(Parse(kNested, {"training.global_batch_size=-1"}).accumulation_steps, 1);
}

TEST_CASE("torchtitan's modes of activation checkpointing are memory policies") {
  const auto policy = [](const std::vector<std::string>& sets) {
    return Parse(kNested, sets).compile.memory_policy;
  };
  CHECK_EQ(policy({"activation_checkpoint.mode=none"}), "none");
  CHECK_EQ(policy({"activation_checkpoint.mode=full"}), "full");
  CHECK_EQ(policy({"activation_checkpoint.mode=selective",
                   "activation_checkpoint.selective_ac_option=op"}),
           "default");
  CHECK_EQ(
      policy({"activation_checkpoint.mode=memory_budget", "activation_checkpoint.memory_budget=1"}),
      "min_cut");
  CHECK_EQ(policy({"activation_checkpoint.mode=full", "compile.memory_policy=full"}), "full");
  CHECK_EQ(policy({"activation_checkpoint.mode=full",
                   "compile.full_recompute_save_ops=lm_head::aten.mm.default"}),
           "full");
  CHECK_EQ(ErrorOf(kNested, {"activation_checkpoint.mode=selective",
                             "activation_checkpoint.selective_ac_option=2"}),
           "impossible value for 'activation_checkpoint.selective_ac_option': --set "
           "activation_checkpoint.selective_ac_option=2: operators are chosen, not layers by "
           "number, take 'op'");
}

TEST_CASE("keys of torchtitan's that ask for what a run does not do name the replacement") {
  const auto refusal = [](const std::string& set) {
    const std::string message = ErrorOf(kNested, {set});
    return message.substr(message.find(set + ": ") + set.size() + 2);
  };
  CHECK_EQ(ErrorOf(kNested, {"model.converters=[\"mx\"]"}),
           "impossible value for 'model.converters': --set model.converters=[\\\"mx\\\"]: models "
           "compute in float32 or bfloat16, "
           "take [] and training.mixed_precision_param");
  CHECK_EQ(refusal("training.dataset=c4"), "name the files of the dataset, nothing is downloaded");
}

TEST_CASE("a configuration names its passes, as a pipeline or as an array") {
  CHECK_EQ(Parse(kNested).compile.passes, "");
  CHECK_EQ(Parse(kNested, {"compile.passes=dce,fuse{numerics=fast}"}).compile.passes,
           "dce,fuse{numerics=fast}");
  CHECK_EQ(Parse(kNested, {"compile.passes=[\"dce\", \"fuse{min=3}\"]"}).compile.passes,
           "dce,fuse{min=3}");
}

}  // namespace
}  // namespace strata
