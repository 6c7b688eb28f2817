#include "runtime/config/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/random.h"
#include "base/result.h"

namespace strata {
namespace {

constexpr size_t kBlock = 256;  // numbers that are drawn together: loops of known length
using Block = std::array<double, kBlock>;

/// FNV-1a.
uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// In (0, 1).
double Uniform(uint64_t key, uint64_t index) {
  // 52 bits, centred in their cells: never 0, and never rounded to 1.
  return (static_cast<double>(RandomBits(key, index) >> 12U) + 0.5) * 0x1p-52;
}

/// Highest coefficient first. No loop, so that a loop of calls compiles to vectors.
template <typename... Coefficients>
double Polynomial(double x, double highest, Coefficients... others) {
  double value = highest;
  ((value = value * x + others), ...);
  return value;
}

/// The middle of the normal distribution's quantile, which has no branch: Wichura, Algorithm AS 241
/// (PPND16), 1988; relative error about 1e-16. REQUIRES: |p - 0.5| <= 0.425.
inline double MiddleQuantile(double p) {
  const double q = p - 0.5;
  const double r = 0.180625 - q * q;
  return q *
         Polynomial(r, 2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
                    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
                    1.3314166789178437745e2, 3.3871328727963666080e0) /
         Polynomial(r, 5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
                    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
                    4.2313330701600911252e1, 1.0);
}

/// The rest of it. REQUIRES: 0 < p < 1, |p - 0.5| > 0.425.
double OuterQuantile(double p) {
  const double q = p - 0.5;
  double r = std::sqrt(-std::log(q < 0.0 ? p : 1.0 - p));
  double quantile = 0.0;
  if (r <= 5.0) {
    r -= 1.6;
    quantile =
        Polynomial(r, 7.74545014278341407640e-4, 2.27238449892691845833e-2,
                   2.41780725177450611770e-1, 1.27045825245236838258e0, 3.64784832476320460504e0,
                   5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0) /
        Polynomial(r, 1.05075007164441684324e-9, 5.47593808499534494600e-4,
                   1.51986665636164571966e-2, 1.48103976427480074590e-1, 6.89767334985100004550e-1,
                   1.67638483018380384940e0, 2.05319162663775882187e0, 1.0);
  } else {
    r -= 5.0;
    quantile =
        Polynomial(r, 2.01033439929228813265e-7, 2.71155556874348757815e-5,
                   1.24266094738807843860e-3, 2.65321895265761230930e-2, 2.96560571828504891230e-1,
                   1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0) /
        Polynomial(r, 2.04426310338993978564e-15, 1.42151175831644588870e-7,
                   1.84631831751005468180e-5, 7.86869131145613259100e-4, 1.48753612908506148525e-2,
                   1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0);
  }
  return q < 0.0 ? -quantile : quantile;
}

double NormalCdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// Adds `scale` times the normal quantiles of probabilities.
void AddQuantiles(const Block& probabilities, double scale, Block& values) {
  // First as if all were in the middle, which compiles to vectors, then the others, 15 in 100.
  Block quantiles;
  for (size_t i = 0; i < kBlock; ++i)
    quantiles[i] = MiddleQuantile(probabilities[i]);
  for (size_t i = 0; i < kBlock; ++i) {
    if (std::abs(probabilities[i] - 0.5) > 0.425) quantiles[i] = OuterQuantile(probabilities[i]);
  }
  for (size_t i = 0; i < kBlock; ++i)
    values[i] += scale * quantiles[i];
}

}  // namespace

std::string ModuleOfTensor(std::string_view name) {
  return std::string(name.substr(0, name.rfind('.')));
}

int64_t ParameterSpec::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape)
    count *= size;
  return count;
}

void InitializeParameter(const ParameterSpec& spec, uint64_t seed, std::span<float> values,
                         int64_t first) {
  STRATA_CHECK(first >= 0 && first + std::ssize(values) <= spec.elements(), "{}", spec.name);
  const ParameterInit& init = spec.init;
  const uint64_t value_key = Mix(seed) ^ HashName(spec.name);
  const uint64_t jitter_key = Mix(value_key);
  // A cut normal is the normal's quantile of a uniform number between the cuts' probabilities.
  const bool is_cut = init.std > 0.0 && init.cut > 0.0;
  const double low = is_cut ? NormalCdf(-init.cut / init.std) : 0.0;
  const double high = 1.0 - low;

  Block uniform, drawn;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t index = static_cast<size_t>(first) + begin;
    drawn.fill(init.mean);
    if (init.std > 0.0) {
      for (size_t i = 0; i < kBlock; ++i)
        uniform[i] = low + (high - low) * Uniform(value_key, index + i);
      AddQuantiles(uniform, init.std, drawn);
    }
    for (double& value : drawn)
      value *= init.scale;
    if (init.jitter > 0.0) {
      for (size_t i = 0; i < kBlock; ++i)
        uniform[i] = Uniform(jitter_key, index + i);
      AddQuantiles(uniform, init.jitter, drawn);
    }
    const size_t size = std::min(kBlock, values.size() - begin);
    for (size_t i = 0; i < size; ++i)
      values[begin + i] = static_cast<float>(drawn[i]);
  }
}

}  // namespace strata
