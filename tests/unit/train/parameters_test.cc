#include "runtime/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

/// Two layers, four query heads on two key/value heads.
TrainConfig SmallConfig() {
  TrainConfig config;
  config.dim = 8;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 2;
  config.vocab_size = 10;
  config.hidden_dim = 12;
  return config;
}

std::string Shape(const ParameterSpec& spec) {
  return DescribeType(TensorDtype::kF32, spec.shape);
}

const ParameterSpec& Get(const std::vector<ParameterSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &ParameterSpec::name);
  REQUIRE(found != specs.end());
  return *found;
}

std::vector<float> Initialize(const ParameterSpec& spec, uint64_t seed = 1) {
  std::vector<float> values(static_cast<size_t>(spec.elements()));
  InitializeParameter(spec, seed, values);
  return values;
}

struct Moments {
  double mean = 0.0;
  double std = 0.0;
};

Moments MomentsOf(const std::vector<float>& values) {
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count - sum / count * sum / count)};
}

TEST_CASE("Llama3's parameters have torchtitan's names, order and shapes") {
  std::string listing;
  for (const ParameterSpec& spec : Llama3Parameters(SmallConfig())) {
    if (spec.name.starts_with("layers.1.")) continue;
    listing += spec.name + " " + Shape(spec) + "\n";
  }
  CHECK_EQ(listing, R"(tok_embeddings.weight F32 [10, 8]
layers.0.attention.qkv_linear.wq.weight F32 [8, 8]
layers.0.attention.qkv_linear.wk.weight F32 [4, 8]
layers.0.attention.qkv_linear.wv.weight F32 [4, 8]
layers.0.attention.wo.weight F32 [8, 8]
layers.0.feed_forward.w1.weight F32 [12, 8]
layers.0.feed_forward.w2.weight F32 [8, 12]
layers.0.feed_forward.w3.weight F32 [12, 8]
layers.0.attention_norm.weight F32 [8]
layers.0.ffn_norm.weight F32 [8]
norm.weight F32 [8]
lm_head.weight F32 [10, 8]
)");
}

TEST_CASE("heads may be wider than dim / n_heads") {
  TrainConfig config = SmallConfig();
  config.head_dim = 6;
  const auto specs = Llama3Parameters(config);
  CHECK_EQ(Shape(Get(specs, "layers.1.attention.qkv_linear.wq.weight")), "F32 [24, 8]");
  CHECK_EQ(Shape(Get(specs, "layers.1.attention.qkv_linear.wk.weight")), "F32 [12, 8]");
  CHECK_EQ(Shape(Get(specs, "layers.1.attention.wo.weight")), "F32 [8, 24]");
}

TEST_CASE("a tied model has one tensor for embedding and head") {
  TrainConfig config = SmallConfig();
  config.enable_weight_tying = true;
  const auto specs = Llama3Parameters(config);
  CHECK(std::ranges::none_of(
      specs, [](const ParameterSpec& s) { return s.name == "tok_embeddings.weight"; }));
  CHECK_EQ(specs.back().name, "lm_head.weight");
}

TEST_CASE("initial values have the deviations of torchtitan's initialisers") {
  TrainConfig config = SmallConfig();
  config.dim = 256;
  config.hidden_dim = 512;
  config.vocab_size = 512;
  config.head_dim = 64;
  const auto specs = Llama3Parameters(config);
  const auto check = [&](std::string_view name, double std, double cut) {
    CAPTURE(name);
    const std::vector<float> values = Initialize(Get(specs, name));
    const Moments moments = MomentsOf(values);
    // Five standard errors of mean and deviation.
    const double error = 5.0 * std / std::sqrt(static_cast<double>(values.size()));
    CHECK(std::abs(moments.mean) < error);
    CHECK(std::abs(moments.std - std) < error);
    CHECK(std::ranges::all_of(values, [&](float v) { return std::abs(v) <= cut; }));
  };
  check("tok_embeddings.weight", 1.0, 6.0);
  check("layers.0.attention.qkv_linear.wq.weight", 0.02, 2.0);
  check("layers.1.feed_forward.w1.weight", 0.02, 2.0);
  check("layers.0.attention.wo.weight", 0.02 / std::sqrt(2.0), 2.0);
  check("layers.1.attention.wo.weight", 0.02 / std::sqrt(4.0), 2.0);
  check("layers.1.feed_forward.w2.weight", 0.02 / std::sqrt(4.0), 2.0);
  check("layers.1.feed_forward.w3.weight", 0.02 / std::sqrt(4.0), 2.0);
  // The deviation of a normal cut at ±3: sqrt(1 - 6·phi(3) / (2·Phi(3) - 1)) = 0.98658.
  check("lm_head.weight", 0.98658 / 16.0, 3.0 / 16.0);
  CHECK_EQ(Initialize(Get(specs, "norm.weight")), std::vector<float>(256, 1.0F));
}

