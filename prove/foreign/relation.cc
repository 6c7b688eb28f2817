#include "prove/foreign/relation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "prove/ops/definitions.h"
#include "prove/ops/elementwise.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

Tensor TimesFactor(const Tensor& tensor, Residue factor) {
  return Map(tensor, tensor.domain(), [&](uint64_t x) { return Mul(x, factor); });
}

/// The sum of tensors, or their mean.
std::optional<Tensor> ReducedParts(std::span<const Tensor> parts, Term::Kind kind) {
  Tensor sum = parts[0];
  for (const Tensor& part : parts.subspan(1)) {
    if (part.sizes() != sum.sizes()) return std::nullopt;
    auto next = Add(sum, part);
    if (!next) return std::nullopt;
    sum = *std::move(next);
  }
  if (kind != Term::Kind::kMean) return sum;
  if (sum.domain() == Domain::kInteger) return std::nullopt;
  return TimesFactor(sum, Inverse(FromInteger(std::ssize(parts))));
}

std::optional<Tensor> JoinedAlong(std::span<const Tensor> parts, int64_t dim) {
  std::vector<Argument> list;
  for (const Tensor& part : parts) {
    if (part.dim() <= dim || part.domain() != parts[0].domain()) return std::nullopt;
    list.push_back(Argument{part});
  }
  Call call("aten.cat.default", {Argument{std::move(list)}, Argument{dim}}, {}, 1);
  auto values = FindDefinition("aten.cat.default")->evaluate(call);
  if (!values) return std::nullopt;
  return std::get<Tensor>((*values)[0]);
}

/// What the ranks of one axis hold together.
std::optional<Tensor> JoinedBy(std::span<const Tensor> parts, const Term& term) {
  switch (term.kind) {
    case Term::Kind::kReplicate: {
      const bool are_equal = std::ranges::all_of(
          parts, [&](const Tensor& part) { return SameElements(parts[0], part); });
      return are_equal ? std::optional(parts[0]) : std::nullopt;
    }
    case Term::Kind::kShard:
      return JoinedAlong(parts, term.dim);
    default:
      return ReducedParts(parts, term.kind);
  }
}

/// What `rank` and those that hold other summands of its value have together.
std::optional<Tensor> SumAt(std::span<const Value> parts, const Relation& relation,
                            const Mesh& mesh, int64_t rank) {
  const auto found = std::ranges::find_if(relation, &Term::is_partial);
  if (found == relation.end()) return std::get<Tensor>(parts[static_cast<size_t>(rank)]);
  const auto axis = static_cast<size_t>(found - relation.begin());
  Relation others = relation;
  others[axis] = Term();
  std::vector<int64_t> coordinates = mesh.Coordinates(rank);
  std::vector<Tensor> summands;
  for (int64_t i = 0; i < mesh.axes()[axis].size; ++i) {
    coordinates[axis] = i;
    auto summand = SumAt(parts, others, mesh, mesh.RankAt(coordinates));
    if (!summand) return std::nullopt;
    summands.push_back(*std::move(summand));
  }
  return ReducedParts(summands, relation[axis].kind);
}

}  // namespace

std::string TermText(const Term& term) {
  switch (term.kind) {
    case Term::Kind::kReplicate:
      return "R";
    case Term::Kind::kShard:
      return fmt::format("S({})", term.dim);
    case Term::Kind::kSum:
      return "P(sum)";
    case Term::Kind::kMean:
      return "P(avg)";
  }
  return "";
}

std::string RelationText(const Relation& relation, const Mesh& mesh) {
  std::string text;
  for (size_t axis = 0; axis < relation.size(); ++axis) {
    text += fmt::format("{}{} on {}", axis == 0 ? "" : ", ", TermText(relation[axis]),
                        mesh.axes()[axis].name);
  }
  return text;
}

std::vector<Sizes> SizesOnRanks(std::span<const Value> parts) {
  std::vector<Sizes> sizes;
  for (const Value& part : parts) {
    const auto* tensor = std::get_if<Tensor>(&part);
    if (tensor == nullptr) return {};
    sizes.push_back(tensor->sizes());
  }
  return sizes;
}

Tensor PartOf(const Tensor& whole, const Relation& relation, const Mesh& mesh, int64_t rank) {
  const std::vector<int64_t> coordinates = mesh.Coordinates(rank);
  Sizes sizes = whole.sizes();
  int64_t offset = whole.offset();
  for (size_t axis = 0; axis < relation.size(); ++axis) {
    const Term& term = relation[axis];
    if (term.kind != Term::Kind::kShard) continue;
    const auto dim = static_cast<size_t>(term.dim);
    const auto at = coordinates[axis];
    const int64_t part = term.parts.empty() ? sizes[dim] / mesh.axes()[axis].size
                                            : term.parts[static_cast<size_t>(at)];
    const int64_t begin = term.parts.empty() ? part * at
                                             : std::accumulate(term.parts.begin(),
                                                               term.parts.begin() + at, int64_t{0});
    sizes[dim] = part;
    offset += begin * whole.strides()[dim];
  }
  return Tensor(whole.domain(), whole.storage(), std::move(sizes), whole.strides(), offset).Copy();
}

