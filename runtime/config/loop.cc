#include "runtime/config/loop.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/config/checkpoint.h"
#include "runtime/config/checks.h"
#include "runtime/config/compile.h"
#include "runtime/config/debug.h"
#include "runtime/config/ranks.h"

namespace strata {
namespace {

void ReadPrecision(ConfigReader& reader, std::string_view key, Precision& target) {
  reader.Read<Precision>(
      key, {{"float32", Precision::kFloat32}, {"bfloat16", Precision::kBFloat16}}, target);
}

/// Sequences of a step, where `training.num_tokens_per_train_step` counts tokens.
void ReadGlobalBatch(ConfigReader& reader, TrainConfig& config) {
  constexpr std::string_view kKey = "training.global_batch_size";
  int64_t sequences = -1;
  reader.Read(kKey, sequences);
  reader.ForbidBoth("training.num_tokens_per_train_step", kKey);
  if (!reader.Has(kKey)) return;
  if (sequences != -1 && (sequences < 1 || sequences > kMaxSize)) {
    reader.Refuse(kKey,
                  fmt::format("{} must be from 1 to {}, or -1 for one batch", sequences, kMaxSize));
    return;
  }
  const bool has_length = config.seq_len > 0 && config.seq_len <= kMaxSize;
  if (sequences > 0 && has_length) config.accumulation_steps = sequences * config.seq_len;
  if (sequences == -1) config.accumulation_steps = -1;
}

void ReadTraining(ConfigReader& reader, TrainConfig& config) {
  reader.Table("training");
  reader.Require("steps", config.steps);
  reader.Require("seq_len", config.seq_len);
  reader.Read("batch_size", config.batch_size);
  int64_t tokens = 0;
  reader.Read("training.num_tokens_per_microbatch_per_dp_rank", tokens);
  reader.ForbidBoth("batch_size", "training.num_tokens_per_microbatch_per_dp_rank");
  if (!reader.Has("training.num_tokens_per_microbatch_per_dp_rank"))
    reader.RequireKey("batch_size");
  // The quotient is checked when the sizes are.
  if (config.seq_len > 0 && reader.Has("training.num_tokens_per_microbatch_per_dp_rank")) {
    config.batch_size = tokens / config.seq_len;
    if (config.batch_size > 0 && tokens % config.seq_len != 0) {
      reader.Refuse(
          "training.num_tokens_per_microbatch_per_dp_rank",
          fmt::format("{} tokens are no multiple of the {} of a sequence", tokens, config.seq_len));
    }
  }
  reader.Read("training.num_tokens_per_train_step", config.accumulation_steps);
  ReadGlobalBatch(reader, config);
  Precision only = Precision::kFloat32;
  reader.Read<Precision>("training.dtype",
                         {{"float32", Precision::kFloat32}, {"float64", Precision::kFloat64}},
                         config.dtype);
  reader.Read<Precision>("training.mixed_precision_reduce", {{"float32", Precision::kFloat32}},
                         only);
  ReadPrecision(reader, "training.mixed_precision_param", config.mixed_precision_param);
  reader.Read<AttentionMask>(
      "attn_mask_type",
      {{"causal", AttentionMask::kCausal}, {"block_causal", AttentionMask::kBlockCausal}},
      config.attn_mask_type);
  reader.Read<DeviceKind>("device", {{"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}},
                          config.device);
  reader.Read<bool>("training.float32_matmul_precision", {{"highest", false}, {"high", true}},
                    config.allow_tf32);
  reader.Read("dump_folder", config.dump_folder);
  reader.Read("training.disable_cuda_graphs", config.disable_cuda_graphs);
  for (const auto& [key, accepted] :
       {NamedValue<ConfigValue>{"training.gc_freq", int64_t{50}}, {"training.gc_debug", false}})
    reader.Fix(key, accepted, "there is no garbage to collect, remove it");
}

void ReadOptimizer(ConfigReader& reader, OptimizerConfig& optimizer) {
  enum class OptimizerName : uint8_t { kAdamW };
  OptimizerName name = OptimizerName::kAdamW;
  reader.Table("optimizer");
  reader.Read<OptimizerName>("optimizer.name", {{"AdamW", OptimizerName::kAdamW}}, name);
  reader.Fix("optimizer.implementation", "fused",
             "the update is one operator of the graph, take 'fused'");
  reader.Read("optimizer.lr", optimizer.lr);
  reader.Read("optimizer.beta1", optimizer.beta1);
  reader.Read("optimizer.beta2", optimizer.beta2);
  reader.Read("optimizer.eps", optimizer.eps);
  reader.Read("optimizer.weight_decay", optimizer.weight_decay);
  reader.Read("optimizer.max_grad_norm", optimizer.max_grad_norm);
  reader.Table("optimizer.param_groups");
  for (const std::string& group_name : reader.Tables("optimizer.param_groups")) {
    const std::string table = fmt::format("optimizer.param_groups.{}", group_name);
    ParamGroup group{.name = group_name, .pattern = {}, .adamw = optimizer};
    reader.Table(table);
    reader.Require(table + ".pattern", group.pattern);
    reader.Read(table + ".lr", group.adamw.lr);
    reader.Read(table + ".beta1", group.adamw.beta1);
    reader.Read(table + ".beta2", group.adamw.beta2);
    reader.Read(table + ".eps", group.adamw.eps);
    reader.Read(table + ".weight_decay", group.adamw.weight_decay);
    optimizer.param_groups.push_back(std::move(group));
  }
}

void ReadScheduler(ConfigReader& reader, std::optional<LrSchedulerConfig>& target) {
  LrSchedulerConfig scheduler;
  reader.Table("lr_scheduler");
  reader.Read("lr_scheduler.warmup_steps", scheduler.warmup_steps);
  reader.Read("lr_scheduler.total_steps", scheduler.total_steps);
  reader.Read("lr_scheduler.decay_ratio", scheduler.decay_ratio);
  reader.Read<DecayType>(
      "lr_scheduler.decay_type",
      {{"linear", DecayType::kLinear}, {"sqrt", DecayType::kSqrt}, {"cosine", DecayType::kCosine}},
      scheduler.decay_type);
  reader.Read("lr_scheduler.min_lr_factor", scheduler.min_lr_factor);
  if (reader.HasTable("lr_scheduler")) target = scheduler;
}

void ReadLoss(ConfigReader& reader, LossConfig& loss) {
  reader.Table("loss");
  reader.Read<LossFunction>("loss.name",
                            {{"cross_entropy", LossFunction::kCrossEntropy},
                             {"chunked_cross_entropy", LossFunction::kChunkedCrossEntropy}},
                            loss.name);
  reader.Read("loss.num_chunks", loss.num_chunks);
}

void ReadValidator(ConfigReader& reader, TrainConfig& config) {
  ValidatorConfig& validator = config.validator;
  reader.Table("validator");
  reader.Read("validator.enable", validator.enable);
  reader.Read("validator.freq", validator.freq);
  reader.Read("validator.steps", validator.steps);
  reader.ReadPaths("validator.dataset_path", validator.dataset_path);
  constexpr std::string_view kAdvice =
      "a batch of validation is as large as one of training, remove it";
  reader.Fix("validator.local_batch_size", config.batch_size, kAdvice);
  reader.Fix("validator.seq_len", config.seq_len, kAdvice);
}

void ReadDataloader(ConfigReader& reader, DataloaderConfig& data) {
  reader.Table("dataloader");
  reader.Read<DatasetKind>("dataloader.dataset",
                           {{"synthetic", DatasetKind::kSynthetic},
                            {"tokens", DatasetKind::kTokens},
                            {"text", DatasetKind::kText},
                            // torchtitan's names of C4, which is text; nothing is downloaded.
                            {"c4", DatasetKind::kText},
                            {"c4_test", DatasetKind::kText}},
                           data.dataset);
  reader.ReadPaths("dataloader.dataset_path", data.dataset_path);
  reader.Read("dataloader.tokenizer", data.tokenizer);
  reader.Read("dataloader.text_key", data.text_key);
  reader.Read("dataloader.token_dtype", data.token_dtype);
  int64_t end = -1;
  reader.Read("dataloader.end_of_document", end);
  if (reader.Has("dataloader.end_of_document")) data.end_of_document = end;
  reader.Read<PackingMode>(
      "dataloader.packing",
      {{"concat_then_split", PackingMode::kConcatThenSplit}, {"first_fit", PackingMode::kFirstFit}},
      data.packing);
  reader.Read("dataloader.seed", data.seed);
  reader.Read("dataloader.shuffle", data.shuffle);
  reader.Read("dataloader.repeat", data.repeat);
}

void ReadMetrics(ConfigReader& reader, MetricsConfig& metrics) {
  reader.Table("metrics");
  reader.Read("metrics.log_freq", metrics.log_freq);
  reader.Read("metrics.enable_tensorboard", metrics.enable_tensorboard);
  reader.Read("metrics.save_tb_folder", metrics.save_tb_folder);
  reader.Fix("metrics.enable_wandb", false,
             "nothing is sent, take false, and metrics.enable_tensorboard");
  for (const std::string_view key :
       {"metrics.save_for_all_ranks", "metrics.disable_color_printing"}) {
    bool any = false;  // there is one rank, and no colour
    reader.Read(key, any);
  }
}

Status CompleteTraining(const ConfigReader& reader, TrainConfig& config) {
  constexpr std::string_view kBatchTokens = "training.num_tokens_per_microbatch_per_dp_rank";
  constexpr std::string_view kStepTokens = "training.num_tokens_per_train_step";
  constexpr std::string_view kStepSequences = "training.global_batch_size";
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "steps", config.steps));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "seq_len", config.seq_len));
  if (reader.Has(kBatchTokens) && config.batch_size < 1) {
    return Impossible(reader, kBatchTokens, "it must hold a sequence of {} tokens", config.seq_len);
  }
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "batch_size", config.batch_size));
  config.batch_size *= config.parallelism.data_ranks();
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "batch_size", config.batch_size));
  const bool by_sequences = reader.Has(kStepSequences);
  if ((!by_sequences && !reader.Has(kStepTokens)) || config.accumulation_steps == -1) {
    config.accumulation_steps = 1;
    return Ok();
  }
  const int64_t batch_tokens = config.batch_size * config.seq_len;
  if (config.accumulation_steps < 1) {
    return Impossible(reader, kStepTokens, "{} must be at least 1, or -1 for one batch",
                      config.accumulation_steps);
  }
  if (by_sequences && config.accumulation_steps % batch_tokens != 0) {
    return Impossible(reader, kStepSequences,
                      "{} sequences are no multiple of the {} of a batch (batch_size{})",
                      config.accumulation_steps / config.seq_len, config.batch_size,
                      config.parallelism.data_ranks() > 1 ? " · data ranks" : "");
  }
  if (config.accumulation_steps % batch_tokens != 0) {
    return Impossible(reader, kStepTokens,
                      "{} tokens are no multiple of the {} of a batch (batch_size · seq_len{})",
                      config.accumulation_steps, batch_tokens,
                      config.parallelism.data_ranks() > 1 ? " · data ranks" : "");
  }
  config.accumulation_steps /= batch_tokens;
  if (config.accumulation_steps <= kMaxSize) return Ok();
  return Impossible(reader, kStepTokens, "{} batches in a step are more than {}, take fewer tokens",
                    config.accumulation_steps, kMaxSize);
}

