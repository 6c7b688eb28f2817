#include "prove/diagnosis/diagnosis.h"

#include <fmt/format.h>

#include "prove/diagnosis/rules.h"

namespace strata::prove {

std::optional<Diagnosis> FirstParts(const Difference& d) {
  if (d.facts.first_part_of.empty()) return std::nullopt;
  return Diagnosis{
      BugKind::kWrongPart,
      fmt::format("each rank has what the first one of {} should have", d.facts.first_part_of)};
}

std::optional<Diagnosis> OfValues(const Difference& d) {
  if (!d.facts.summand_of.empty())
    return Diagnosis{BugKind::kMissingCollective,
                     fmt::format("ranks of {} have summands", d.facts.summand_of)};
  if (!d.facts.factor_of.empty()) {
    const bool is_multiple = d.facts.factor.find('/') == std::string::npos;
    const BugKind kind = is_multiple ? BugKind::kExtraCollective : BugKind::kWrongReduction;
    return Diagnosis{
        kind, fmt::format("a factor {}: the ranks of {}", d.facts.factor, d.facts.factor_of)};
  }
  if (!d.facts.factor.empty())
    return Diagnosis{BugKind::kFactor, fmt::format("a factor {}", d.facts.factor)};
  if (d.facts.is_other_rank)
    return Diagnosis{BugKind::kWrongPart, "each rank has what another one should have"};
  if (d.facts.is_permuted)
    return Diagnosis{BugKind::kPermuted, "the elements are in another order"};
  if (d.facts.is_undefined) return Diagnosis{BugKind::kUnwritten, "reads what was not written"};
  return std::nullopt;
}

Diagnosis Diagnose(const Graph& before, NodeId expected, const Graph& after, NodeId node,
                   const ValueFacts& facts) {
  using Rule = std::optional<Diagnosis> (*)(const Difference&);
  // The first that finds something decides: the surest rules come first.
  constexpr Rule kRules[] = {InFlight,      Overwritten, LostWrite,   OwnCollective, OwnArguments,
                             Early,         FirstParts,  Earlier,     LostRoots,     NewOperation,
                             LostOperation, Exchanges,   Parts,       Roots,         OtherResult,
                             OtherOrder,    OfValues,    OtherPlaces, SameSlice,     IndexOfRank,
                             OtherSequence, NewMove,     Order};
  const Difference difference(before, expected, after, node, facts);
  for (const Rule rule : kRules)
    if (std::optional<Diagnosis> found = rule(difference)) return *std::move(found);
  return {};
}

Diagnosis DiagnoseFailure(const Graph& before, const Graph& after, NodeId node) {
  const NodeId expected = NodeWithId(before, after.node(node).stable_id);
  if (expected.valid()) {
    const ValueFacts none;
    const Difference difference(before, expected, after, node, none);
    for (const auto rule : {OwnCollective, OwnArguments, Parts})
      if (std::optional<Diagnosis> found = rule(difference)) return *std::move(found);
  }
  return {BugKind::kInvalid, ""};
}

}  // namespace strata::prove
