#include "prove/static/placement_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/placement/placement.h"
#include "passes/placement/rules/sharding_rule.h"
#include "prove/diagnosis/cone.h"
#include "prove/static/axis_rule.h"
#include "prove/static/blank_memory.h"

namespace strata::prove {
namespace {

constexpr std::string_view kAxisIndex = "strata.axis_index.default";
constexpr std::string_view kAxisShard = "strata.axis_shard.default";

/// What is derived of a value.
struct State {
  std::vector<AxisPlacement> axes;
  /// Collectives send and receive along dimension 0: there lie, one after the other, parts of this
  /// one. 0: no other.
  int32_t packed = 0;
};

class Checker {
 public:
  Checker(Graph& placed, Graph& lowered, Mesh mesh)
      : placed_(placed), lowered_(lowered), module_(lowered.module()), mesh_(std::move(mesh)) {
    for (const NodeId node : placed.nodes())
      contracts_.emplace(placed.node(node).stable_id, node);
    states_.resize(static_cast<size_t>(lowered.value_bound()));
  }

  PlacementCheck Run() {
    for (const NodeId node : lowered_.nodes()) {
      if (lowered_.node(node).kind == NodeKind::kOutput) break;
      Visit(node);
    }
    CheckOutputs();
    return std::move(check_);
  }

 private:
  size_t num_axes() const { return mesh_.axes().size(); }
  State& At(ValueId value) { return states_[static_cast<size_t>(value.index)]; }
  State Unknown() const { return {.axes = std::vector<AxisPlacement>(num_axes()), .packed = 0}; }

  /// Of a value of the placed graph; none: not a tensor.
  std::optional<Placements> ContractOf(ValueId value) const {
    const TypeId type = placed_.value(value).type;
    if (!type.valid() || placed_.module().types()[type].kind != TypeKind::kTensor)
      return std::nullopt;
    const Placements& placements = placed_.module().types()[type].placements;
    return placements.size() == num_axes() ? placements : Placements(num_axes());
  }

  void Visit(NodeId node) {
    culprit_.assign(num_axes(), NodeId{});
    error_.assign(num_axes(), "");
    rule_.reset();
    if (lowered_.node(node).kind == NodeKind::kCall) {
      Derive(node);
    } else {
      for (size_t i = 0; i < lowered_.node(node).num_results; ++i)
        At(lowered_.result(node, i)) = Unknown();
    }
    for (size_t axis = 0; axis < num_axes(); ++axis)
      if (!error_[axis].empty()) Add(node, culprit_[axis], axis, "", error_[axis]);
    Compare(node);
  }

  void Derive(NodeId node) {
    for (size_t i = 0; i < lowered_.node(node).num_results; ++i)
      At(lowered_.result(node, i)) = Unknown();
    const std::string_view op = lowered_.op(node);
    const std::vector<ValueId> operands = lowered_.operands(node);
    blank_.Follow(lowered_, node);
    if (lowered_.node(node).num_results == 0) return;
    State& result = At(lowered_.result(node));
    if (op == kAxisIndex) {
      result.axes.assign(num_axes(), Replicate());
      for (const size_t axis : AxesOf(lowered_.module().str(lowered_.args(node)[0].str())))
        result.axes[axis].reset();
    } else if (IsWait(lowered_, node) || IsDenseCopy(node)) {
      result = At(operands[0]);
    } else if (op == kAxisShard) {
      Cut(node, result);
    } else if (CollectiveOf(lowered_, node)) {
      Exchange(node, result);
    } else if (const ValueId source = RejoinedBy(node); source.valid()) {
      Rejoin(node, source, result);
    } else {
      ByRule(node, operands);
    }
  }

  bool IsDenseCopy(NodeId node) const {
    return lowered_.op(node) == "aten.clone.default" &&
           !contracts_.contains(lowered_.node(node).stable_id);
  }

  std::vector<size_t> AxesOf(std::string_view group) const {
    std::vector<size_t> axes;
    std::string text = WithoutNumber(group);
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('+', begin), text.size());
      const std::vector<size_t> parts = mesh_.PartsOf(text.substr(begin, end - begin));
      axes.insert(axes.end(), parts.begin(), parts.end());
      begin = end + 1;
    }
    return axes;
  }

