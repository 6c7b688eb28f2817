#include "runtime/models/rope.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

namespace strata {
namespace {

using at::Tensor;

RopeConfig Config(RopeBackend backend, RopeScaling scaling) {
  RopeConfig config;
  config.theta = 10000.0;
  config.backend = backend;
  config.scaling = scaling;
  config.max_seq_len = 12;
  config.original_max_position_embeddings = 64;
  return config;
}

/// The frequency of pair `j` from the formulas, in double precision.
double Frequency(const RopeConfig& config, int64_t head_dim, int64_t j) {
  const double plain =
      std::pow(config.theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
  if (config.scaling == RopeScaling::kNone) return plain;
  const auto context = static_cast<double>(config.original_max_position_embeddings);
  const double wavelength = 2.0 * std::numbers::pi / plain;
  if (wavelength > context / config.low_freq_factor) return plain / config.scaling_factor;
  if (wavelength < context / config.high_freq_factor) return plain;
  const double smooth = (context / wavelength - config.low_freq_factor) /
                        (config.high_freq_factor - config.low_freq_factor);
  return (1.0 - smooth) * plain / config.scaling_factor + smooth * plain;
}

TEST_CASE("frequencies follow the formula, in all three ranges of Llama 3.1") {
  constexpr int64_t kHeadDim = 16;
  const RopeConfig plain = Config(RopeBackend::kComplex, RopeScaling::kNone);
  const RopeConfig scaled = Config(RopeBackend::kComplex, RopeScaling::kLlama);
  int kept = 0;
  int stretched = 0;
  for (int64_t j = 0; j < kHeadDim / 2; ++j) {
    const double without = Frequency(plain, kHeadDim, j);
    const double with = Frequency(scaled, kHeadDim, j);
    CHECK_EQ(RopeFrequencies(plain, kHeadDim)[j].item<double>(),
             doctest::Approx(without).epsilon(2e-6));
    CHECK_EQ(RopeFrequencies(scaled, kHeadDim)[j].item<double>(),
             doctest::Approx(with).epsilon(2e-6));
    kept += with == without ? 1 : 0;
    stretched += with == without / scaled.scaling_factor ? 1 : 0;
  }
  // The configuration reaches every branch.
  CHECK_GT(kept, 0);
  CHECK_GT(stretched, 0);
  CHECK_LT(kept + stretched, kHeadDim / 2);
}

TEST_CASE("frequencies follow YaRN's formula: kept, interpolated, stretched") {
  constexpr int64_t kHeadDim = 32;
  RopeConfig yarn = Config(RopeBackend::kComplex, RopeScaling::kYarn);
  yarn.rope_factor = 40.0;
  yarn.beta_fast = 4.0;
  yarn.beta_slow = 1.0;
  yarn.original_seq_len = 512;
  const auto pair_that_turns = [&](double times) {
    return kHeadDim * std::log(512.0 / (times * 2.0 * std::numbers::pi)) / (2.0 * std::log(1e4));
  };
  const double low = std::floor(pair_that_turns(4.0));
  const double high = std::ceil(pair_that_turns(1.0));
  REQUIRE_GT(low, 0.0);
  REQUIRE_LT(high, kHeadDim / 2.0);
  for (int64_t j = 0; j < kHeadDim / 2; ++j) {
    const double plain = std::pow(1e4, -2.0 * static_cast<double>(j) / kHeadDim);
    const double stretched = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    CHECK_EQ(RopeFrequencies(yarn, kHeadDim)[j].item<double>(),
             doctest::Approx(plain / 40.0 * stretched + plain * (1.0 - stretched)).epsilon(2e-6));
  }
  yarn.rope_factor = 1.0;
  CHECK(at::equal(RopeFrequencies(yarn, kHeadDim),
                  RopeFrequencies(Config(RopeBackend::kComplex, RopeScaling::kNone), kHeadDim)));
}

TEST_CASE("a part of a wider head is turned as if it stood alone, wherever it begins") {
  for (const RopeBackend backend : {RopeBackend::kComplex, RopeBackend::kCosSin}) {
    const Tensor table = RopeTable(Config(backend, RopeScaling::kNone), 4);
    for (const int64_t begin : {0, 1, 2, 3}) {
      const Tensor part = at::randn({2, 5, 3, 9}).slice(-1, begin, begin + 4);
      CHECK(at::equal(ApplyRope("rope", backend, table, part),
                      ApplyRope("rope", backend, table, part.contiguous())));
    }
  }
}

TEST_CASE("complex rotates adjacent pairs, cos_sin the halves, by position times frequency") {
  constexpr int64_t kSeq = 5;
  constexpr int64_t kHeadDim = 8;
  const Tensor x = at::randn({2, kSeq, 3, kHeadDim});
  for (const RopeBackend backend : {RopeBackend::kComplex, RopeBackend::kCosSin}) {
    const RopeConfig config = Config(backend, RopeScaling::kNone);
    const Tensor rotated = ApplyRope("rope", backend, RopeTable(config, kHeadDim), x);
    REQUIRE_EQ(rotated.sizes(), x.sizes());
    for (int64_t position = 0; position < kSeq; ++position) {
      for (int64_t j = 0; j < kHeadDim / 2; ++j) {
        const bool is_adjacent = backend == RopeBackend::kComplex;
        const int64_t first = is_adjacent ? 2 * j : j;
        const int64_t second = is_adjacent ? 2 * j + 1 : j + kHeadDim / 2;
        const auto pair = [&](const Tensor& t) {
          const Tensor head = t[1][position][2];
          return std::complex<double>(head[first].item<double>(), head[second].item<double>());
        };
        const double angle = static_cast<double>(position) * Frequency(config, kHeadDim, j);
        CHECK_LT(std::abs(pair(rotated) - pair(x) * std::polar(1.0, angle)), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace strata
