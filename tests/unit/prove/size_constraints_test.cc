#include "prove/sizes/size_constraints.h"

#include <vector>

#include <doctest/doctest.h>

namespace strata::prove {
namespace {

TEST_CASE("sizes that share a small number are apart in a second set of numbers") {
  SizeConstraints constraints;
  std::vector<SizeId> sizes;
  for (int64_t number = 101; number < 110; ++number)
    sizes.push_back(constraints.New(number));
  const auto first = constraints.Solve({.most = 3});
  REQUIRE(first.has_value());
  const SizePairs equal = constraints.Equal(*first);
  CHECK_EQ(equal.size(), 9);  // three pairs for each of three numbers
  const auto second = constraints.Solve({.most = 3, .apart = equal});
  REQUIRE(second.has_value());
  for (const SizeId a : sizes) {
    CHECK_LE((*first)[a], 5);
    CHECK_LE((*second)[a], 6);
    for (const SizeId b : sizes)
      CHECK((a == b || (*first)[a] != (*first)[b] || (*second)[a] != (*second)[b]));
  }
}

TEST_CASE("products, sums and divisors of sizes hold for the numbers that replace them") {
  SizeConstraints constraints;
  const auto add = [&](int64_t number) { return constraints.New(number); };
  const SizeId ranks = add(8), width = add(4096), heads = add(32), head = add(128), part = add(512),
               keys = add(1024), all = add(5120);
  constraints.Keep(ranks);
  constraints.AddProduct(std::vector{width}, std::vector{heads, head});
  constraints.AddProduct(std::vector{width}, std::vector{ranks, part});
  constraints.AddProduct(std::vector{keys}, std::vector{ranks, head});
  constraints.AddSum(all, std::vector{width, keys});
  constraints.AddDivisor(ranks, heads);
  const auto solved = constraints.Solve();
  REQUIRE(solved.has_value());
  const auto at = [&](SizeId size) { return (*solved)[size]; };
  CHECK_EQ(at(ranks), 8);
  CHECK_EQ(at(width), at(heads) * at(head));
  CHECK_EQ(at(width), 8 * at(part));
  CHECK_EQ(at(keys), 8 * at(head));
  CHECK_EQ(at(all), at(width) + at(keys));
  CHECK_EQ(at(heads) % 8, 0);
  CHECK_LT(at(width), 4096);
}

TEST_CASE("sizes of one number become different numbers, unless they are one size") {
  SizeConstraints constraints;
  const auto add = [&](int64_t number) { return constraints.New(number); };
  const SizeId width = add(16384), heads = add(128), head = add(128), half = add(64);
  constraints.AddProduct(std::vector{width}, std::vector{heads, head});
  constraints.AddProduct(std::vector{head}, std::vector{add(2), half});
  // The same width is cut again in the same way: by the same heads.
  const SizeId again = add(16384), heads_again = add(128), head_again = add(128);
  constraints.Join(width, again);
  constraints.AddProduct(std::vector{again}, std::vector{heads_again, head_again});
  const auto solved = constraints.Solve();
  REQUIRE(solved.has_value());
  CHECK_EQ((*solved)[head], 2 * (*solved)[half]);
  CHECK_NE((*solved)[heads], (*solved)[head]);
  CHECK_EQ((*solved)[heads], (*solved)[heads_again]);
  CHECK_EQ((*solved)[head], (*solved)[head_again]);
}

TEST_CASE("ranks that cut a size have one part of it, however often they cut it") {
  SizeConstraints constraints;
  const auto add = [&](int64_t number) { return constraints.New(number); };
  const SizeId ranks = add(4), whole = add(16), part = add(4);
  constraints.CountRanks(ranks);
  constraints.AddCut(whole, ranks, part);
  constraints.AddCut(whole, ranks, ranks);
  const auto solved = constraints.Solve();
  REQUIRE(solved.has_value());
  CHECK_EQ((*solved)[ranks], 3);
  CHECK_EQ((*solved)[part], 3);
  CHECK_EQ((*solved)[whole], 9);
}

/// Ranks cut two widths of 256, of which one is half of another size. Their parts are alike, but
/// for what they are parts of.
TEST_CASE("parts of different sizes are of different kinds, if kinds are found by equations") {
  for (const Kinds kinds : {Kinds::kByPlace, Kinds::kByEquation}) {
    SizeConstraints constraints;
    const auto add = [&](int64_t number) { return constraints.New(number); };
    const SizeId ranks = add(16), width = add(256), half = add(256), all = add(512);
    constraints.CountRanks(ranks);
    constraints.AddProduct(std::vector{all}, std::vector{add(2), half});
    constraints.AddCut(width, ranks, add(16));
    constraints.AddCut(half, ranks, add(16));
    constraints.Keep(width);
    const auto solved = constraints.Solve({}, kinds);
    REQUIRE(solved.has_value());
    CHECK_EQ((*solved)[width], 256);
    CHECK_EQ((*solved)[half] == 256, kinds == Kinds::kByPlace);
  }
}

/// Tokens are four sequences of 4096; four ranks have a part of each, and one sequence each of the
/// labels.
TEST_CASE("a view that cuts a dimension finer has its first part, not as many ranks") {
  SizeConstraints constraints;
  const auto add = [&](int64_t number) { return constraints.New(number); };
  const SizeId ranks = add(4), sequences = add(4), length = add(4096), tokens = add(16384);
  const SizeId blocks = add(4), part = add(1024);
  constraints.CountRanks(ranks);
  constraints.AddProduct(std::vector{tokens}, std::vector{sequences, length});
  constraints.AddProduct(std::vector{tokens}, std::vector{blocks, ranks, part});
  constraints.AddCut(length, ranks, part);
  SUBCASE("of other sequences than ranks") {}
  SUBCASE("of as many") {
    constraints.AddCut(sequences, ranks, add(1));
  }
  const auto solved = constraints.Solve();
  REQUIRE(solved.has_value());
  CHECK_EQ((*solved)[blocks], (*solved)[sequences]);
  CHECK_EQ((*solved)[length], (*solved)[ranks] * (*solved)[part]);
}

}  // namespace
}  // namespace strata::prove
