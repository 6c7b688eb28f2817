#include "prove/values/field.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.h"

namespace strata::prove {
namespace {

/// Random numbers, and those at the ends of the field.
std::vector<Residue> Samples(uint64_t key, size_t count) {
  std::vector<Residue> samples = {0, 1, 2, kPrime / 2, kPrime / 2 + 1, kPrime - 2, kPrime - 1};
  while (samples.size() < count)
    samples.push_back(RandomBits(key, samples.size()) % kPrime);
  return samples;
}

TEST_CASE("PV-1: arithmetic agrees with division of 128-bit numbers") {
  __extension__ using Wide = unsigned __int128;
  const std::vector<Residue> a = Samples(1, 1000), b = Samples(2, 1000);
  for (const Residue x : a) {
    for (const Residue y : b) {
      const bool agrees = Add(x, y) == static_cast<Residue>((Wide(x) + y) % kPrime) &&
                          Mul(x, y) == static_cast<Residue>(Wide(x) * y % kPrime) &&
                          Add(Sub(x, y), y) == x;
      if (!agrees) FAIL_CHECK(x << " and " << y);
    }
    if (x != 0) CHECK_EQ(Mul(x, Inverse(x)), 1);
  }
}

TEST_CASE("PV-1: inverting many numbers at once inverts each of them") {
  std::vector<Residue> samples = Samples(3, 200);
  samples.insert(samples.end(), {kInfinity, kMinusInfinity, kNan, kUndefined});
  std::vector<Residue> inverses = samples;
  InvertAll(inverses);
  for (size_t i = 0; i < samples.size(); ++i)
    CHECK_EQ(inverses[i], Inverse(samples[i]));
}

TEST_CASE("PV-2: a literal that stands for a small fraction has its image") {
  CHECK_EQ(Mul(FromLiteral(1.0 / 3), 3), 1);
  CHECK_EQ(Mul(FromLiteral(static_cast<double>(1.0F / 3)), 3), 1);
  CHECK_EQ(Mul(FromLiteral(-5.0 / 4096), 4096), FromInteger(-5));
  CHECK_EQ(FromLiteral(0.1), Mul(FromInteger(1), Inverse(10)));
  CHECK_EQ(FromLiteral(1.0 - 0.9), FromLiteral(0.1));  // the same float
  for (const double written : {0.999, 0.001, 0.9995, 1e-5, 1.234e-9, 6.02e23})
    CHECK_EQ(FromLiteral(static_cast<double>(static_cast<float>(written))), FromLiteral(written));
  CHECK_EQ(FromLiteral(1e15), FromInteger(1000000000000000));
  CHECK_EQ(FromLiteral(-0.0), 0);
}

TEST_CASE("PV-2: the square of a root's image is the number, where the field has a root") {
  int roots = 0;
  for (int n = 2; n < 60; ++n) {
    const Residue root = FromLiteral(std::sqrt(static_cast<double>(n)));
    if (Mul(root, root) != FromInteger(n)) continue;
    ++roots;
    CHECK_EQ(Mul(FromLiteral(1.0 / std::sqrt(static_cast<double>(n))), root), 1);
  }
  CHECK_GT(roots, 20);
}

TEST_CASE("PV-2: a double and the float that it rounds to have one image") {
  for (const double value : {1e-5, 9.999999747378752e-06, 1e-8, 0.95, 3.14159265358979})
    CHECK_EQ(FromLiteral(value), FromLiteral(static_cast<double>(static_cast<float>(value))));
}

TEST_CASE("PV-2: infinities and NaN follow the rules of floating-point numbers") {
  for (const int64_t n : {-5, -4, -1, 0, 1, 3, 7})
    CHECK_EQ(Truncate(Div(FromInteger(n), FromInteger(2))), n / 2);
  for (const int64_t n : {int64_t{-1} << 40, int64_t{1} << 40, int64_t{1000000000000000}})
    CHECK_EQ(Truncate(FromInteger(n)), n);
  CHECK_EQ(FromLiteral(INFINITY), kInfinity);
  CHECK_EQ(FromLiteral(-INFINITY), kMinusInfinity);
  CHECK_EQ(FromLiteral(NAN), kNan);
  CHECK_EQ(Add(kInfinity, kMinusInfinity), kNan);
  CHECK_EQ(Mul(0, kInfinity), kNan);
  CHECK_EQ(Mul(FromInteger(-2), kInfinity), kMinusInfinity);
  CHECK_EQ(Inverse(kMinusInfinity), 0);
  CHECK_EQ(Add(kUndefined, kNan), kUndefined);
  CHECK_GT(Compare(1, kMinusInfinity), 0);
  CHECK_LT(Compare(FromInteger(-1), 0), 0);
}

TEST_CASE("PV-4: a function of which nothing is known takes other values for other operands") {
  std::vector<Residue> values;
  for (const Residue a : Samples(4, 20000)) {
    values.push_back(Uninterpreted(7, a));
    CHECK_NE(Uninterpreted(7, a), Uninterpreted(8, a));
  }
  const size_t count = values.size();
  std::ranges::sort(values);
  CHECK_EQ(std::ranges::unique(values).begin() - values.begin(), count);
}

TEST_CASE("PV-2: fractions stand in the order of their numbers, the others among usual bounds") {
  const Residue half = Div(1, 2), tenth = Div(1, 10);
  CHECK_LT(Compare(0, tenth), 0);
  CHECK_LT(Compare(tenth, half), 0);
  CHECK_LT(Compare(half, 1), 0);
  CHECK_LT(Compare(1, FromInteger(10'000'000)), 0);
  CHECK_LT(Compare(FromInteger(1'000'000'000'000), FromInteger(1'000'000'000'001)), 0);
  CHECK_GT(CompareToLiteral(1, 1e-12), 0);
  CHECK_LT(CompareToLiteral(1, 3.4e38), 0);
  CHECK_EQ(CompareToLiteral(half, 0.5), 0);
  CHECK_LT(Compare(Neg(half), Neg(tenth)), 0);
  int above = 0, between = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Residue number = Uninterpreted(1, i);
    above += Compare(number, 0) > 0 ? 1 : 0;
    between += Compare(number, half) > 0 && Compare(number, 1) < 0 ? 1 : 0;
    CHECK_EQ(Compare(number, half), -Compare(Neg(number), Neg(half)));
  }
  CHECK_GT(above, 400);
  CHECK_LT(above, 600);
  CHECK_GT(between, 40);
  CHECK_LT(between, 90);
}

TEST_CASE("exp of the negative number is the reciprocal") {
  std::vector<Residue> values = {5, FromInteger(-5), 0, kMinusInfinity, kInfinity};
  ExpAll(values);
  CHECK_EQ(Mul(values[0], values[1]), 1);
  CHECK_EQ(values[2], 1);
  CHECK_EQ(values[3], 0);
  CHECK_EQ(values[4], kInfinity);
}

}  // namespace
}  // namespace strata::prove