Status CheckAdamW(const ConfigReader& reader, const std::string& table, const AdamWConfig& adamw) {
  for (const auto& [key, beta] : {NamedValue{"beta1", adamw.beta1}, {"beta2", adamw.beta2}}) {
    if (beta >= 0.0 && beta < 1.0) continue;
    return Impossible(reader, fmt::format("{}.{}", table, key),
                      "{} must be at least 0 and less than 1", beta);
  }
  for (const auto& [key, value] :
       {NamedValue{"lr", adamw.lr}, {"weight_decay", adamw.weight_decay}}) {
    if (value >= 0.0) continue;
    return Impossible(reader, fmt::format("{}.{}", table, key), "{} must be at least 0", value);
  }
  return CheckPositive(reader, table + ".eps", adamw.eps);
}

Status CheckOptimizer(const ConfigReader& reader, const OptimizerConfig& optimizer) {
  STRATA_RETURN_IF_ERROR(CheckAdamW(reader, "optimizer", optimizer));
  for (const ParamGroup& group : optimizer.param_groups) {
    STRATA_RETURN_IF_ERROR(
        CheckAdamW(reader, fmt::format("optimizer.param_groups.{}", group.name), group.adamw));
  }
  if (!optimizer.max_grad_norm) return Ok();
  return CheckPositive(reader, "optimizer.max_grad_norm", *optimizer.max_grad_norm);
}