std::optional<std::string> DifferenceOnRanks(const Value& whole, std::span<const Value> parts,
                                             const Relation& relation, const Mesh& mesh) {
  const auto* expected = std::get_if<Tensor>(&whole);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const auto self = static_cast<int64_t>(rank);
    const bool is_tensor = std::holds_alternative<Tensor>(parts[rank]);
    if (is_tensor != (expected != nullptr))
      return fmt::format("rank {}: a tensor and a number", rank);
    if (expected == nullptr) {
      if (SameValue(whole, parts[rank])) continue;
      return fmt::format("rank {}: {}", rank, DescribeDifference(whole, parts[rank]));
    }
    const Value wanted = PartOf(*expected, relation, mesh, self);
    const auto together = SumAt(parts, relation, mesh, self);
    if (!together) return fmt::format("rank {}: other sizes than other ranks have", rank);
    if (SameValue(wanted, Value(*together))) continue;
    return fmt::format("rank {}: {}", rank, DescribeDifference(wanted, Value(*together)));
  }
  return std::nullopt;
}

namespace {

/// An equation between unknowns: their factors, and what they add up to.
using Equation = std::vector<Residue>;

/// Subtracts `by` so that unknown `i` is gone. REQUIRES: its factor in `by` is 1.
void Eliminate(Equation& equation, const Equation& by, size_t i) {
  const Residue factor = equation[i];
  for (size_t k = 0; factor != 0 && k < equation.size(); ++k)
    equation[k] = Sub(equation[k], Mul(factor, by[k]));
}

/// Equations solved for one unknown each.
class LinearSystem {
 public:
  explicit LinearSystem(size_t unknowns) : solved_(unknowns) {}

  /// False: the equation contradicts those before it.
  bool Add(Equation equation) {
    for (size_t i = 0; i < solved_.size(); ++i)
      if (solved_[i]) Eliminate(equation, *solved_[i], i);
    for (size_t i = 0; i < solved_.size(); ++i) {
      if (equation[i] == 0) continue;
      const Residue inverse = Inverse(equation[i]);
      for (Residue& factor : equation)
        factor = Mul(factor, inverse);
      for (auto& other : solved_)
        if (other) Eliminate(*other, equation, i);
      solved_[i] = std::move(equation);
      return true;
    }
    return equation.back() == 0;
  }
  /// None: unknown `i` is not determined.
  std::optional<Residue> Solution(size_t i) const {
    return solved_[i] ? std::optional(solved_[i]->back()) : std::nullopt;
  }

 private:
  std::vector<std::optional<Equation>> solved_;  // by unknown
};

}  // namespace

std::vector<std::string> WeightsOf(const Value& whole, std::span<const Value> parts) {
  std::vector<std::vector<uint64_t>> columns;
  const auto add = [&](const Value& value) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr || tensor->domain() != Domain::kFloat) return false;
    columns.push_back(tensor->Read());
    return columns.back().size() == columns[0].size() &&
           std::ranges::all_of(columns.back(), IsNumber);
  };
  if (!std::ranges::all_of(parts, add) || !add(whole)) return {};
  LinearSystem system(parts.size());
  for (size_t i = 0; i < columns[0].size(); ++i) {
    Equation equation;
    for (const std::vector<uint64_t>& column : columns)
      equation.push_back(column[i]);
    if (!system.Add(std::move(equation))) return {};
  }
  std::vector<std::string> weights;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const auto weight = system.Solution(rank);
    weights.push_back(weight ? FractionText(*weight) : "");
    if (weights.back().empty()) return {};
  }
  return weights;
}

std::optional<Tensor> WholeOf(std::span<const Value> parts, const Relation& relation,
                              const Mesh& mesh) {
  std::vector<Tensor> tensors;
  for (const Value& part : parts) {
    if (!std::holds_alternative<Tensor>(part)) return std::nullopt;
    tensors.push_back(std::get<Tensor>(part));
  }
  // Ranks of the last axis, which is the innermost, are neighbours.
  for (size_t axis = relation.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(mesh.axes()[axis].size);
    std::vector<Tensor> joined;
    for (size_t first = 0; first < tensors.size(); first += size) {
      auto whole = JoinedBy(std::span(tensors).subspan(first, size), relation[axis]);
      if (!whole) return std::nullopt;
      joined.push_back(*std::move(whole));
    }
    tensors = std::move(joined);
  }
  return tensors.front();
}

}  // namespace strata::prove
