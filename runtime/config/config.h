#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "passes/placement/mesh.h"

namespace strata {

/// `program`: a step that another program traced; `library`: a model in a shared library.
enum class ModelFamily : uint8_t { kLlama3, kQwen3, kDeepSeekV3, kProgram, kLibrary };

/// `torchtitan`: its own initialisers. `torchtitan_sharpened`: then norm weights get 0.1·N(0,1)
/// added and every other weight but `tok_embeddings` and `lm_head` is multiplied by 4, so that few
/// steps show every mistake.
enum class InitScheme : uint8_t { kTorchTitan, kTorchTitanSharpened };

/// How rotary embeddings lay out a head: `complex` rotates adjacent pairs (x[2j], x[2j+1]),
/// `cos_sin` the halves.
enum class RopeBackend : uint8_t { kComplex, kCosSin };
enum class RopeScaling : uint8_t { kNone, kLlama, kYarn };

/// Key `rope`. Fields of a scaling that is not chosen are kept and mean nothing.
struct RopeConfig {
  double theta = 500000.0;
  RopeBackend backend = RopeBackend::kComplex;
  RopeScaling scaling = RopeScaling::kLlama;
  int64_t max_seq_len = 0;  ///< rows of the table; seq_len where the configuration has none

  // scaling = "llama" (Llama 3.1)
  double scaling_factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;

  // scaling = "yarn"
  double rope_factor = 1.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  int64_t original_seq_len = 4096;
};

/// Key `mla`: multi-head latent attention (arXiv 2405.04434). Queries, and keys with values, come
/// from narrow latent vectors; RoPE rotates a part of each query and key.
struct MlaConfig {
  int64_t q_lora_rank = 0;  ///< width of the queries' latent; 0: queries come from x directly
  int64_t kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128;  ///< without RoPE
  int64_t qk_rope_head_dim = 64;   ///< rotated by RoPE; even
  int64_t v_head_dim = 128;
  double mscale = 1.0;  ///< with YaRN the scores grow by (0.1·mscale·ln(rope_factor) + 1)²
};

enum class ScoreFunction : uint8_t { kSoftmax, kSigmoid };

/// Key `moe`: mixture of experts (arXiv 2401.06066, 2412.19437).
struct MoeConfig {
  int64_t num_experts = 0;
  int64_t top_k = 0;  ///< experts per token
  int64_t moe_hidden_dim = 0;
  int64_t num_shared_experts = 0;  ///< together one feed-forward layer that sees every token
  ScoreFunction score_func = ScoreFunction::kSigmoid;
  bool route_norm = false;  ///< a token's scores are divided by their sum
  double route_scale = 1.0;
  int64_t num_expert_groups = 0;  ///< 0: a token may choose among all experts
  int64_t num_limited_groups = 0;
  bool score_before_experts = false;  ///< scores multiply what experts read, not what they give
  /// All experts in one product of sizes that do not depend on data; or one after the other, each
  /// on as many rows as it got.
  bool use_grouped_mm = true;
  std::optional<double> load_balance_coeff = 1e-3;  ///< null: no expert biases
  /// Key `debug.moe_force_load_balance`: experts are taken in turn, whatever the scores say.
  bool force_load_balance = false;
};

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

/// What a position may attend to: all before it, or those of its own document.
enum class AttentionMask : uint8_t { kCausal, kBlockCausal };

/// Which operator attends: ATen's, or flex attention with bodies of the graph.
enum class AttentionType : uint8_t { kSdpa, kFlex };

/// Key `flex`, with `attn_type = "flex"`: what a query attends to, and how scores change.
struct FlexConfig {
  int64_t window = 0;        ///< keys that a query sees, itself included; 0: all before it
  int64_t prefix = 0;        ///< first keys of a row that every query sees
  double soft_cap = 0.0;     ///< bound of the scores; 0: none
  bool alibi = false;        ///< scores fall with the distance, by head
  int64_t block_size = 128;  ///< queries and keys of a block of the block mask
  std::string mask_mod;      ///< file of a body that takes the place of window and prefix
  std::string score_mod;     ///< file of a body that takes the place of soft_cap and alibi
  /// The bodies themselves (passes/flex/flex_body.h).
  std::string mask_mod_text = {}, score_mod_text = {};
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

/// Key `compile.ep_overlap`: modules with experts run in chunks of their input.
struct ExpertOverlapConfig {
  bool enabled = false;
  bool along_seq = false;  ///< chunks of each sequence; else of the batch
  bool is_eager = false;   ///< the program calls the modules per chunk; else a pass cuts the graph
  bool whole_layers = true;  ///< `layers.*`; else `layers.*.moe`
  int64_t num_chunks = 2;
  std::string topology;  ///< whose costs the order of the chunks follows; "": in rounds

