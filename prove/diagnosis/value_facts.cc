#include "prove/diagnosis/value_facts.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "prove/ops/elementwise.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

bool HasUndefined(const Tensor& tensor) {
  if (tensor.domain() != Domain::kFloat) return false;
  const std::vector<uint64_t> words = tensor.Read();
  return std::ranges::find(words, kUndefined) != words.end();
}

/// The factor between two tensors; none: there is none, or all elements are zero.
std::optional<Residue> FactorBetween(const Tensor& expected, const Tensor& actual) {
  if (expected.domain() != Domain::kFloat || expected.sizes() != actual.sizes() ||
      actual.domain() != Domain::kFloat)
    return std::nullopt;
  const std::vector<Residue> a = expected.Read(), b = actual.Read();
  std::optional<Residue> factor;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!IsNumber(a[i]) || !IsNumber(b[i])) return std::nullopt;
    if (!factor && a[i] != 0) factor = Div(b[i], a[i]);
    if (factor && Mul(a[i], *factor) != b[i]) return std::nullopt;
    if (!factor && b[i] != 0) return std::nullopt;
  }
  return factor;
}

/// The factor of all ranks; ranks whose elements are zero have any.
std::optional<Residue> FactorOfAll(std::span<const Tensor> expected,
                                   std::span<const Tensor> actual) {
  std::optional<Residue> factor;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const std::optional<Residue> own = FactorBetween(expected[rank], actual[rank]);
    if (!own || (factor && *factor != *own)) return std::nullopt;
    factor = own;
  }
  return factor;
}

bool SumsUp(std::span<const Tensor> expected, std::span<const Tensor> actual, const Mesh& mesh,
            const MeshAxis& axis) {
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const auto members = mesh.GroupOf(axis.name, static_cast<int64_t>(rank));
    if (!members) return false;
    Tensor sum = actual[static_cast<size_t>((*members)[0])];
    for (size_t i = 1; i < members->size(); ++i) {
      const auto next = Add(sum, actual[static_cast<size_t>((*members)[i])]);
      if (!next) return false;
      sum = *next;
    }
    if (!SameElements(expected[rank], sum)) return false;
  }
  return true;
}

/// Whether each rank has what the first rank of the axes should have, and not what it should have.
/// `axes`: bits, by index.
bool HasFirstPart(std::span<const Tensor> expected, std::span<const Tensor> actual,
                  const Mesh& mesh, uint64_t axes) {
  bool differs = false;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    std::vector<int64_t> coordinates = mesh.Coordinates(static_cast<int64_t>(rank));
    for (size_t axis = 0; axis < coordinates.size(); ++axis)
      if ((axes >> axis & 1U) != 0) coordinates[axis] = 0;
    const Tensor& first = expected[static_cast<size_t>(mesh.RankAt(coordinates))];
    if (!SameElements(first, actual[rank])) return false;
    differs = differs || !SameElements(first, expected[rank]);
  }
  return differs;
}

/// "fsdp, tp"; "": ranks of no axes have the part of the first.
std::string FirstPartOf(std::span<const Tensor> expected, std::span<const Tensor> actual,
                        const Mesh& mesh) {
  const size_t count = mesh.axes().size();
  for (uint64_t axes = 1; axes < uint64_t{1} << count; ++axes) {
    if (!HasFirstPart(expected, actual, mesh, axes)) continue;
    std::vector<std::string> names;
    for (size_t axis = 0; axis < count; ++axis)
      if ((axes >> axis & 1U) != 0) names.push_back(mesh.axes()[axis].name);
    return fmt::format("{}", fmt::join(names, ", "));
  }
  return "";
}

bool IsOtherRank(std::span<const Tensor> expected, std::span<const Tensor> actual) {
  return std::ranges::all_of(actual, [&](const Tensor& part) {
    return std::ranges::any_of(expected,
                               [&](const Tensor& other) { return SameElements(other, part); });
  });
}

/// Whether the ranks together have the expected elements, each as often.
bool IsPermuted(std::span<const Tensor> expected, std::span<const Tensor> actual) {
  std::vector<uint64_t> was, is;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const std::vector<uint64_t> a = expected[rank].Read(), b = actual[rank].Read();
    was.insert(was.end(), a.begin(), a.end());
    is.insert(is.end(), b.begin(), b.end());
  }
  std::ranges::sort(was);
  std::ranges::sort(is);
  return was.size() > 1 && was == is;
}

}  // namespace

ValueFacts FactsOf(std::span<const Tensor> expected, std::span<const Tensor> actual,
                   const Mesh& mesh) {
  ValueFacts facts;
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    facts.has_other_sizes = facts.has_other_sizes || expected[rank].sizes() != actual[rank].sizes();
    facts.is_undefined =
        facts.is_undefined || (HasUndefined(actual[rank]) && !HasUndefined(expected[rank]));
  }
  if (facts.has_other_sizes || facts.is_undefined || expected.empty()) return facts;
  const std::optional<Residue> factor = FactorOfAll(expected, actual);
  if (factor) facts.factor = FractionText(*factor);
  for (const MeshAxis& axis : mesh.axes()) {
    if (factor && (*factor == FromInteger(axis.size) || *factor == Inverse(FromInteger(axis.size))))
      facts.factor_of = axis.name;
    if (facts.summand_of.empty() && expected.size() > 1 && SumsUp(expected, actual, mesh, axis))
      facts.summand_of = axis.name;
  }
  if (expected.size() > 1) {
    facts.first_part_of = FirstPartOf(expected, actual, mesh);
    facts.is_other_rank = IsOtherRank(expected, actual);
  }
  facts.is_permuted = IsPermuted(expected, actual);
  return facts;
}

}  // namespace strata::prove
