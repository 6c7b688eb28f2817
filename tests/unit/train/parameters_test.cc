#include "runtime/config/parameters.h"

#include <algorithm>
#include <cmath>
#include <span>
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

TEST_CASE("a parameter that is drawn in parts has the values of one that is drawn at once") {
  const ParameterSpec spec = Spec("w", {7, 111}, {.std = 1.0, .cut = 2.5, .jitter = 0.1});
  const std::vector<float> whole = Initialize(spec);
  for (const size_t part : {size_t{1}, size_t{100}, size_t{256}, size_t{300}}) {
    CAPTURE(part);
    std::vector<float> values(whole.size());
    for (size_t begin = 0; begin < values.size(); begin += part) {
      InitializeParameter(spec, 1,
                          std::span(values).subspan(begin, std::min(part, values.size() - begin)),
                          static_cast<int64_t>(begin));
    }
    CHECK(values == whole);
  }
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

}  // namespace
}  // namespace strata