  bool InProgram() const { return enabled && is_eager; }
  bool InGraph() const { return enabled && !is_eager; }
};

/// Key `compile`.
/// Key `compile.inductor_compilation`: which nodes become kernels.
enum class KernelScope : uint8_t {
  kPipeline,    ///< absent: as the pipeline says
  kRegional,    ///< regions: attention, norms and elementwise chains, each compiled alone
  kFull,        ///< the whole graph, in an order with a lower peak
  kStandalone,  ///< the same, the whole graph as one node
  kOverlap,     ///< the whole graph; collectives are merged by size and moved beside computation
};

struct CompileConfig {
  // Sizes that are symbols in the graph of a step.
  bool symbolic_batch = false;
  bool symbolic_seq = false;
  std::string passes;                       ///< the pipeline; "": that of the command
  bool enable_passes = true;                ///< false: the traced graphs run as they are
  std::vector<std::string> disable_passes;  ///< left out of the pipeline, by name
  /// Of the pass `tag-memory`, which results are saved for backward; "none": all of them.
  std::string memory_policy = "none";
  /// That `inductor` chose it: passes that the run names do instead.
  bool is_memory_policy_implied = false;
  std::string save_ops;  ///< with policy "full": the selectors of the nodes that it saves
  /// With policy "sac_and_offload". GiB of the host for offloaded results, 0: no limit; layers by
  /// which copies back start earlier, and after which copies to the host are awaited.
  double offload_budget_gb = 100;
  int64_t offload_prefetch = 1, offload_defer = 1;
  std::string offload_folder = {};  ///< offloaded results are in files there; "": in memory
  /// Tags of single nodes instead of the policy's (passes/memory/overrides.h).
  std::string memory_overrides = {};
  /// With policy "budget": bytes of the peak of a step; whether results may go to the host.
  int64_t memory_budget_bytes = 0;
  bool memory_budget_offload = true;
  std::string memory_budget_times = {};  ///< file of a profile, what nodes cost; "": modelled
  /// Key `enable_fsdp_ag_rs_overlap`: all-gathers of parameters have a communicator of their own.
  bool separate_gathers = false;
  /// Key `enable_fsdp_dense_region_overlap`: collectives of parameters keep clear of experts'.
  bool dense_regions = false;
  ExpertOverlapConfig ep_overlap;
  KernelScope inductor = KernelScope::kPipeline;
  /// Products beside collectives of tensor parallelism run in parts (passes/comm/async_tensor.h).
  bool async_tensor_parallel = false;
  /// Key `enable_autoparallel`: placements are searched, on this topology; "": that of the device.
  bool autoparallel = false;
  std::string autoparallel_topology = {};
  /// Where the graphs are kept for other ranks and runs; "": nowhere.
  std::string precompile_artifact_dir;

  /// Sizes that the trace has as symbols: those that stay, and the one that `ep_overlap` cuts.
  bool TracesBatch() const {
    return symbolic_batch || (ep_overlap.InGraph() && !ep_overlap.along_seq);
  }
  bool TracesSeq() const { return symbolic_seq || (ep_overlap.InGraph() && ep_overlap.along_seq); }
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

/// Key `parallelism.fsdp_reshard_after_forward`: whether the backward pass gathers parameters
/// again.
enum class ReshardAfterForward : uint8_t { kDefault, kAlways, kNever };

/// Keys `parallelism.pipeline_parallel_…`: stages of the model on ranks of their own.
struct PipelineConfig {
  int64_t degree = 1;             ///< ranks that have different layers
  std::string schedule = "1F1B";  ///< name of a kind (passes/pipeline/schedule/schedule.h)
  std::string schedule_csv;       ///< file of another schedule; "": that of `schedule`
  int64_t microbatches = 1;       ///< of a schedule; they are batches of `accumulation_steps`
  int64_t num_stages = 1;
  int64_t first_less = 1, last_less = 1;  ///< layers that the other modules of a stage count as
  bool balance = false;                   ///< stages take equally long, not equally many layers
  std::string times = {};  ///< with `balance`: file of a profile by module; "": modelled
  std::vector<std::vector<std::string>> modules = {};  ///< of each stage, by name; empty: divided
};

/// Key `parallelism`: how many ranks share the work, and how.
struct ParallelismConfig {
  int64_t dp_replicate = 1;  ///< groups of ranks that hold the same parameters
  int64_t dp_shard = -1;     ///< ranks that hold a part of each parameter; -1: those that are left
  int64_t context = 1;       ///< ranks that share sequences
  int64_t tensor = 1;
  int64_t expert = 1;  ///< of the ranks of `dp_shard`, `context` and `tensor`
  bool sequence_parallel = true;
  bool disable_loss_parallel = false;
  ReshardAfterForward reshard = ReshardAfterForward::kDefault;
  std::string plan;  ///< of placements: a name or a file (passes/placement/plan.h); "": the model's
  Mesh mesh = {};    ///< that the degrees give: pp, dp_replicate, fsdp, cp, tp, ep
  Mesh stage_mesh = {};  ///< the same without pp: the ranks of a stage
  PipelineConfig pipeline;
  /// Keys `comm.init_timeout_seconds` and `comm.train_timeout_seconds`: how long a rank waits for
  /// another in the first step, and in later ones.
  int64_t init_timeout_seconds = 300, train_timeout_seconds = 100;
  /// Key `comm.simulated_network`: collectives take the time of this topology longer; "": no time.
  std::string simulated_network;

  /// Ranks that read different sequences.
  int64_t data_ranks() const { return dp_replicate * dp_shard; }
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

/// `llama3`, `qwen3`, `deepseek_v3`, `program`, `library`.
std::string_view Name(ModelFamily model);

}  // namespace strata
