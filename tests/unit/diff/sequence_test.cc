#include "diff/graph/sequence.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace strata {
namespace {

std::string Common(std::string_view a, std::string_view b) {
  const std::vector<uint64_t> x(a.begin(), a.end()), y(b.begin(), b.end());
  std::string text;
  for (const auto& [i, j] : CommonSubsequence(x, y)) {
    CHECK_EQ(a[static_cast<size_t>(i)], b[static_cast<size_t>(j)]);
    text += a[static_cast<size_t>(i)];
  }
  return text;
}

TEST_CASE("sequence: longest common subsequences") {
  CHECK_EQ(Common("", ""), "");
  CHECK_EQ(Common("abc", "abc"), "abc");
  CHECK_EQ(Common("abcd", "axcd"), "acd");
  CHECK_EQ(Common("xaby", "yabx"), "ab");
  CHECK_EQ(Common("aaab", "aab"), "aab");
  CHECK_EQ(Common("abcbdab", "bdcaba").size(), 4);
}

TEST_CASE("sequence: long ones go by unique elements") {
  std::vector<uint64_t> a, b;
  for (uint64_t i = 0; i < 5000; ++i) {
    a.push_back(i);
    if (i % 100 != 50) b.push_back(i);
  }
  a.insert(a.begin(), 999'999);
  CHECK_EQ(CommonSubsequence(a, b).size(), b.size());
}

}  // namespace
}  // namespace strata