Status CompleteScheduler(const ConfigReader& reader, int64_t steps, LrSchedulerConfig& scheduler) {
  if (!reader.Has("lr_scheduler.total_steps")) scheduler.total_steps = steps;
  STRATA_RETURN_IF_ERROR(
      CheckRange(reader, "lr_scheduler.warmup_steps", scheduler.warmup_steps, 0, kMaxSize));
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "lr_scheduler.total_steps", scheduler.total_steps));
  for (const auto& [key, share] :
       {NamedValue{"lr_scheduler.decay_ratio", scheduler.decay_ratio.value_or(0.0)},
        {"lr_scheduler.min_lr_factor", scheduler.min_lr_factor}}) {
    if (share >= 0.0 && share <= 1.0) continue;
    return Impossible(reader, key, "{} must be from 0 to 1", share);
  }
  return Ok();
}

Status CheckLoss(const ConfigReader& reader, const TrainConfig& config) {
  if (config.loss.name != LossFunction::kChunkedCrossEntropy) {
    if (!reader.Has("loss.num_chunks")) return Ok();
    return Impossible(reader, "loss.num_chunks",
                      "only loss.name = 'chunked_cross_entropy' has chunks");
  }
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "loss.num_chunks", config.loss.num_chunks));
  if (config.seq_len % config.loss.num_chunks != 0) {
    return Impossible(reader, "loss.num_chunks",
                      "{} chunks do not divide seq_len {}, choose a divisor",
                      config.loss.num_chunks, config.seq_len);
  }
  return Ok();
}

