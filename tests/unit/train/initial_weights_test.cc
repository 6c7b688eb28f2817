#include "runtime/train/programs/initial_weights.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/programs/exported_model.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

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
  /// All of its values.
  void Fill(std::string_view name, std::byte value) {
    for (TensorView& tensor : tensors_) {
      if (tensor.name != name) continue;
      filled_.emplace_back(tensor.bytes.size(), value);
      tensor.bytes = filled_.back();
    }
  }
  std::string Match(const std::vector<ParameterSpec>& specs, const TrainConfig& config = {}) const {
    const TempDir dir;
    const std::string path = dir / "w.safetensors";
    REQUIRE_OK(WriteSafetensors(path, tensors_));
    Result<TensorFiles> files = TensorFiles::Open(path);
    REQUIRE_OK(files);
    std::string message = MessageOf(InitialWeights::Match(*std::move(files), config, specs));
    if (const size_t at = message.find(path); at != std::string::npos) {
      message.replace(at, path.size(), "w.safetensors");
    }
    return message;
  }

 private:
  std::vector<std::byte> zeros_ = std::vector<std::byte>(4096);
  std::vector<std::vector<std::byte>> filled_;
  std::vector<TensorView> tensors_;
};

ParameterSpec Wanted(std::string name, std::vector<int64_t> shape) {
  return {.name = std::move(name), .shape = std::move(shape), .init = {}};
}

const std::vector<ParameterSpec> kSpecs = {
    Wanted("tok_embeddings.weight", {10, 8}), Wanted("layers.0.moe.experts.w1", {2, 4, 8}),
    Wanted("norm.weight", {8}), Wanted("lm_head.weight", {10, 8})};

TEST_CASE("a file with exactly the model's parameters fits") {
  CHECK_EQ(Tensors(kSpecs).Match(kSpecs), "");
}

TEST_CASE("a missing tensor is named") {
  Tensors tensors(kSpecs);
  tensors.Remove("norm.weight");
  CHECK_EQ(
      tensors.Match(kSpecs),
      "tensors do not fit the model (1 missing): w.safetensors: missing: norm.weight; give the "
      "parameters of this configuration");
}

TEST_CASE("a misshapen tensor is named with both types") {
  Tensors tensors(kSpecs);
  tensors.Remove("lm_head.weight");
  tensors.Add("lm_head.weight", {8, 10}, TensorDtype::kF32);
  tensors.Remove("norm.weight");
  tensors.Add("norm.weight", {8}, TensorDtype::kI64);
  CHECK_EQ(tensors.Match(kSpecs),
           "tensors do not fit the model (2 misshapen): w.safetensors: misshapen: norm.weight is "
           "I64 [8], not F32 [8], lm_head.weight is F32 [8, 10], not F32 [10, 8]; give the "
           "parameters of this configuration");
}

TEST_CASE("another model's file tells all kinds in one line, with a few names of each") {
  Tensors tensors(kSpecs);
  tensors.Remove("tok_embeddings.weight");
  for (const char* name : {"wk", "wq", "wv", "wo", "w1", "w2", "w3"})
    tensors.Add(fmt::format("layers.2.{}.weight", name), {2}, TensorDtype::kF32);
  CHECK_EQ(tensors.Match(kSpecs),
           "tensors do not fit the model (1 missing, 7 unexpected): w.safetensors: missing: "
           "tok_embeddings.weight; unexpected: layers.2.w1.weight, layers.2.w2.weight, "
           "layers.2.w3.weight, layers.2.wk.weight, layers.2.wo.weight and 2 more; give the "
           "parameters of this configuration");
}

/// Tensors of one value per element, counted up, so that each element says where it came from.
struct Counted {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<float>> values;

  void Add(std::string name, std::vector<int64_t> shape, float first) {
    size_t count = 1;
    for (const int64_t size : shape)
      count *= static_cast<size_t>(size);
    std::vector<float> elements(count);
    for (size_t i = 0; i < count; ++i)
      elements[i] = first + static_cast<float>(i);
    names.push_back(std::move(name));
    shapes.push_back(std::move(shape));
    values.push_back(std::move(elements));
  }
  std::vector<TensorView> views() const {
    std::vector<TensorView> result;
    for (size_t i = 0; i < names.size(); ++i)
      result.push_back(
          {names[i], TensorDtype::kF32, shapes[i], std::as_bytes(std::span(values[i]))});
    return result;
  }
};

std::vector<float> Read(const InitialWeights& weights, const ParameterSpec& spec) {
  std::vector<float> out(static_cast<size_t>(spec.elements()));
  weights.Read(spec, out);
  return out;
}

InitialWeights OpenOrDie(const std::string& path, const TrainConfig& config,
                         const std::vector<ParameterSpec>& specs) {
  Result<TensorFiles> files = TensorFiles::Open(path);
  REQUIRE_OK(files);
  Result<InitialWeights> weights = InitialWeights::Match(*std::move(files), config, specs);
  REQUIRE_OK(weights);
  return *std::move(weights);
}