  /// A part of a whole value.
  void Cut(NodeId node, State& result) {
    const auto args = lowered_.args(node);
    result = At(args[0].value());
    const auto dim = static_cast<size_t>(args[1].as_int());
    for (const size_t axis : AxesOf(module_.str(args[2].str()))) {
      AxisPlacement& p = result.axes[axis];
      const bool is_whole = p && IsReplicate(*p) && result.packed == 0;
      p = is_whole ? CutInside(result, axis, static_cast<int32_t>(dim)) : std::nullopt;
    }
  }

  /// A cut on `axis` of the parts that other axes leave of a dimension. None: how the others cut it
  /// is not known, or they cut it in another order than that of the mesh.
  AxisPlacement CutInside(const State& state, size_t axis, int32_t dim) const {
    int64_t split = 1;  // parts that inner axes make
    for (size_t other = 0; other < num_axes(); ++other) {
      if (other == axis) continue;
      const AxisPlacement& q = state.axes[other];
      if (!q) return std::nullopt;
      if (!IsCut(*q) || q->dim != dim) continue;
      if (q->split != 0) return std::nullopt;
      if (other > axis) split *= mesh_.axes()[other].size;
    }
    return Shard(static_cast<size_t>(dim), split == 1 ? 0 : static_cast<int32_t>(split));
  }

  /// Whether the parts of `axis` lie one after the other in what all other axes leave of their
  /// dimension: none of these cuts it further.
  bool IsInnermost(const State& state, size_t axis) const {
    const Placement& p = *state.axes[axis];
    if (p.split < 0) return false;  // rows, or parts of blocks
    int64_t split = 1;
    for (size_t other = 0; other < num_axes(); ++other) {
      if (other == axis) continue;
      const AxisPlacement& q = state.axes[other];
      if (!q) return false;
      if (!IsCut(*q) || q->dim != p.dim) continue;
      if (q->split != 0) return false;
      if (other > axis) split *= mesh_.axes()[other].size;
    }
    return split == std::max(p.split, 1);
  }

  void Exchange(NodeId node, State& result) {
    const CollectiveKind kind = *CollectiveOf(lowered_, node);
    const ValueId operand = lowered_.operands(node)[0];
    if (blank_.Contains(lowered_, operand)) return;
    const State from = At(operand);
    result = from;
    std::vector<size_t> axes = AxesOf(GroupOf(lowered_, node));
    // What cuts last is gathered first.
    if (kind == CollectiveKind::kAllGather) std::ranges::reverse(axes);
    for (const size_t axis : axes) {
      const State before = result;
      result.axes[axis].reset();
      if (!from.axes[axis]) continue;
      const Placement& p = *from.axes[axis];
      const char* error = nullptr;
      switch (kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kReduceScatter:
          error = Reduce(node, before, axis, kind, result.axes[axis]);
          break;
        case CollectiveKind::kAllGather:
          error = Gather(before, axis, result);
          break;
        case CollectiveKind::kAllToAll:
          if (IsCut(p) && p.dim != from.packed && IsInnermost(before, axis)) {
            result.axes[axis] = CutInside(before, axis, from.packed);
            result.packed = p.dim;
          }
          break;
        default:
          break;
      }
      if (error == nullptr) continue;
      error_[axis] = error;
      culprit_[axis] = lowered_.value(operand).def;
    }
    if (kind == CollectiveKind::kReduceScatter) result.packed = 0;
  }

  /// Why what is reduced cannot be reduced, or null.
  const char* Reduce(NodeId node, const State& from, size_t axis, CollectiveKind kind,
                     AxisPlacement& result) const {
    const Placement& p = *from.axes[axis];
    const std::string_view reduce = ReduceOpOf(lowered_, node);
    if (IsCut(p)) return "a reduction of parts";
    if (IsReplicate(p)) return reduce == "sum" ? "a sum of copies" : nullptr;
    const std::string_view wanted = placed_.module().str(p.reduce);
    // Of several operators: the sum of averages is divided after it, that of squares has a root.
    if (wanted == "norm2" || (wanted == "avg" && reduce == "sum")) return nullptr;
    if (wanted != reduce) return "another reduction than that of the summands";
    result = kind == CollectiveKind::kAllReduce ? AxisPlacement(Replicate())
                                                : CutInside(from, axis, from.packed);
    return nullptr;
  }

