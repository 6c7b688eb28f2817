#include "cli/prove/value_pairs.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "diff/diff.h"
#include "ir/module.h"

namespace strata::cli {
namespace {

std::string NameIn(const Listing& listing, ValueId value) {
  if (!value.valid()) return "none";
  const EntityId entity = listing.FindValue(listing[EntityId{0}].graph, value);
  return entity.valid() ? listing.name(entity) : std::string(listing.root().value_name(value));
}

/// What these operators give has no value yet.
bool IsUndefined(std::string_view target) {
  return target.starts_with("aten.empty") || target.starts_with("aten.new_empty");
}

/// Whether one tensor can be both.
bool AreAlike(const Graph& before, ValueId x, const Graph& after, ValueId y) {
  const TypeId a = before.value(x).type, b = after.value(y).type;
  if (!a.valid() || !b.valid()) return true;
  const Type& type = before.module().types()[a];
  const Type& other = after.module().types()[b];
  return type.kind == other.kind && type.dtype == other.dtype &&
         type.sizes.size() == other.sizes.size();
}

std::map<std::string_view, ValueId> InputsByFqn(const Graph& graph) {
  std::map<std::string_view, ValueId> inputs;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kPlaceholder) continue;
    const std::string_view fqn = graph.attribute(node, "fqn");
    if (!fqn.empty()) inputs.emplace(fqn, graph.result(node));
  }
  return inputs;
}

std::vector<ValuePair> PairNamedInputs(const Graph& before, const Graph& after) {
  std::vector<ValuePair> pairs;
  const std::map<std::string_view, ValueId> others = InputsByFqn(after);
  for (const auto& [fqn, value] : InputsByFqn(before)) {
    if (const auto other = others.find(fqn); other != others.end())
      pairs.push_back({value, other->second});
  }
  return pairs;
}

}  // namespace

std::string MatchedGraphs::NameBefore(ValueId value) const {
  return NameIn(diff.before, value);
}

std::string MatchedGraphs::NameAfter(ValueId value) const {
  return NameIn(diff.after, value);
}

std::string MatchedGraphs::ModuleAfter(ValueId value) const {
  if (!value.valid()) return {};
  const Graph& graph = diff.after.root();
  return std::string(graph.module().str(graph.node(graph.value(value).def).module));
}

Result<MatchedGraphs> MatchGraphs(const Graph& before, const Graph& after, bool stable_ids) {
  STRATA_TRY(GraphDiff diff, Diff(before, after, {.stable_ids = stable_ids}));
  MatchedGraphs matched{
      .diff = std::move(diff), .pairs = PairNamedInputs(before, after), .stored = {}};
  // Passes of Strata keep inputs.
  if (!stable_ids) matched.stored = StoredInputsOf(before, after);
  std::set<ValueId> before_named, after_named;
  for (const auto& [x, y] : matched.pairs) {
    before_named.insert(x);
    after_named.insert(y);
  }
  const Listing& a = matched.diff.before;
  const Listing& b = matched.diff.after;
  for (const Pair& pair : matched.diff.pairs) {
    // Bodies have no values of their own when they run.
    if (a.scope_of(pair.before) != Listing::kProgram) continue;
    if (b.scope_of(pair.after) != Listing::kProgram) continue;
    const EntityKind kind = a[pair.before].kind;
    if (kind != EntityKind::kInput && kind != EntityKind::kCompute) continue;
    if (IsUndefined(a.target(pair.before))) continue;
    const ValueId x = a.value(pair.before), y = b.value(pair.after);
    if (!x.valid() || !y.valid() || before_named.contains(x) || after_named.contains(y)) continue;
    if (kind == EntityKind::kInput && !AreAlike(before, x, after, y)) continue;
    matched.pairs.push_back({x, y});
  }
  return matched;
}

NamedTensors TransferInputs(const MatchedGraphs& matched, const NamedTensors& inputs) {
  NamedTensors transferred = inputs;
  const Graph& before = matched.diff.before.root();
  const Graph& after = matched.diff.after.root();
  for (const auto& [x, y] : matched.pairs) {
    const NodeId node = before.value(x).def;
    if (before.node(node).kind != NodeKind::kPlaceholder) continue;
    const auto found = inputs.find(InputName(before, node));
    if (found == inputs.end()) continue;
    transferred.insert_or_assign(InputName(after, after.value(y).def), found->second);
  }
  for (const auto& [attribute, input] : matched.stored) {
    if (const auto found = inputs.find(InputName(before, input)); found != inputs.end())
      transferred.emplace(attribute, found->second);
  }
  return transferred;
}

std::string DescribeFirst(const MatchedGraphs& matched, const ValueComparison& comparison) {
  const ValueMismatch& first = *comparison.first();
  std::string_view kind;
  if (comparison.nodes.mismatches.empty())
    kind = comparison.outputs.mismatches.empty() ? "written input " : "output ";
  const TensorDifference& difference = first.difference;
  const std::string before = matched.NameBefore(first.pair.before);
  const std::string after = matched.NameAfter(first.pair.after);
  const std::string module = matched.ModuleAfter(first.pair.after);
  const std::string where = fmt::format("{}{}{}{}", kind, after,
                                        before == after ? "" : fmt::format(", before {}", before),
                                        module.empty() ? "" : fmt::format(" ({})", module));
  if (!first.types.empty()) return fmt::format("{}: is {}", where, first.types);
  std::string relative;
  if (difference.magnitude > 0.0)
    relative = fmt::format(", {:.2g} of the largest", difference.max_abs / difference.magnitude);
  return fmt::format("{}: {} elements, up to {:g} ulps{}: element {} is {:.9g}, was {:.9g}", where,
                     difference.elements, difference.max_ulps, relative, difference.where,
                     difference.after, difference.before);
}

}  // namespace strata::cli
