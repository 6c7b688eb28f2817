#include "cli/value_pairs.h"

#include <utility>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata::cli {
namespace {

std::string NameIn(const Listing& listing, ValueId value) {
  const EntityId entity = listing.FindValue(listing[EntityId{0}].graph, value);
  return entity.valid() ? listing.name(entity) : std::string(listing.root().value_name(value));
}

/// What these operators give has no value yet.
bool IsUndefined(std::string_view target) {
  return target.starts_with("aten.empty") || target.starts_with("aten.new_empty");
}

}  // namespace

std::string MatchedGraphs::NameBefore(ValueId value) const {
  return NameIn(diff.before, value);
}

std::string MatchedGraphs::NameAfter(ValueId value) const {
  return NameIn(diff.after, value);
}

std::string MatchedGraphs::ModuleAfter(ValueId value) const {
  const Graph& graph = diff.after.root();
  return std::string(graph.module().str(graph.node(graph.value(value).def).module));
}

Result<MatchedGraphs> MatchGraphs(const Graph& before, const Graph& after, bool stable_ids) {
  STRATA_TRY(GraphDiff diff, Diff(before, after, {.stable_ids = stable_ids}));
  MatchedGraphs matched{.diff = std::move(diff), .pairs = {}};
  const Listing& a = matched.diff.before;
  const Listing& b = matched.diff.after;
  for (const Pair& pair : matched.diff.pairs) {
    // Bodies have no values of their own when they run.
    if (a.scope_of(pair.before) != 0 || b.scope_of(pair.after) != 0) continue;
    if (a[pair.before].kind != EntityKind::kCompute || IsUndefined(a.target(pair.before))) continue;
    const ValueId x = a.value(pair.before), y = b.value(pair.after);
    if (x.valid() && y.valid()) matched.pairs.push_back({x, y});
  }
  return matched;
}

NamedTensors TransferInputs(const MatchedGraphs& matched, const NamedTensors& inputs) {
  NamedTensors transferred = inputs;
  const GraphDiff& diff = matched.diff;
  for (const Pair& pair : diff.pairs) {
    if (diff.before[pair.before].kind != EntityKind::kInput) continue;
    const auto found = inputs.find(InputName(diff.before.root(), diff.before[pair.before].node));
    if (found == inputs.end()) continue;
    transferred.insert_or_assign(InputName(diff.after.root(), diff.after[pair.after].node),
                                 found->second);
  }
  return transferred;
}

std::string DescribeMismatch(const MatchedGraphs& matched, const ValueMismatch& mismatch) {
  const TensorDifference& difference = mismatch.difference;
  const std::string before = matched.NameBefore(mismatch.pair.before);
  const std::string after = matched.NameAfter(mismatch.pair.after);
  const std::string module = matched.ModuleAfter(mismatch.pair.after);
  return fmt::format("{}{}{}: {} elements, up to {:g} ulps: element {} is {:.9g}, was {:.9g}",
                     after, before == after ? "" : fmt::format(", before {}", before),
                     module.empty() ? "" : fmt::format(" ({})", module), difference.elements,
                     difference.max_ulps, difference.where, difference.after, difference.before);
}

}  // namespace strata::cli
