#include "runtime/train/programs/exported_model.h"

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "runtime/config/course.h"
#include "runtime/files/tensor_files.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/checkpoint_writer.h"
#include "runtime/train/programs/initial_weights.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

constexpr std::string_view kLlama = R"(
model = "llama3"
dim = 8
n_layers = 1
n_heads = 2
n_kv_heads = 1
vocab_size = 6
hidden_dim = 12
steps = 1
seq_len = 16
batch_size = 1
)";

constexpr std::string_view kExportedExperts = R"(
model = "qwen3"
dim = 8
n_layers = 1
n_heads = 2
vocab_size = 6
steps = 1
seq_len = 16
batch_size = 1
[moe]
num_experts = 2
top_k = 1
moe_hidden_dim = 3
)";

constexpr std::string_view kLatent = R"(
model = "deepseek_v3"
dim = 8
n_layers = 2
n_dense_layers = 1
n_heads = 2
vocab_size = 6
hidden_dim = 12
steps = 1
seq_len = 16
batch_size = 1
[mla]
kv_lora_rank = 4
qk_nope_head_dim = 2
qk_rope_head_dim = 2
v_head_dim = 2
[rope]
rope_factor = 40.0
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 3
num_shared_experts = 1
num_expert_groups = 2
num_limited_groups = 1
route_norm = true
route_scale = 2.5
)";

TrainConfig ParseExported(std::string_view text, std::vector<std::string> sets = {}) {
  Result<TrainConfig> config = ParseTrainConfig(text, ConfigFormat::kToml, "c.toml", sets);
  REQUIRE_OK(config);
  return *std::move(config);
}

/// Tensors whose values count on.
struct Model {
  std::vector<OwnedTensor> tensors;

  void Add(std::string name, std::vector<int64_t> shape, float first = 1.0F) {
    const int64_t count =
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    OwnedTensor tensor{.name = std::move(name), .shape = std::move(shape), .values = {}};
    for (int64_t i = 0; i < count; ++i)
      tensor.values.push_back(first + static_cast<float>(i));
    tensors.push_back(std::move(tensor));
  }
};

/// Writes a checkpoint of a model; returns its path.
std::string Checkpointed(const TempDir& dir, const TrainConfig& config, const Model& model) {
  Result<CheckpointWriter> writer = CheckpointWriter::Open(dir / "c", {});
  REQUIRE_OK(writer);
  CheckpointInfo info{.step = 3, .tokens_seen = 1, .data_position = "1"};
  info.config = CourseFields(config);
  info.has_optimizer = false;
  REQUIRE_OK(writer->Save(info, {.model = ViewsOf(model.tensors), .optimizer = {}}));
  return dir / "c/step-3";
}

struct Exported {
  std::vector<std::string> warnings;
  std::string config, error;
};

Exported Export(const TempDir& dir, const std::string& checkpoint,
                ExportType dtype = ExportType::kFloat32) {
  Result<AtomicFolder> folder = AtomicFolder::Create(dir / "hf");
  REQUIRE_OK(folder);
  auto warnings = ExportHuggingFaceModel(checkpoint, dtype, *folder);
  if (!warnings) return {{}, {}, std::string(warnings.error().message())};
  REQUIRE_OK(folder->Commit());
  Result<std::string> config = ReadFile(dir / "hf/config.json");
  REQUIRE_OK(config);
  return {*std::move(warnings), *std::move(config), {}};
}

TEST_CASE("an exported checkpoint has the values of the model under the other names") {
  const TempDir dir;
  const TrainConfig config = ParseExported(kLlama);
  Model model;
  model.Add("tok_embeddings.weight", {6, 8});
  model.Add("layers.0.attention.qkv_linear.wq.weight", {8, 8});
  model.Add("norm.weight", {8});
  const Exported exported = Export(dir, Checkpointed(dir, config, model));
  CHECK(exported.warnings.empty());
  Result<TensorFiles> files = TensorFiles::Open(dir / "hf");
  REQUIRE_OK(files);
  const TensorView* query = files->Find("model.layers.0.self_attn.q_proj.weight");
  REQUIRE(query != nullptr);
  // Rows of each head are in halves there.
  CHECK_EQ(CopyTensor(*query).values[8], model.tensors[1].values[16]);
  std::vector<ParameterSpec> specs;
  for (const OwnedTensor& tensor : model.tensors)
    specs.push_back({.name = tensor.name, .shape = tensor.shape, .init = {}});
  Result<InitialWeights> weights = InitialWeights::Match(*std::move(files), config, specs);
  REQUIRE_OK(weights);
  for (size_t i = 0; i < specs.size(); ++i) {
    std::vector<float> values(static_cast<size_t>(specs[i].elements()));
    weights->Read(specs[i], values);
    CHECK_EQ(values, model.tensors[i].values);
  }
  CHECK_EQ(exported.config, R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "torch_dtype": "float32",
  "vocab_size": 6,
  "hidden_size": 8,
  "intermediate_size": 12,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "num_key_value_heads": 1,
  "head_dim": 4,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "attention_bias": false,
  "mlp_bias": false,
  "tie_word_embeddings": false,
  "rope_theta": 500000.0,
  "max_position_embeddings": 16,
  "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
}
)");
}