TEST_CASE("Hugging Face's query rows, halves of a head, become pairs") {
  // Two heads of four rows of one element: halves (0, 1 | 2, 3) are the pairs (0, 2), (1, 3).
  TrainConfig config;
  config.n_heads = 2;
  config.n_kv_heads = 1;
  Counted stored;
  stored.Add("model.embed_tokens.weight", {3, 1}, 100);
  stored.Add("model.layers.0.self_attn.q_proj.weight", {8, 1}, 0);
  const std::vector<ParameterSpec> specs = {
      Wanted("tok_embeddings.weight", {3, 1}),
      Wanted("layers.0.attention.qkv_linear.wq.weight", {8, 1})};
  const TempDir dir;
  REQUIRE_OK(WriteSafetensors(dir / "w.safetensors", stored.views()));
  CHECK_EQ(Read(OpenOrDie(dir / "w.safetensors", config, specs), specs[1]),
           std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});

  const std::vector<OwnedTensor> back = ExportToHuggingFace(
      config, specs[1].name, specs[1].shape, std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
  REQUIRE_EQ(back.size(), 1);
  CHECK_EQ(back[0].name, "model.layers.0.self_attn.q_proj.weight");
  CHECK_EQ(back[0].values, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});

  SUBCASE("unless the model turns halves itself") {
    config.rope.backend = RopeBackend::kCosSin;
    CHECK_EQ(Read(OpenOrDie(dir / "w.safetensors", config, specs), specs[1]),
             std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("matrices of experts are stacked, a missing bias is zeros, further layers are ignored") {
  TrainConfig config;
  config.model = ModelFamily::kDeepSeekV3;
  config.n_layers = 1;
  config.moe = MoeConfig{.num_experts = 2};
  Counted stored;
  stored.Add("model.norm.weight", {1}, 7);
  stored.Add("model.layers.0.mlp.experts.0.up_proj.weight", {2, 1}, 10);
  stored.Add("model.layers.0.mlp.experts.1.up_proj.weight", {2, 1}, 20);
  stored.Add("model.layers.0.self_attn.rotary_emb.inv_freq", {4}, 0);
  stored.Add("model.layers.1.eh_proj.weight", {2, 2}, 0);
  const std::vector<ParameterSpec> specs = {Wanted("norm.weight", {1}),
                                            Wanted("layers.0.moe.experts.w3", {2, 2, 1}),
                                            Wanted("layers.0.moe.expert_bias", {2})};
  const TempDir dir;
  REQUIRE_OK(WriteSafetensors(dir / "w.safetensors", stored.views()));
  const InitialWeights weights = OpenOrDie(dir / "w.safetensors", config, specs);
  CHECK_EQ(Read(weights, specs[1]), std::vector<float>{10, 11, 20, 21});
  CHECK_EQ(Read(weights, specs[2]), std::vector<float>{0, 0});
  CHECK_EQ(ExportToHuggingFace(config, specs[1].name, {2, 2, 1}, Read(weights, specs[1]))[1].values,
           std::vector<float>{20, 21});
}

TEST_CASE("a tied embedding may be there under its other name, as the head's values") {
  TrainConfig config;
  config.enable_weight_tying = true;
  const std::vector<ParameterSpec> specs = {Wanted("lm_head.weight", {4, 2})};
  Tensors file(specs);
  file.Add("tok_embeddings.weight", {4, 2}, TensorDtype::kF32);
  CHECK_EQ(file.Match(specs, config), "");
  file.Fill("tok_embeddings.weight", std::byte{1});
  CHECK_EQ(
      file.Match(specs, config),
      "tensors do not fit the model (1 not tied): w.safetensors: not tied: "
      "tok_embeddings.weight is not lm_head.weight, which it is tied to; give the parameters of "
      "this configuration");
  file.Remove("lm_head.weight");
  CHECK_EQ(
      file.Match(specs, config),
      "tensors do not fit the model (1 missing, 1 not tied): w.safetensors: missing: "
      "lm_head.weight; not tied: tok_embeddings.weight is not lm_head.weight, which it is tied "
      "to; give the parameters of this configuration");
}

TEST_CASE("torchtitan's newer names are the same tensors") {
  const std::vector<ParameterSpec> specs = {Wanted("norm.weight", {1}),
                                            Wanted("layers.0.moe.experts.w1", {1, 2, 1})};
  Counted stored;
  stored.Add("norm.weight", {1}, 7);
  stored.Add("layers.0.moe.routed_experts.inner_experts.w1_EFD", {1, 2, 1}, 3);
  const TempDir dir;
  REQUIRE_OK(WriteSafetensors(dir / "w.safetensors", stored.views()));
  CHECK_EQ(Read(OpenOrDie(dir / "w.safetensors", {}, specs), specs[1]), std::vector<float>{3, 4});
}

TEST_CASE("halves of numbers are read exactly") {
  const std::vector<uint16_t> bf16 = {0x3f80, 0xc020, 0x0001};  // 1, -2.5, the least subnormal
  const std::vector<uint16_t> f16 = {0x3c00, 0xc100, 0x0001, 0x7c00, 0x03ff, 0x8000};
  std::vector<float> out(3);
  ReadFloats({"b", TensorDtype::kBF16, {3}, std::as_bytes(std::span(bf16))}, out);
  CHECK_EQ(out, std::vector<float>{1.0F, -2.5F, std::bit_cast<float>(0x10000U)});
  out.resize(6);
  ReadFloats({"h", TensorDtype::kF16, {6}, std::as_bytes(std::span(f16))}, out);
  CHECK_EQ(out, std::vector<float>{1.0F, -2.5F, 0x1p-24F, HUGE_VALF, 1023.0F * 0x1p-24F, -0.0F});
}

TEST_CASE("numbers are narrowed to the nearest, of two to the even one") {
  const auto wide = [](TensorDtype dtype, uint16_t bits) {
    float value = 0.0F;
    ReadFloats({"x", dtype, {1}, std::as_bytes(std::span(&bits, 1))}, std::span(&value, 1));
    return value;
  };
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float least = wide(TensorDtype::kF16, bits);
    const float next = wide(TensorDtype::kF16, static_cast<uint16_t>(bits + 1));
    const float middle = (least + next) / 2.0F;  // exact
    const auto even = static_cast<uint16_t>(bits + (bits & 1));
    REQUIRE_EQ(ToHalf(least), bits);
    REQUIRE_EQ(ToHalf(-least), bits | 0x8000);
    REQUIRE_EQ(ToHalf(middle), even);
    REQUIRE_EQ(ToHalf(std::nextafter(middle, 0.0F)), bits);
    REQUIRE_EQ(ToHalf(std::nextafter(middle, 1e9F)), bits + 1);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK_EQ(ToHalf(65519.0F), 0x7bff);
  CHECK_EQ(ToHalf(65520.0F), 0x7c00);
  CHECK_EQ(ToHalf(-infinity), 0xfc00);
  CHECK_EQ(ToHalf(std::nanf("")), 0x7e00);
  CHECK_EQ(ToBFloat16(1.0F + 0x1p-8F), 0x3f80);
  CHECK_EQ(ToBFloat16(1.0F + 0x1.8p-7F), 0x3f82);
  CHECK_EQ(ToBFloat16(infinity), 0x7f80);
}

/// A folder with two shards.
void WriteShards(const TempDir& dir, std::string_view index) {
  Counted first, second;
  first.Add("norm.weight", {1}, 1);
  second.Add("lm_head.weight", {2}, 5);
  REQUIRE_OK(WriteSafetensors(dir / "a.safetensors", first.views()));
  REQUIRE_OK(WriteSafetensors(dir / "b.safetensors", second.views()));
  if (!index.empty()) REQUIRE_OK(WriteFile(dir / "model.safetensors.index.json", index));
}

TEST_CASE("a folder of shards is one file of tensors, with an index or without") {
  const std::vector<ParameterSpec> specs = {Wanted("norm.weight", {1}),
                                            Wanted("lm_head.weight", {2})};
  for (const std::string_view index :
       {std::string_view(), std::string_view(R"({"metadata": {"total_size": 12}, "weight_map":
          {"norm.weight": "a.safetensors", "lm_head.weight": "b.safetensors"}})")}) {
    const TempDir dir;
    WriteShards(dir, index);
    CHECK_EQ(Read(OpenOrDie(dir.path(), {}, specs), specs[1]), std::vector<float>{5, 6});
  }
}

TEST_CASE("a folder that does not hold what its index says is told") {
  const auto message = [](std::string_view index) {
    const TempDir dir;
    WriteShards(dir, index);
    std::string text = MessageOf(TensorFiles::Open(dir.path()));
    for (size_t at; (at = text.find(dir.path())) != std::string::npos;)
      text.replace(at, dir.path().size(), "d");
    return text;
  };
  CHECK_EQ(message("{"),
           "not an index of safetensors files: d/model.safetensors.index.json: it is not valid "
           "JSON; make it anew");
  CHECK_EQ(message("{}"),
           "not an index of safetensors files: d/model.safetensors.index.json: it has no "
           "'weight_map'; make it anew");
  CHECK_EQ(message(R"({"weight_map": {"x": "../b.safetensors"}})"),
           "not an index of safetensors files: d/model.safetensors.index.json: tensor 'x' has no "
           "file of this folder; make it anew");
  CHECK_EQ(message(R"({"weight_map": {"x": "c.safetensors"}})"),
           "no such file: d/c.safetensors: check the path");
  CHECK_EQ(message(R"({"weight_map": {"x": "a.safetensors"}})"),
           "no tensor 'x': d: its index names it; copy the folder anew");
  const TempDir empty;
  CHECK_EQ(MessageOf(TensorFiles::Open(empty.path())),
           "no safetensors files: " + empty.path() + ": name a folder that holds some");
}

}  // namespace
}  // namespace strata
