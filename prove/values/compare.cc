#include "prove/values/compare.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"

namespace strata::prove {
namespace {

/// "1/2" if all elements of `actual` are that part of the expected ones; "": no such factor.
std::string CommonFactor(const Tensor& expected, const Tensor& actual) {
  if (expected.domain() != Domain::kFloat || expected.sizes() != actual.sizes()) return "";
  const std::vector<Residue> a = expected.Read(), b = actual.Read();
  std::optional<Residue> factor;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!IsNumber(a[i]) || !IsNumber(b[i])) return "";
    if (!factor && a[i] != 0) factor = Div(b[i], a[i]);
    if (factor && Mul(a[i], *factor) != b[i]) return "";
  }
  return factor ? FractionText(*factor) : "";
}

}  // namespace

std::string FractionText(Residue factor) {
  constexpr int64_t kMaxTerm = 4096;
  for (int64_t d = 1; d <= kMaxTerm; ++d) {
    const Residue image = Mul(factor, FromInteger(d));
    const auto n = static_cast<int64_t>(image <= kPrime / 2 ? image : kPrime - image);
    if (n == 0 || n > kMaxTerm) continue;
    const char* sign = image <= kPrime / 2 ? "" : "-";
    return d == 1 ? fmt::format("{}{}", sign, n) : fmt::format("{}{}/{}", sign, n, d);
  }
  return "";
}

bool SameValue(const Value& expected, const Value& actual) {
  const auto* a = std::get_if<Tensor>(&expected);
  const auto* b = std::get_if<Tensor>(&actual);
  if (a != nullptr && b != nullptr) return SameElements(*a, *b);
  if (std::holds_alternative<std::monostate>(expected)) return true;
  const auto* n = std::get_if<int64_t>(&expected);
  const auto* m = std::get_if<int64_t>(&actual);
  return (n != nullptr && m != nullptr && *n == *m) || std::holds_alternative<GraphId>(expected);
}

uint64_t ContentHash(const Tensor& tensor) {
  uint64_t hash = static_cast<uint64_t>(tensor.domain());
  for (const int64_t size : tensor.sizes())
    hash = Mix(hash ^ static_cast<uint64_t>(size));
  for (const uint64_t word : tensor.Read())
    hash = Mix(hash ^ word);
  return hash;
}

std::string DescribeDifference(const Value& expected, const Value& actual) {
  const auto* a = std::get_if<Tensor>(&expected);
  const auto* b = std::get_if<Tensor>(&actual);
  if (a == nullptr || b == nullptr) return "another kind of value";
  if (a->sizes() != b->sizes())
    return fmt::format("sizes [{}], expected [{}]", fmt::join(b->sizes(), ", "),
                       fmt::join(a->sizes(), ", "));
  if (const std::string factor = CommonFactor(*a, *b); !factor.empty())
    return fmt::format("{} of the expected value", factor);
  const std::vector<uint64_t> x = a->Read(), y = b->Read();
  size_t count = 0;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    count += static_cast<size_t>(x[i] != y[i]);
  return fmt::format("{} of {} elements differ", count, x.size());
}

}  // namespace strata::prove