TEST_CASE(
    "what an architecture of Hugging Face cannot express is a warning, its tensors are left out") {
  const TempDir dir;
  const TrainConfig config = ParseExported(kExportedExperts);
  Model model;
  model.Add("norm.weight", {8});
  model.Add("layers.0.moe.expert_bias", {2});
  const Exported exported = Export(dir, Checkpointed(dir, config, model), ExportType::kBFloat16);
  CHECK_EQ(exported.warnings,
           std::vector<std::string>{
               "Qwen3MoeForCausalLM does not compute moe.score_func = 'sigmoid': its scores are a "
               "softmax",
               "Qwen3MoeForCausalLM has no moe.expert_bias: 1 tensors are left out, its router "
               "chooses other experts"});
  Result<TensorFiles> files = TensorFiles::Open(dir / "hf");
  REQUIRE_OK(files);
  REQUIRE_EQ(files->tensors().size(), 1);
  CHECK_EQ(files->tensors()[0]->name, "model.norm.weight");
  CHECK_EQ(files->tensors()[0]->dtype, TensorDtype::kBF16);
  CHECK_NE(exported.config.find("\"norm_topk_prob\": false"), std::string::npos);
  CHECK_NE(exported.config.find("\"torch_dtype\": \"bfloat16\""), std::string::npos);
}

TEST_CASE("biases of zeros change nothing, so that they are left out without a warning") {
  const TempDir dir;
  Model model;
  model.Add("layers.0.moe.expert_bias", {2});
  model.tensors[0].values = {0.0F, 0.0F};
  const TrainConfig config = ParseExported(kExportedExperts, {"moe.score_func=softmax"});
  CHECK(Export(dir, Checkpointed(dir, config, model)).warnings.empty());
}

TEST_CASE("latent attention and groups of experts are fields of DeepSeek-V3's configuration") {
  const TempDir dir;
  Model model;
  model.Add("norm.weight", {8});
  const Exported exported = Export(dir, Checkpointed(dir, ParseExported(kLatent), model));
  CHECK(exported.warnings.empty());
  for (const std::string_view line :
       {R"("q_lora_rank": null)", R"("kv_lora_rank": 4)", R"("first_k_dense_replace": 1)",
        R"("n_routed_experts": 4)", R"("n_group": 2)", R"("topk_group": 1)",
        R"("routed_scaling_factor": 2.5)", R"("scoring_func": "sigmoid")",
        R"("rope_scaling": {"rope_type": "yarn", "factor": 40.0)",
        R"("mscale": 1.0, "mscale_all_dim": 1.0)"}) {
    CAPTURE(line);
    CHECK_NE(exported.config.find(line), std::string::npos);
  }
}

TEST_CASE("what is no checkpoint of the model is not exported") {
  const TempDir dir;
  CHECK_EQ(MessageOf(OpenCheckpoint(dir.path())),
           "not a checkpoint: " + dir.path() + ": it has no checkpoint.json; name a folder step-N");
  Model model;
  model.Add("layers.0.attention.wz.weight", {2});
  const std::string path = Checkpointed(dir, ParseExported(kLlama), model);
  CHECK_EQ(Export(dir, path).error,
           "not a tensor of the model: " + path +
               ": layers.0.attention.wz.weight: no name for it; export a checkpoint that strata "
               "wrote");
}

TEST_CASE("the fields of a run describe its model") {
  for (const std::string_view text : {kLlama, kExportedExperts, kLatent}) {
    const TrainConfig config = ParseExported(text);
    const auto fields = CourseFields(config);
    Result<TrainConfig> model = ModelOfCourse(fields);
    REQUIRE_OK(model);
    auto again = CourseFields(*model);
    for (const auto& [key, value] : fields) {
      CAPTURE(key);
      const bool is_of_training = key.starts_with("optimizer.") || key.starts_with("training.");
      if (!is_of_training) CHECK_EQ(again[key], value);
    }
  }
}

}  // namespace
}  // namespace strata
