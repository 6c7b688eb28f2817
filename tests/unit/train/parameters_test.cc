#include "runtime/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

ParameterSpec Spec(std::string name, std::vector<int64_t> shape, ParameterInit init = {}) {
  return {.name = std::move(name), .shape = std::move(shape), .init = init};
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

TEST_CASE("initial values have the mean and deviation of their distribution, between its cuts") {
  const auto check = [](ParameterInit init, double mean, double std, double cut) {
    CAPTURE(init.std);
    const std::vector<float> values = Initialize(Spec("w", {512, 256}, init));
    const Moments moments = MomentsOf(values);
    // Five standard errors of mean and deviation.
    const double error = 5.0 * std / std::sqrt(static_cast<double>(values.size()));
    CHECK(std::abs(moments.mean - mean) < error);
    CHECK(std::abs(moments.std - std) < error);
    CHECK(std::ranges::all_of(values, [&](float v) { return std::abs(v - mean) <= cut; }));
  };
  check({.std = 1.0}, 0.0, 1.0, 6.0);
  check({.mean = 3.0, .std = 0.5}, 3.0, 0.5, 3.0);
  check({.std = 0.02, .cut = 2.0}, 0.0, 0.02, 0.2);
  // The deviation of a normal cut at ±3: sqrt(1 - 6·phi(3) / (2·Phi(3) - 1)) = 0.98658.
  check({.std = 0.25, .cut = 0.75}, 0.0, 0.98658 * 0.25, 0.75);
  CHECK_EQ(Initialize(Spec("norm.weight", {4}, {.mean = 1.0})), std::vector<float>(4, 1.0F));
}

TEST_CASE("scale multiplies the values drawn, jitter adds to them") {
  const std::vector<float> plain = Initialize(Spec("w", {4096}, {.std = 0.1}));
  std::vector<float> scaled = Initialize(Spec("w", {4096}, {.std = 0.1, .scale = 4.0}));
  for (float& value : scaled)
    value /= 4.0F;
  CHECK_EQ(scaled, plain);
  const Moments norm = MomentsOf(Initialize(Spec("w", {4096}, {.mean = 1.0, .jitter = 0.1})));
  CHECK(std::abs(norm.mean - 1.0) < 0.01);
  CHECK(std::abs(norm.std - 0.1) < 0.01);
}

TEST_CASE("an element's first value depends on seed, name and index only") {
  const ParameterInit init = {.std = 1.0};
  const std::vector<float> rows = Initialize(Spec("w", {10, 8}, init));
  const std::vector<float> more_rows = Initialize(Spec("w", {20, 8}, init));
  CHECK(std::equal(rows.begin(), rows.end(), more_rows.begin()));
  CHECK_EQ(rows, Initialize(Spec("w", {80}, init)));
  CHECK_NE(rows, Initialize(Spec("w", {10, 8}, init), 2));
  CHECK_NE(rows, Initialize(Spec("v", {10, 8}, init)));
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

const std::vector<ParameterSpec> kSpecs = {
    Spec("tok_embeddings.weight", {10, 8}), Spec("layers.0.moe.experts.w1", {2, 4, 8}),
    Spec("norm.weight", {8}), Spec("lm_head.weight", {10, 8})};

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
  tensors.Add("norm.weight", {8}, TensorDtype::kBF16);
  CHECK_EQ(tensors.Match(kSpecs),
           "tensors do not fit the model (2 misshapen): w.safetensors: misshapen: norm.weight is "
           "BF16 [8], not F32 [8], lm_head.weight is F32 [8, 10], not F32 [10, 8]; give the "
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

}  // namespace
}  // namespace strata
