#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/config/compile_config.h"
#include "runtime/config/model_config.h"
#include "runtime/config/parallelism_config.h"

namespace strata {

/// What AdamW does with a parameter.
struct AdamWConfig {
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  friend bool operator==(const AdamWConfig&, const AdamWConfig&) = default;
};

/// Parameters whose name `pattern` matches anywhere (RE2), and what AdamW does with them.
struct ParamGroup {
  std::string name, pattern;
  AdamWConfig adamw;
};

/// Key `optimizer`: AdamW with decoupled weight decay.
struct OptimizerConfig : AdamWConfig {
  /// A parameter is of the first group that matches it, or of none: then it has the values above.
  std::vector<ParamGroup> param_groups = {};
  std::optional<double> max_grad_norm = 1.0;  ///< null: gradients are not clipped
};

enum class DecayType : uint8_t { kLinear, kSqrt, kCosine };

/// Key `lr_scheduler`: the learning rate rises for `warmup_steps`, stays, and decays
/// (runtime/train/programs/schedule.h).
struct LrSchedulerConfig {
  int64_t warmup_steps = 200;
  int64_t total_steps = 0;  ///< of the schedule; default: the run's
  std::optional<double> decay_ratio =
      std::nullopt;  ///< share of the steps that decay; none: all after warm-up
  DecayType decay_type = DecayType::kLinear;
  double min_lr_factor = 0.0;  ///< where the decay ends, as a share of the learning rate
};

enum class LossFunction : uint8_t { kCrossEntropy, kChunkedCrossEntropy };

/// Key `loss`.
struct LossConfig {
  LossFunction name = LossFunction::kCrossEntropy;
  int64_t num_chunks =
      8;  ///< chunked_cross_entropy: parts of the sequence whose logits live at once
};

/// Float types that models compute in.
enum class Precision : uint8_t { kFloat32, kBFloat16, kFloat64 };
std::string_view Name(Precision precision);  ///< `float32`, `bfloat16`, `float64`

/// Of the tensors of a checkpoint for use elsewhere.
enum class ExportType : uint8_t { kFloat32, kBFloat16, kFloat16 };

/// How checkpoints are written: while the run waits, or by a thread from a copy.
enum class AsyncMode : uint8_t { kDisabled, kAsync };

/// Key `checkpoint`; runtime/train/files/checkpoint.h writes them.
struct CheckpointConfig {
  bool enable = false;
  std::string folder = "checkpoint";  ///< below `dump_folder`
  int64_t interval = 500;             ///< steps between two
  int64_t keep_latest_k = 10;         ///< 0: all
  int64_t load_step = -1;             ///< which one `--resume` takes; -1: the latest
  bool enable_first_step_checkpoint = false;
  bool load_only = false;  ///< read, never written
  AsyncMode async_mode = AsyncMode::kDisabled;
  bool last_save_model_only = true;                ///< the last checkpoint holds no optimizer state
  bool last_save_in_hf = false;                    ///< and has Hugging Face's names
  ExportType export_dtype = ExportType::kFloat32;  ///< of a last checkpoint of the model alone
  std::string initial_load_path;                   ///< as `--init`; "": drawn from the seed
  /// What a resumed run does not take from its checkpoint.
  struct Exclude {
    bool optimizer = false, lr_scheduler = false, dataloader = false, train_state = false;
  };
  Exclude exclude_from_loading;
};

enum class DatasetKind : uint8_t { kSynthetic, kTokens, kText };
enum class PackingMode : uint8_t { kConcatThenSplit, kFirstFit };

/// Key `dataloader`; runtime/train/data/data.h reads them.
struct DataloaderConfig {
  DatasetKind dataset = DatasetKind::kSynthetic;
  std::vector<std::string> dataset_path;  ///< files, and folders of them
  std::string tokenizer = "bytes";        ///< or the path of a tokenizer.json, or of its folder
  std::string text_key = "text";          ///< of a line's object
  std::string token_dtype = "uint16";     ///< of a token file without a header
  std::optional<int64_t> end_of_document =
      std::nullopt;  ///< token files: the id that ends a document
  PackingMode packing = PackingMode::kConcatThenSplit;
  uint64_t seed = 42;
  bool shuffle = true;
  bool repeat = true;
};

/// Key `metrics`.
struct MetricsConfig {
  int64_t log_freq = 1;  ///< steps between two lines of the table and two points of TensorBoard
  bool enable_tensorboard = false;
  std::string save_tb_folder = "tb";  ///< below `dump_folder`
};

/// Key `validator`: the loss of other data, every few steps.
struct ValidatorConfig {
  bool enable = false;
  int64_t freq = 10;   ///< training steps between two validations; and after the first
  int64_t steps = -1;  ///< batches of a validation; -1: until the data end
  std::vector<std::string> dataset_path;  ///< of the kind of `dataloader.dataset`
};

/// Key `profiler`: of every `profile_freq` steps the last `profiler_active` are profiled.
struct ProfilerConfig {
  bool enable_profiling = false;
  int64_t profile_freq = 10;
  int64_t profiler_warmup = 3;  ///< steps before them; nothing here needs any
  int64_t profiler_active = 1;