  const char* Gather(const State& from, size_t axis, State& result) const {
    const Placement& p = *from.axes[axis];
    if (IsReplicate(p)) return "a gather of copies";
    if (IsPartial(p)) return "a gather of summands";
    if (!IsInnermost(from, axis)) return nullptr;
    result.axes[axis] = Replicate();
    result.packed = p.dim;
    return nullptr;
  }

  /// What was split into equal pieces that this node joins along another dimension; none: it does
  /// something else.
  ValueId RejoinedBy(NodeId node) const {
    if (BaseName(lowered_.op(node)) != "cat" || contracts_.contains(lowered_.node(node).stable_id))
      return {};
    const std::vector<ValueId> pieces = lowered_.operands(node);
    const NodeId split = lowered_.value(pieces[0]).def;
    const bool is_split = BaseName(lowered_.op(split)) == "split" &&
                          lowered_.node(split).num_results == pieces.size();
    for (size_t i = 0; is_split && i < pieces.size(); ++i)
      if (pieces[i] != lowered_.result(split, i)) return {};
    return is_split ? lowered_.operands(split)[0] : ValueId{};
  }

  /// Packs parts for a collective, or unpacks what it received.
  void Rejoin(NodeId node, ValueId source, State& result) {
    const NodeId split = lowered_.value(lowered_.operands(node)[0]).def;
    const State from = At(source);
    const auto split_dim = static_cast<int32_t>(lowered_.args(split)[2].as_int());
    const auto join_dim = static_cast<int32_t>(lowered_.args(node)[1].as_int());
    if (split_dim == 0 && from.packed == join_dim) {
      result = {.axes = from.axes, .packed = 0};
    } else if (join_dim == 0 && from.packed == 0) {
      result = {.axes = from.axes, .packed = split_dim};
    }
  }

  /// Of whole sizes, where the placed graph has the call: in those of a rank, a part of one
  /// element looks like a dimension of size 1.
  std::optional<ShardingRule> RuleOf(NodeId node) {
    const auto found = contracts_.find(lowered_.node(node).stable_id);
    const bool is_new = found == contracts_.end();
    if (is_new ? BaseName(lowered_.op(node)) != "permute"
               : placed_.op(found->second) != lowered_.op(node))
      return std::nullopt;
    auto rule = is_new ? ShardingRuleOf(lowered_, node) : ShardingRuleOf(placed_, found->second);
    return rule ? std::optional(*std::move(rule)) : std::nullopt;
  }

  AxisOperand OnAxis(const State& state, size_t axis) const {
    AxisOperand operand = {.placement = state.axes[axis]};
    if (!operand.placement || !IsCut(*operand.placement)) return operand;
    for (size_t outer = 0; outer < axis; ++outer) {
      const AxisPlacement& p = state.axes[outer];
      if (!p) operand.outer_parts = 0;
      if (p && IsShard(*p) && p->split == 0 && p->dim == operand.placement->dim)
        operand.outer_parts *= mesh_.axes()[outer].size;
    }
    return operand;
  }

  void ByRule(NodeId node, const std::vector<ValueId>& operands) {
    auto rule = RuleOf(node);
    if (!rule || rule->operands.size() != operands.size()) return;
    rule_ = *std::move(rule);
    if (std::ranges::any_of(operands, [&](ValueId value) { return At(value).packed != 0; })) return;
    std::vector<AxisOperand> on_axis(operands.size());
    for (size_t axis = 0; axis < num_axes(); ++axis) {
      for (size_t i = 0; i < operands.size(); ++i)
        on_axis[i] = OnAxis(At(operands[i]), axis);
      AxisResult applied = ApplyRule(placed_.module(), *rule_, on_axis);
      if (applied.operand >= 0)
        culprit_[axis] = lowered_.value(operands[static_cast<size_t>(applied.operand)]).def;
      error_[axis] = std::move(applied.error);
      for (size_t i = 0; i < applied.results.size() && i < lowered_.node(node).num_results; ++i)
        At(lowered_.result(node, i)).axes[axis] = applied.results[i];
    }
  }

