#include "prove/layers/pair_cut.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/values/call.h"

namespace strata::prove {
namespace {

/// One flat list of values.
bool HasListOfOutputs(const Graph& graph) {
  if (!graph.output().valid()) return false;
  const auto args = graph.args(graph.output());
  if (args.size() != 1 || !args[0].is_span() || args[0].kind() > ArgKind::kTuple) return false;
  return std::ranges::none_of(graph.elements(args[0]), &Arg::is_span);
}

/// What the ranks exchange by counts that are values.
std::optional<ValueId> ExchangedByCounts(const Graph& graph, NodeId node) {
  if (!IsCollective(graph, node, CollectiveKind::kAllToAll)) return std::nullopt;
  const auto args = graph.args(node);
  const auto has_values = [&](const Arg& counts) {
    return counts.is_span() && std::ranges::any_of(graph.elements(counts), &Arg::is_value);
  };
  if (args.size() < 3 || !args[0].is_value() || !(has_values(args[1]) || has_values(args[2])))
    return std::nullopt;
  return args[0].value();
}

/// Integers, such as the rows that an index_select reads.
bool IsIndices(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() && DomainOf(graph.module().types()[type].dtype) == Domain::kInteger;
}

}  // namespace

bool PairCut::CanCut(const Graph& before, const Graph& after) {
  return before.placeholders().size() == after.placeholders().size() && HasListOfOutputs(before) &&
         HasListOfOutputs(after) &&
         before.operands(before.output()).size() == after.operands(after.output()).size();
}

void PairCut::Keep(Side side, NodeId node) {
  if (Stays(side, node)) return;
  stays_[side][static_cast<size_t>(node.index)] = true;
  work_.push_back({side, node});
}

std::optional<PairCut::Place> PairCut::Mark() {
  given_.clear();
  rows_ = {};
  work_.clear();
  for (const Side side : kSides) {
    const Graph& graph = pair_.graph(side);
    stays_[side].assign(static_cast<size_t>(graph.node_bound()), false);
    inputs_[side] = graph.placeholders();
    for (const NodeId node : graph.nodes())
      if (graph.node(node).kind == NodeKind::kOutput || !choice_.node(side, node)) Keep(side, node);
  }
  do {
    while (!work_.empty()) {
      const auto [side, node] = work_.back();
      work_.pop_back();
      if (!KeepOperands(side, node)) return Place{side, refused_};
    }
  } while (ComputeKnown());
  return std::nullopt;
}

bool PairCut::KeepOperands(Side side, NodeId node) {
  const Graph& graph = pair_.graph(side);
  const bool is_output = graph.node(node).kind == NodeKind::kOutput;
  const std::optional<ValueId> exchanged = ExchangedByCounts(graph, node);
  const bool is_of_rows = rows_[side].contains(node);
  bool is_legal = true;
  size_t i = 0;
  graph.ForEachOperand(node, [&](ValueId value) {
    const bool is_left_out = is_output && choice_.output(i++);
    const bool has_rows = value == exchanged || (is_of_rows && IsIndices(graph, value));
    if (has_rows) ComputeRows(side, value);
    is_legal = (is_left_out || Need(side, value, has_rows)) && is_legal;
  });
  return is_legal;
}

/// No input takes the place of the value, and its own indices are computed.
void PairCut::ComputeRows(Side side, ValueId value) {
  const NodeId def = pair_.graph(side).value(value).def;
  if (!rows_[side].insert(def).second) return;
  std::erase_if(given_, [&](const auto& entry) {
    if (!entry.second.places[side].contains(value)) return false;
    Compute(entry.second);
    return true;
  });
  if (Stays(side, def)) work_.push_back({side, def});
}

/// What stays reads a value. Given ones take the place of those that are compared, unless the value
/// has to be computed; others are computed.
bool PairCut::Need(Side side, ValueId value, bool is_computed) {
  const Graph& graph = pair_.graph(side);
  const NodeId def = graph.value(value).def;
  if (Stays(side, def)) return true;
  if (pair_.IsWritten(side, value)) {
    refused_ = def;
    return false;
  }
  if (graph.node(def).kind == NodeKind::kPlaceholder) {
    KeepInput(side, def);
  } else if (const auto given = is_computed ? std::nullopt : pair_.GivenFor(side, value)) {
    AddPlace(side, value, *given);
  } else {
    Keep(side, def);
  }
  return true;
}

void PairCut::AddPlace(Side side, ValueId value, const GivenValue& given) {
  auto& places = given_.try_emplace(given.before.index, Given{given}).first->second.places;
  places[side].insert(value);
  places[kBefore].insert(given.before);
  places[kAfter].insert(given.after);
  const Graph& own = pair_.graph(side);
  const Side other = side == kBefore ? kAfter : kBefore;
  if (const NodeId partner = pair_.PartnerOf(side, own.value(value).def); partner.valid())
    places[other].insert(pair_.graph(other).result(partner, own.result_index(value)));
}

/// No input takes its place.
void PairCut::Compute(const Given& given) {
  for (const Side side : kSides)
    for (const ValueId value : given.places[side])
      Keep(side, pair_.graph(side).value(value).def);
}

/// What is computed is not given besides. What reads a view and what reads its base may read the
/// same elements, so a view of what is computed, or of what has another new input or view, is
/// computed, too. Returns whether there was one.
bool PairCut::ComputeKnown() {
  const size_t count = given_.size();
  for (const Side side : kSides) {
    const auto stays = [&](ValueId value) {
      return Stays(side, pair_.graph(side).value(value).def);
    };
    std::map<ValueId, int> uses;  // of bases
    for (const auto& [index, given] : given_)
      for (const ValueId base : BasesOf(side, given))
        ++uses[base];
    std::erase_if(given_, [&](const auto& entry) {
      const bool is_known = std::ranges::any_of(entry.second.places[side], [&](ValueId value) {
        const ValueId base = BaseOf(side, value);
        return stays(value) || (base != value && (uses[base] > 1 || stays(base)));
      });
      if (is_known) Compute(entry.second);
      return is_known;
    });
  }
  return given_.size() < count;
}

std::set<ValueId> PairCut::BasesOf(Side side, const Given& given) const {
  std::set<ValueId> bases;
  for (const ValueId value : given.places[side])
    bases.insert(BaseOf(side, value));
  return bases;
}

/// What a view is a view of; another value itself.
ValueId PairCut::BaseOf(Side side, ValueId value) const {
  const Graph& graph = pair_.graph(side);
  for (NodeId def = graph.value(value).def; TraitsOf(graph.op(def)).view;
       def = graph.value(value).def)
    value = graph.operands(def)[0];
  return value;
}

/// Both graphs keep an input.
void PairCut::KeepInput(Side side, NodeId node) {
  const auto at = std::ranges::find(inputs_[side], node) - inputs_[side].begin();
  for (const Side either : kSides)
    Keep(either, inputs_[either][static_cast<size_t>(at)]);
}

int64_t PairCut::CallsLeftOut(Side side) const {
  const Graph& graph = pair_.graph(side);
  int64_t count = 0;
  for (const NodeId node : graph.nodes())
    count += graph.node(node).kind == NodeKind::kCall && !Stays(side, node) ? 1 : 0;
  return count;
}

CutPair PairCut::Build() const {
  const uint64_t first_id = std::max(pair_.graph(kBefore).module().next_stable_id(),
                                     pair_.graph(kAfter).module().next_stable_id());
  CutPair cut;
  cut.before_module = Build(kBefore, first_id);
  cut.after_module = Build(kAfter, first_id);
  cut.before = &cut.before_module->graph(pair_.graph(kBefore).id());
  cut.after = &cut.after_module->graph(pair_.graph(kAfter).id());
  return cut;
}

/// The module with the graph that stays.
std::unique_ptr<Module> PairCut::Build(Side side, uint64_t first_id) const {
  const Graph& whole = pair_.graph(side);
  std::unique_ptr<Module> module = whole.module().Clone();
  Graph& graph = module->graph(whole.id());
  Rewriter rewriter(graph);
  AddGiven(side, first_id, rewriter);
  module->ReserveStableIds(first_id + given_.size());
  DropOutputs(rewriter);
  std::vector<NodeId> nodes = graph.nodes().Snapshot();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (node->index < whole.node_bound() && !Stays(side, *node)) rewriter.Erase(*node);
  return module;
}

/// New inputs after the others, in one order in both graphs.
void PairCut::AddGiven(Side side, uint64_t first_id, Rewriter& rewriter) const {
  Graph& graph = rewriter.graph();
  if (inputs_[side].empty()) {
    rewriter.SetCursorBefore(graph.first());
  } else {
    rewriter.SetCursorAfter(inputs_[side].back());
  }
  for (const auto& [index, given] : given_) {
    const ValueId first = side == kBefore ? given.value.before : given.value.after;
    const TypeId type[] = {graph.value(first).type};
    const std::string name =
        fmt::format("given_{}", pair_.graph(kBefore).value_name(given.value.before));
    const NodeId input = rewriter.Create({.kind = NodeKind::kPlaceholder,
                                          .results = type,
                                          .name = name,
                                          .stable_id = StableId{first_id++}},
                                         From::Source());
    for (const ValueId value : given.places[side])
      rewriter.ReplaceUses(value, graph.result(input));
  }
}

void PairCut::DropOutputs(Rewriter& rewriter) const {
  Graph& graph = rewriter.graph();
  const Arg list = graph.args(graph.output())[0];
  std::vector<Arg> kept;
  size_t i = 0;
  for (const Arg& element : graph.elements(list))
    if (!element.is_value() || !choice_.output(i++)) kept.push_back(element);
  const Arg args[] = {rewriter.MakeSpan(list.kind(), kept)};
  rewriter.SetArgs(graph.output(), args, {});
}

}  // namespace strata::prove
