#include "prove/diagnosis/cone.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/placement/redistribution.h"
#include "prove/joined_stages.h"

namespace strata::prove {
namespace {

constexpr size_t kMaxCone = 2000;

std::string_view KindText(CollectiveKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"all_gather", "reduce_scatter", "all_reduce",
                                                      "all_to_all", "broadcast"};
  return kNames[static_cast<size_t>(kind)];
}

class ConeMaker {
 public:
  ConeMaker(const Graph& graph, const std::set<StableId>& others, const Mesh& mesh)
      : graph_(graph), others_(others), mesh_(mesh) {}

  Cone Of(NodeId node, bool includes_node) {
    if (includes_node) {
      Visit(node);
    } else {
      for (const ValueId operand : graph_.operands(node))
        VisitValue(operand);
    }
    cone_.in_order.assign(cone_.exchanges.rbegin(), cone_.exchanges.rend());
    std::ranges::sort(cone_.exchanges);
    std::ranges::sort(cone_.shards);
    cone_.computed_in_order = cone_.computed;
    std::ranges::sort(cone_.computed);
    return std::move(cone_);
  }

 private:
  void Visit(NodeId node) {
    const StableId id = graph_.node(node).stable_id;
    const bool is_end = graph_.node(node).kind != NodeKind::kCall;
    if (others_.contains(id) || is_end) {
      cone_.roots.push_back(id);
      return;
    }
    if (!seen_.insert(node.index).second || cone_.inner.size() > kMaxCone) return;
    cone_.inner.push_back(node);
    Add(node);
    for (const ValueId operand : graph_.operands(node))
      VisitValue(operand);
  }

  void VisitValue(ValueId value) {
    const NodeId def = graph_.value(value).def;
    const StableId id = graph_.node(def).stable_id;
    if (others_.contains(id)) cone_.results.emplace(id, graph_.result_index(value));
    Visit(def);
  }

  void Add(NodeId node) {
    const std::string_view op = graph_.op(node);
    if (ComputesNumbers(graph_, node)) cone_.computed.emplace_back(BaseName(op));
    if (CollectiveOf(graph_, node)) {
      cone_.exchanges.push_back(ExchangeOf(graph_, node));
    } else if (op == "strata.axis_shard.default") {
      cone_.shards.push_back(fmt::format("{} {}", graph_.args(node)[1].as_int(),
                                         graph_.module().str(graph_.args(node)[2].str())));
    } else if (op == kRedistributeOp) {
      AddRedistribution(node);
    } else if (!IsWait(graph_, node)) {
      cone_.is_lowered_operator = true;
      cone_.has_rows = cone_.has_rows || op.starts_with("strata.");
    }
  }

  const Placements& PlacementsOf(ValueId value) const {
    return graph_.module().types()[graph_.value(value).type].placements;
  }

  /// What a redistribution computes beside its collective.
  void AddComputed(std::string_view reduce, bool is_partial_after) {
    std::vector<std::string> more;
    if (reduce.starts_with("norm")) more = {"sqrt", "pow"};
    if (reduce == "avg") more = {"div"};
    if (is_partial_after) more = {"mul", "eq", "axis_index"};
    cone_.computes = cone_.computes || !more.empty();
    cone_.computed.insert(cone_.computed.end(), more.begin(), more.end());
  }

  /// The collectives that it becomes, the last one first, as they are visited.
  void AddRedistribution(NodeId node) {
    const auto begin = std::ssize(cone_.exchanges);
    AddChanges(node);
    std::ranges::reverse(
        std::ranges::subrange(cone_.exchanges.begin() + begin, cone_.exchanges.end()));
  }

  void AddChanges(NodeId node) {
    if (!graph_.args(node)[0].is_value()) return;
    const Placements &from = PlacementsOf(graph_.args(node)[0].value()),
                     &to = PlacementsOf(graph_.result(node));
    if (from.size() != to.size() || from.size() != mesh_.axes().size()) return;
    const std::vector<AxisChange> changes = PlanRedistribution(from, to);
    for (size_t i = 0; i < changes.size();) {
      MeshAxis group;
      const size_t joined = CountJoined(changes, i, mesh_, group);
      const AxisChange& change = changes[i];
      i += joined;
      const std::string reduce =
          IsPartial(change.from) ? std::string(graph_.module().str(change.from.reduce)) : "";
      AddComputed(reduce, IsPartial(change.to));
      // Rows are sorted, counted and sent.
      if (IsRows(change.from) || IsRows(change.to)) cone_.has_rows = true;
      if (IsCut(change.from) && IsCut(change.to)) {
        cone_.exchanges.push_back({"all_to_all", group.name, ""});
      } else if (IsCut(change.from)) {
        cone_.exchanges.push_back({"all_gather", group.name, ""});
      } else if (IsPartial(change.from)) {
        const bool is_order = reduce == "max" || reduce == "min";
        cone_.exchanges.push_back({IsCut(change.to) && !is_order ? "reduce_scatter" : "all_reduce",
                                   group.name, is_order ? reduce : "sum"});
      } else if (IsCut(change.to)) {
        cone_.shards.push_back(fmt::format("{} {}", change.to.dim, group.name));
      }
    }
  }

  const Graph& graph_;
  const std::set<StableId>& others_;
  const Mesh& mesh_;
  std::set<int32_t> seen_;
  Cone cone_;
};

}  // namespace

bool ComputesNumbers(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall) return false;
  const std::string_view op = graph.op(node), base = BaseName(op);
  constexpr std::array<std::string_view, 14> kMoves = {
      "cat",   "split",       "split_with_sizes", "split_with_sizes_copy", "clone",  "copy",
      "full",  "new_full",    "_to_copy",         "constant_pad_nd",       "arange", "new_zeros",
      "empty", "index_select"};
  if (TraitsOf(op).view || TraitsOf(op).collective || IsWait(graph, node)) return false;
  if (op == "strata.axis_index.default") return true;
  if (!graph.attribute(node, kSumOverPartsAttribute).empty()) return false;
  if (CollectiveOf(graph, node) || !op.starts_with("aten.")) return false;
  return std::ranges::find(kMoves, base) == kMoves.end();
}

std::string WithoutNumber(std::string_view group) {
  return std::string(group.substr(0, group.find('#')));
}

Exchange ExchangeOf(const Graph& graph, NodeId node) {
  const CollectiveKind kind = *CollectiveOf(graph, node);
  const bool reduces = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
  return {std::string(KindText(kind)), WithoutNumber(GroupOf(graph, node)),
          reduces ? std::string(ReduceOpOf(graph, node)) : ""};
}

Cone ConeOf(const Graph& graph, const std::set<StableId>& others, const Mesh& mesh, NodeId node,
            bool includes_node) {
  return ConeMaker(graph, others, mesh).Of(node, includes_node);
}

}  // namespace strata::prove