  static bool IsPlain(const Placement& p) { return !IsCut(p) || p.split == 0; }

  /// Each result with the same value of the placed graph, which is what later nodes read.
  void Compare(NodeId node) {
    const auto found = contracts_.find(lowered_.node(node).stable_id);
    if (found == contracts_.end()) return;
    const size_t count =
        std::min<size_t>(lowered_.node(node).num_results, placed_.node(found->second).num_results);
    bool is_unknown = false;
    for (size_t i = 0; i < count; ++i) {
      const auto contract = ContractOf(placed_.result(found->second, i));
      if (!contract) continue;
      State& state = At(lowered_.result(node, i));
      for (size_t axis = 0; axis < num_axes(); ++axis) {
        const Placement& wanted = (*contract)[axis];
        const AxisPlacement derived = std::exchange(state.axes[axis], wanted);
        const bool is_known = derived && IsPlain(wanted) == IsPlain(*derived);
        is_unknown = is_unknown || !is_known;
        if (!is_known || !error_[axis].empty() || *derived == wanted) continue;
        const bool is_new_dim = rule_ && i < rule_->results.size() && IsReplicate(*derived) &&
                                IsCut(wanted) && IsNewDim(*rule_, i, wanted.dim);
        if (!is_new_dim) Add(node, culprit_[axis], axis, Text(wanted), Text(*derived));
      }
      state.packed = 0;
    }
    if (lowered_.node(node).kind != NodeKind::kCall) return;
    ++check_.nodes;
    check_.unknown += is_unknown ? 1 : 0;
  }

  void CheckOutputs() {
    if (!placed_.output().valid() || !lowered_.output().valid()) return;
    const std::vector<ValueId> from = placed_.operands(placed_.output()),
                               to = lowered_.operands(lowered_.output());
    for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      const auto contract = ContractOf(from[i]);
      if (!contract) continue;
      for (size_t axis = 0; axis < num_axes(); ++axis) {
        const AxisPlacement& derived = At(to[i]).axes[axis];
        const Placement& wanted = (*contract)[axis];
        if (!derived || IsPlain(wanted) != IsPlain(*derived) || *derived == wanted) continue;
        Add(lowered_.output(), lowered_.value(to[i]).def, axis, Text(wanted), Text(*derived));
      }
    }
  }

  std::string Text(const Placement& placement) const {
    return PlacementsText(placed_.module(), {placement});
  }

  void Add(NodeId node, NodeId operand, size_t axis, std::string expected, std::string derived) {
    check_.findings.push_back(
        {.node = std::string(lowered_.name(node)),
         .operand = operand.valid() ? std::string(lowered_.name(operand)) : "",
         .axis = mesh_.axes()[axis].name,
         .expected = std::move(expected),
         .derived = std::move(derived)});
  }

  Graph& placed_;
  Graph& lowered_;
  Module& module_;
  const Mesh mesh_;
  std::map<StableId, NodeId> contracts_;  // nodes of the placed graph
  std::vector<State> states_;             // by ValueId
  BlankMemory blank_;
  PlacementCheck check_;
  // Of the node that is visited.
  std::optional<ShardingRule> rule_;
  std::vector<NodeId> culprit_;     // by axis: the operand that decided
  std::vector<std::string> error_;  // by axis
};

}  // namespace

std::string ToString(const PlacementFinding& finding) {
  std::string text = fmt::format("{}: {} on {}", finding.node, finding.derived, finding.axis);
  if (!finding.expected.empty()) text += fmt::format(", expected {}", finding.expected);
  if (!finding.operand.empty()) text += fmt::format(": from {}", finding.operand);
  return text;
}

PlacementCheck CheckPlacements(const Graph& placed, const Graph& lowered) {
  if (IsLowered(placed) || !IsLowered(lowered)) return {};
  auto mesh = Mesh::Parse(lowered.attribute(lowered.output(), kMeshAttribute));
  if (!mesh) return {};
  const auto from = placed.module().Clone(), to = lowered.module().Clone();  // get sizes of rules
  return Checker(from->graph(placed.id()), to->graph(lowered.id()), *std::move(mesh)).Run();
}

}  // namespace strata::prove