TEST_CASE("sharpened values: norms spread around 1, inner weights times 4") {
  TrainConfig config = SmallConfig();
  config.dim = 4096;
  config.vocab_size = 2;
  config.hidden_dim = 2;
  const auto plain = Llama3Parameters(config);
  config.init = InitScheme::kTorchTitanSharpened;
  const auto sharpened = Llama3Parameters(config);

  const Moments norm = MomentsOf(Initialize(Get(sharpened, "layers.0.ffn_norm.weight")));
  CHECK(std::abs(norm.mean - 1.0) < 0.01);
  CHECK(std::abs(norm.std - 0.1) < 0.01);
  for (const char* name : {"layers.1.feed_forward.w2.weight", "layers.0.attention.wo.weight"}) {
    std::vector<float> values = Initialize(Get(plain, name));
    for (float& value : values)
      value *= 4.0F;
    CHECK_EQ(Initialize(Get(sharpened, name)), values);
  }
  for (const char* name : {"tok_embeddings.weight", "lm_head.weight"}) {
    CHECK_EQ(Initialize(Get(sharpened, name)), Initialize(Get(plain, name)));
  }
}

TEST_CASE("an element's first value depends on seed, name and index only") {
  TrainConfig config = SmallConfig();
  const auto small = Llama3Parameters(config);
  config.n_layers = 5;
  config.vocab_size = 20;
  const auto large = Llama3Parameters(config);

  const char* name = "layers.1.feed_forward.w1.weight";
  CHECK_EQ(Initialize(Get(small, name)), Initialize(Get(large, name)));
  const std::vector<float> rows = Initialize(Get(small, "tok_embeddings.weight"));
  const std::vector<float> more_rows = Initialize(Get(large, "tok_embeddings.weight"));
  CHECK(std::equal(rows.begin(), rows.end(), more_rows.begin()));

  CHECK_NE(Initialize(Get(small, name), 1), Initialize(Get(small, name), 2));
  CHECK_NE(Initialize(Get(small, name)), Initialize(Get(large, "layers.2.feed_forward.w1.weight")));
}

/// A file's tensors, with zeros for data.
class Tensors {
 public:
  explicit Tensors(const std::vector<ParameterSpec>& specs) {
    for (const ParameterSpec& spec : specs)
      Add(spec.name, spec.shape, TensorDtype::kF32);
  }
  void Add(std::string name, std::vector<int64_t> shape, TensorDtype dtype) {
    size_t bytes = ByteSize(dtype);
    for (const int64_t size : shape)
      bytes *= static_cast<size_t>(size);
    tensors_.push_back({std::move(name), dtype, std::move(shape), std::span(zeros_).first(bytes)});
  }
  void Remove(std::string_view name) {
    std::erase_if(tensors_, [&](const TensorView& t) { return t.name == name; });
  }
  std::string Match(const std::vector<ParameterSpec>& specs) const {
    const TempDir dir;
    const std::string path = dir / "w.safetensors";
    REQUIRE_OK(WriteSafetensors(path, tensors_));
    const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
    REQUIRE_OK(file);
    std::string message = MessageOf(MatchParameters(specs, *file));
    if (const size_t at = message.find(path); at != std::string::npos) {
      message.replace(at, path.size(), "w.safetensors");
    }
    return message;
  }

 private:
  std::vector<std::byte> zeros_ = std::vector<std::byte>(4096);
  std::vector<TensorView> tensors_;
};

TEST_CASE("a file with exactly the model's parameters fits") {
  const auto specs = Llama3Parameters(SmallConfig());
  CHECK_EQ(Tensors(specs).Match(specs), "");
}

TEST_CASE("a missing tensor is named") {
  const auto specs = Llama3Parameters(SmallConfig());
  Tensors tensors(specs);
  tensors.Remove("norm.weight");
  CHECK_EQ(
      tensors.Match(specs),
      "tensors do not fit the model (1 missing): w.safetensors: missing: norm.weight; give the "
      "parameters of this configuration");
}

TEST_CASE("a misshapen tensor is named with both types") {
  const auto specs = Llama3Parameters(SmallConfig());
  Tensors tensors(specs);
  tensors.Remove("lm_head.weight");
  tensors.Add("lm_head.weight", {8, 10}, TensorDtype::kF32);
  tensors.Remove("norm.weight");
  tensors.Add("norm.weight", {8}, TensorDtype::kBF16);
  CHECK_EQ(tensors.Match(specs),
           "tensors do not fit the model (2 misshapen): w.safetensors: misshapen: norm.weight is "
           "BF16 [8], not F32 [8], lm_head.weight is F32 [8, 10], not F32 [10, 8]; give the "
           "parameters of this configuration");
}

TEST_CASE("another model's file tells all kinds in one line, with a few names of each") {
  const auto specs = Llama3Parameters(SmallConfig());
  TrainConfig larger = SmallConfig();
  larger.n_layers = 3;
  Tensors tensors(Llama3Parameters(larger));
  tensors.Remove("tok_embeddings.weight");
  CHECK_EQ(tensors.Match(specs),
           "tensors do not fit the model (1 missing, 9 unexpected): w.safetensors: missing: "
           "tok_embeddings.weight; unexpected: layers.2.attention.qkv_linear.wk.weight, "
           "layers.2.attention.qkv_linear.wq.weight, layers.2.attention.qkv_linear.wv.weight, "
           "layers.2.attention.wo.weight, layers.2.attention_norm.weight and 4 more; give the "
           "parameters of this configuration");
}

}  // namespace
}  // namespace strata