/// fp64 is a way to compare: everything is computed in it, on the CPU.
Status CheckDtype(const ConfigReader& reader, const TrainConfig& config) {
  if (config.dtype != Precision::kFloat64) return Ok();
  if (config.mixed_precision_param != Precision::kFloat32) {
    return Impossible(reader, "training.mixed_precision_param",
                      "a model of training.dtype = 'float64' computes in float64, take 'float32'");
  }
  if (config.device != DeviceKind::kCpu)
    return Impossible(reader, "training.dtype", "float64 runs on CPUs, take 'float32'");
  if (config.moe && config.moe->use_grouped_mm) {
    return Impossible(reader, "training.dtype",
                      "grouped products of experts have no float64, take 'float32' or "
                      "moe.use_grouped_mm = false");
  }
  return Ok();
}

Status CheckDataloader(const ConfigReader& reader, const TrainConfig& config) {
  const DataloaderConfig& data = config.dataloader;
  const bool has_path = !data.dataset_path.empty();
  if (data.dataset != DatasetKind::kSynthetic && !has_path) {
    return Error(
        "missing key 'dataloader.dataset_path': {}: name the files of the dataset, nothing "
        "is downloaded",
        reader.Where("dataloader.dataset"));
  }
  if (data.dataset == DatasetKind::kSynthetic && has_path) {
    return Impossible(reader, "dataloader.dataset_path",
                      "synthetic data need none, take dataset = 'tokens' or 'text'");
  }
  if (data.token_dtype != "uint16" && data.token_dtype != "uint32") {
    return Impossible(reader, "dataloader.token_dtype", "'{}' must be 'uint16' or 'uint32'",
                      data.token_dtype);
  }
  if (data.end_of_document) {
    STRATA_RETURN_IF_ERROR(CheckRange(reader, "dataloader.end_of_document", *data.end_of_document,
                                      0, config.vocab_size - 1));
  }
  if (config.attn_mask_type == AttentionMask::kBlockCausal &&
      data.dataset == DatasetKind::kSynthetic) {
    return Impossible(reader, "attn_mask_type",
                      "synthetic data have no documents, take 'causal' or another dataset");
  }
  return Ok();
}

Status CheckValidator(const ConfigReader& reader, const TrainConfig& config) {
  const ValidatorConfig& validator = config.validator;
  if (!validator.enable) return Ok();
  STRATA_RETURN_IF_ERROR(CheckSize(reader, "validator.freq", validator.freq));
  if (validator.steps != -1 && validator.steps < 1) {
    return Impossible(reader, "validator.steps", "{} must be at least 1, or -1 for all the data",
                      validator.steps);
  }
  if (config.dataloader.dataset == DatasetKind::kSynthetic) {
    if (validator.steps != -1) return Ok();
    return Impossible(reader, "validator.steps", "synthetic data have no end, give a number");
  }
  if (!validator.dataset_path.empty()) return Ok();
  return Error("missing key 'validator.dataset_path': {}: name the file to validate on",
               reader.Where("validator.enable"));
}

}  // namespace

void ReadLoop(ConfigReader& reader, TrainConfig& config) {
  ReadTraining(reader, config);
  ReadOptimizer(reader, config.optimizer);
  ReadScheduler(reader, config.lr_scheduler);
  ReadLoss(reader, config.loss);
  ReadCheckpoint(reader, config.checkpoint);
  ReadDataloader(reader, config.dataloader);
  ReadMetrics(reader, config.metrics);
  ReadValidator(reader, config);
  ReadCompile(reader, config.compile);
  ReadDebug(reader, config);
  ReadRanks(reader, config.parallelism);
}

Status CompleteLoop(const ConfigReader& reader, TrainConfig& config) {
  STRATA_RETURN_IF_ERROR(CompleteTraining(reader, config));
  STRATA_RETURN_IF_ERROR(CheckOptimizer(reader, config.optimizer));
  if (config.lr_scheduler) {
    STRATA_RETURN_IF_ERROR(CompleteScheduler(reader, config.steps, *config.lr_scheduler));
  }
  STRATA_RETURN_IF_ERROR(CheckLoss(reader, config));
  STRATA_RETURN_IF_ERROR(CheckCheckpoint(reader, config.checkpoint));
  STRATA_RETURN_IF_ERROR(CheckDtype(reader, config));
  STRATA_RETURN_IF_ERROR(CheckDataloader(reader, config));
  STRATA_RETURN_IF_ERROR(CheckValidator(reader, config));
  STRATA_RETURN_IF_ERROR(CheckDebug(reader, config));
  return CheckSize(reader, "metrics.log_freq", config.metrics.log_freq);
}

}  // namespace strata