  /// Whether step `step`, 1 for the first, is one of them.
  bool IsProfiled(int64_t step) const {
    return enable_profiling && (step - 1) % profile_freq >= profile_freq - profiler_active;
  }
};

/// Key `device`.
enum class DeviceKind : uint8_t { kCpu, kCuda };

/// The configuration of `strata train`: model, data, optimizer. Field names are those of
/// torchtitan's configuration. After loading every field holds the value that the run uses: derived
/// ones (head_dim, n_kv_heads, hidden_dim, rope.max_seq_len) are filled in, and defaults are those
/// of the family.
struct TrainConfig {
  /// What the text says, overrides and flavor included: canonical keys and values, in order.
  std::vector<std::pair<std::string, std::string>> fields;

  ModelFamily model = ModelFamily::kLlama3;
  std::string model_path;  ///< of `program` the REF of its graph, of `library` the file; else ""
  int64_t dim = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;  ///< default n_heads; divides n_heads
  int64_t head_dim = 0;    ///< of queries and keys; default dim / n_heads
  int64_t vocab_size = 0;
  /// Width of the dense feed-forward layers. Default of llama3: int(8·dim/3), times
  /// ffn_dim_multiplier, rounded up to a multiple of multiple_of. A given value wins over the two.
  int64_t hidden_dim = 0;
  int64_t multiple_of = 256;
  std::optional<double> ffn_dim_multiplier;
  double norm_eps = 1e-5;
  bool qk_norm = false;              ///< qwen3: norms of each head's query and key
  bool enable_weight_tying = false;  ///< one tensor, `lm_head.weight`, is also the token embedding
  RopeConfig rope;
  MlaConfig mla;                 ///< deepseek_v3
  std::optional<MoeConfig> moe;  ///< qwen3, deepseek_v3
  int64_t n_dense_layers = 0;    ///< the first ones, which have no experts though `moe` is given

  InitScheme init = InitScheme::kTorchTitan;
  OptimizerConfig optimizer;
  int64_t steps = 0;
  int64_t seq_len = 0;
  /// Sequences of a batch: those of all data ranks, where the key is for one of them.
  int64_t batch_size = 0;
  uint64_t seed = 0;  ///< of the initial parameters and of synthetic tokens
  /// Batches whose gradients make one step.
  int64_t accumulation_steps = 1;
  std::optional<LrSchedulerConfig> lr_scheduler;  ///< none: the learning rate is constant
  LossConfig loss;
  DeviceKind device = DeviceKind::kCpu;
  /// On a GPU: key `training.float32_matmul_precision = "high"`, products of fp32 matrices with
  /// TF32.
  bool allow_tf32 = false;
  /// On a GPU: key `debug.deterministic`, only algorithms that give the same bits in every run.
  bool deterministic = false;
  bool deterministic_warn_only = false;  ///< an operator that has none warns instead of failing
  bool disable_cuda_graphs = false;      ///< a pipeline that captures one is refused
  /// Of parameters, gradients and optimizer state: fp32, or fp64 to compare layouts of ranks beyond
  /// the rounding of fp32; the model then computes in fp64, too.
  Precision dtype = Precision::kFloat32;
  /// What the model computes in, where parameters are fp32.
  Precision mixed_precision_param = Precision::kFloat32;
  AttentionMask attn_mask_type = AttentionMask::kCausal;
  AttentionType attn_type = AttentionType::kSdpa;
  FlexConfig flex;
  bool finite_check = true;  ///< an infinite or NaN loss or norm ends the run
  std::string dump_folder = "./outputs";
  CheckpointConfig checkpoint;
  DataloaderConfig dataloader;
  MetricsConfig metrics;
  ValidatorConfig validator;
  CompileConfig compile;
  ParallelismConfig parallelism;
  ProfilerConfig profiler;
  bool print_config = false;     ///< key `debug.print_config`
  std::string save_config_file;  ///< key `debug.save_config_file`: below `dump_folder`

  /// Whether the model is the user's: sizes are known for batches only, a library may have more.
  bool HasOwnModel() const {
    return model == ModelFamily::kProgram || model == ModelFamily::kLibrary;
  }
  bool HasExperts(int64_t layer) const { return moe && layer >= n_dense_layers; }
  /// Width of the part of a head that RoPE rotates.
  int64_t rope_dim() const {
    return model == ModelFamily::kDeepSeekV3 ? mla.qk_rope_head_dim : head_dim;
  }
};

enum class ConfigFormat : uint8_t { kToml, kJson };

/// Reads a configuration, TOML or JSON (name ends in `.json`, or the text starts with `{`), with
/// the same fields.
///
/// `overrides` are `key=value` with dotted keys (`optimizer.lr=0.01`, `rope.scaling=none`), applied
/// in order as if the file said so; values are JSON scalars, other text is a string, `null` unsets.
/// Keys that begin with `_` are ignored.
///
/// `world`: ranks that the run has; none: as many as the degrees of `parallelism` say.
///
/// Errors, one line each with file and line: unreadable text, unknown keys (with the closest known
/// one), wrong types, missing keys, values that no run can have.
Result<TrainConfig> LoadTrainConfig(const std::string& path,
                                    std::span<const std::string> overrides = {},
                                    std::optional<int64_t> world = std::nullopt);

/// The same for a text in memory; `file` is its name in errors.
Result<TrainConfig> ParseTrainConfig(std::string_view text, ConfigFormat format,
                                     std::string_view file,
                                     std::span<const std::string> overrides = {},
                                     std::optional<int64_t> world = std::nullopt);

/// The text that `LoadTrainConfig` reads with its overrides, as JSON.
Result<std::string> MergedConfig(const std::string& path, std::span<const std::string> overrides);

}  // namespace strata
