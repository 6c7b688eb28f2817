#include "passes/placement/lowering/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/core/view_strides.h"
#include "passes/placement/lowering/lower_attention.h"
#include "passes/placement/lowering/lower_dispatch.h"
#include "passes/placement/lowering/lower_embedding.h"
#include "passes/placement/lowering/lower_loss.h"
#include "passes/placement/lowering/lower_products.h"
#include "passes/placement/lowering/lower_redistribution.h"
#include "passes/placement/placement.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {
namespace {

/// Lowers one placed graph.
class GraphLowerer {
 public:
  GraphLowerer(Graph& graph, Mesh mesh)
      : graph_(graph), module_(graph.module()), mesh_(std::move(mesh)), rewriter_(graph) {}

  Status Run() {
    const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
    for (const NodeId node : nodes)
      FindRows(node);
    for (const NodeId node : nodes) {
      if (graph_.node(node).kind == NodeKind::kCall && graph_.op(node) != kRedistributeOp)
        STRATA_RETURN_IF_ERROR(LowerSizes(node));
    }
    KeepGlobalTypes();
    for (const NodeId node : nodes) {
      for (size_t i = 0; i < graph_.node(node).num_results; ++i)
        STRATA_RETURN_IF_ERROR(LowerType(graph_.result(node, i)));
    }
    for (const NodeId node : nodes) {
      const std::string_view base = BaseName(graph_.op(node));
      if (graph_.op(node) == kRedistributeOp) {
        STRATA_RETURN_IF_ERROR(LowerMove(node));
      } else if (base == "_grouped_mm") {
        STRATA_RETURN_IF_ERROR(LowerGroups(node));
        if (AlignProduct(rewriter_, node)) laid_out_.insert(graph_.result(node));
      } else if (base == "embedding" || base == "embedding_dense_backward") {
        LowerLookup(node, base != "embedding");
      } else if (IsLoss(base)) {
        LowerClasses(node);
      } else if (const AttentionOp* attention = FindAttentionOp(graph_.op(node))) {
        const ValueId query = graph_.args(node)[attention->query].value();
        attention_.Lower(node, *attention, placements_.at(query), mesh_);
      }
    }
    ReadRows();
    LowerViews();
    return Ok();
  }

 private:
  const Placements& PlacementsOf(ValueId value) const {
    return module_.types()[graph_.value(value).type].placements;
  }

  // --- Rows by expert
  // -----------------------------------------------------------------------------------

  bool IsByExpertValue(ValueId value) const {
    const TypeId type = graph_.value(value).type;
    return type.valid() && std::ranges::any_of(module_.types()[type].placements, IsByExpert);
  }

  /// Rows by expert are those of the dispatch that their operand has, which a redistribution names.
  void FindRows(NodeId node) {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId result = graph_.result(node, i);
      if (!IsByExpertValue(result)) continue;
      const auto operands = graph_.operands(node);
      const auto from =
          std::ranges::find_if(operands, [&](ValueId v) { return counts_.contains(v); });
      const bool is_dispatch = graph_.op(node) == kRedistributeOp && operands.size() == 2;
      if (!is_dispatch && from == operands.end()) continue;
      const ValueId counts = is_dispatch ? operands[1] : counts_.at(*from);
      counts_.emplace(result, counts);
      if (!rows_.contains(counts)) rows_.emplace(counts, NewUnbackedSymbol(module_));
    }
  }

  /// How many rows by expert a rank has; none: the value has none, or it is not known.
  DimId RowsOf(ValueId value) const {
    const auto found = counts_.find(value);
    return found == counts_.end() ? DimId{} : rows_.at(found->second);
  }

  /// A grouped product over rows by expert ends its groups where the rank's own rows do.
  Status LowerGroups(NodeId node) {
    ValueId counts = {};
    for (const ValueId operand : graph_.operands(node))
      if (const auto found = counts_.find(operand); found != counts_.end()) counts = found->second;
    if (!counts.valid()) return Ok();
    const auto dispatch = dispatches_.find(counts);
    if (dispatch == dispatches_.end() || graph_.args(node).size() < 3)
      return Error("{} reads rows that no redistribution brings", graph_.name(node));
    rewriter_.SetSlot(node, graph_.node(node).args_begin + 2, Arg(dispatch->second.ends()));
    return Ok();
  }

  /// The axes, one after the other, on which rows move.
  Result<std::pair<std::string, int64_t>> GroupOf(const Placements& from, const Placements& to,
                                                  ValueId counts) const {
    std::vector<size_t> axes;
    int64_t ranks = 1;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      if (from[axis] == to[axis]) continue;
      if (!IsRows(from[axis]) || !IsRows(to[axis]))
        return Error("rows move between tokens and experts, and {} becomes {} besides",
                     PlacementsText(module_, {from[axis]}), PlacementsText(module_, {to[axis]}));
      if (!IsPartial(placements_.at(counts)[axis]))
        return Error("rows move on mesh axis {}, on which {} does not count those of each rank",
                     mesh_.axes()[axis].name, graph_.value_name(counts));
      axes.push_back(axis);
      ranks *= mesh_.axes()[axis].size;
    }
    if (const MeshAxis* joined = mesh_.Joined(axes.front(), axes.size());
        joined != nullptr && axes.back() - axes.front() + 1 == axes.size()) {
      const MeshAxis* ep = mesh_.Find("ep");
      const bool is_ep = ep != nullptr && ep->size == joined->size && ep->stride == joined->stride;
      return std::pair(is_ep ? ep->name : joined->name, ranks);
    }
    std::string group;
    for (const size_t axis : axes)
      group += (group.empty() ? "" : "+") + mesh_.axes()[axis].name;
    return std::pair(group, ranks);
  }

  Result<ValueId> LowerRows(NodeId node) {
    const ValueId operand = graph_.args(node)[0].value(), counts = graph_.args(node)[2].value();
    const Placements &from = placements_.at(operand), &to = placements_.at(graph_.result(node));
    STRATA_TRY(const auto group, GroupOf(from, to, counts));
    auto found = dispatches_.find(counts);
    if (found == dispatches_.end()) {
      const auto experts =
          module_.dims().AsConst(module_.types()[graph_.value(counts).type].sizes[0]);
      if (!experts || *experts % group.second != 0)
        return Error("{} ranks of {} do not divide the experts", group.second, group.first);
      found = dispatches_
                  .emplace(counts, DispatchLowering(rewriter_, counts, group.first, group.second,
                                                    rows_.at(counts), node))
                  .first;
    }
    const auto rows = std::ranges::find_if(to, IsRows);
    const auto dim = static_cast<size_t>(rows->dim);
    const ValueId value = FirstDim(operand, dim, node);
    const bool is_by_expert = std::ranges::any_of(to, IsByExpert);
    const DimId tokens = module_.types()[graph_.value(graph_.result(node)).type].sizes[dim];
    return FirstDim(is_by_expert ? found->second.ToExperts(value, node)
                                 : found->second.ToTokens(value, tokens, node),
                    dim, node);
  }

  /// A view in which dimension `dim` is the first one, and the first one stands for it.
  ValueId FirstDim(ValueId value, size_t dim, NodeId ancestor) {
    if (dim == 0) return value;
    Type type = module_.types()[graph_.value(value).type];
    std::swap(type.sizes[0], type.sizes[dim]);
    std::swap(type.strides[0], type.strides[dim]);
    const Arg args[] = {Arg(value), Arg::Int(0), Arg::Int(static_cast<int64_t>(dim))};
    const TypeId types[] = {module_.types().Intern(type)};
    const NodeId node = rewriter_.Create(
        {.op = "aten.transpose.int", .args = args, .results = types}, From{ancestor});
    const ValueId root =
        graph_.value(value).alias_of.valid() ? graph_.value(value).alias_of : value;
    rewriter_.SetAlias(graph_.result(node), root);
    return graph_.result(node);
  }

  /// Arguments that state sizes of result 0 state the local ones.
  Status LowerSizes(NodeId node) {
    STRATA_TRY(const ShardingRule rule, ShardingRuleOf(graph_, node));
    if (rule.size_lists.empty() && rule.size_args.empty()) return Ok();
    const ValueId result = graph_.result(node);
    const DimId rows = RowsOf(result);
    STRATA_TRY(const TypeId local, LocalType(module_, graph_.value(result).type, mesh_, rows));
    const std::vector<DimId> before = module_.types()[graph_.value(result).type].sizes;
    const std::vector<DimId> after = module_.types()[local].sizes;
    const auto lower = [&](uint32_t slot, size_t dim) {
      const Arg& arg = graph_.slot(slot);
      const bool is_inferred = arg.kind() == ArgKind::kInt && arg.as_int() < 0;
      if (dim >= after.size() || before[dim] == after[dim] || is_inferred) return;
      const auto number = module_.dims().AsConst(after[dim]);
      rewriter_.SetSlot(node, slot, number ? Arg::Int(*number) : Arg::Dim(after[dim]));
    };
    for (const int position : rule.size_lists) {
      const Node& n = graph_.node(node);
      if (position >= static_cast<int>(n.num_args)) continue;
      const Arg list = graph_.args(node)[static_cast<size_t>(position)];
      if (!list.is_span()) continue;
      for (uint32_t i = 0; i < list.span_size(); ++i)
        lower(list.span_begin() + i, i);
    }
    for (const auto& [position, dim] : rule.size_args)
      lower(graph_.node(node).args_begin + static_cast<uint32_t>(position),
            static_cast<size_t>(dim));
    return Ok();
  }

  void KeepGlobalTypes() {
    const auto text = [&](ValueId value) {
      const TypeId type = graph_.value(value).type;
      return type.valid() ? module_.types().ToString(type) : std::string();
    };
    for (const NodeId node : graph_.placeholders())
      if (!PlacementsOf(graph_.result(node)).empty())
        rewriter_.SetAttribute(node, kGlobalTypeAttribute, text(graph_.result(node)));
    std::string outputs;
    for (const ValueId value : graph_.operands(graph_.output())) {
      if (!outputs.empty()) outputs += "; ";
      outputs += text(value);
    }
    rewriter_.SetAttribute(graph_.output(), kGlobalTypeAttribute, outputs);
  }

  Status LowerType(ValueId value) {
    const TypeId placed = graph_.value(value).type;
    if (!placed.valid()) return Ok();
    auto local = LocalType(module_, placed, mesh_, RowsOf(value));
    if (!local) return std::move(local).error().In(graph_.value_name(value));
    placements_.emplace(value, PlacementsOf(value));
    wholes_.emplace(value, module_.types()[placed]);
    rewriter_.SetType(value, *local);
    return Ok();
  }

  void LowerLookup(NodeId node, bool is_backward) {
    const ValueId table = is_backward ? graph_.result(node) : graph_.args(node)[0].value();
    const Placements vocabulary = placements_.at(table);
    if (!CutsRows(vocabulary)) return;
    const Placements result = placements_.at(graph_.result(node));
    rewriter_.SetCursorBefore(node);
    const auto rows = module_.dims().AsConst(wholes_.at(table).sizes[0]);
    const ValueId lowered = LowerEmbedding(rewriter_, node, vocabulary, *rows, mesh_);
    placements_.emplace(lowered, result);
  }

  void LowerClasses(NodeId node) {
    const ValueId value = ClassesOf(graph_, node);
    const Placements placements = placements_.at(value);
    const int32_t dim = ClassDim(graph_, node);
    const auto is_cut = [&](const Placement& p) { return IsShard(p) && p.dim == dim; };
    if (!std::ranges::any_of(placements, is_cut)) return;
    const auto classes = module_.dims().AsConst(wholes_.at(value).sizes[static_cast<size_t>(dim)]);
    const Placements result = placements_.at(graph_.result(node));
    const Type whole = wholes_.at(graph_.result(node));
    const ValueId lowered = LowerLoss(rewriter_, node, *classes, placements, mesh_, labels_);
    placements_.emplace(lowered, result);
    wholes_.emplace(lowered, whole);
  }

  Status LowerMove(NodeId node) {
    const ValueId operand = graph_.args(node)[0].value();
    const ValueId result = graph_.result(node);
    rewriter_.SetCursorBefore(node);
    const bool moves_rows = graph_.args(node).size() > 2;
    auto lowered = moves_rows ? LowerRows(node)
                              : LowerRedistribution(rewriter_, operand, wholes_.at(result),
                                                    placements_.at(operand), placements_.at(result),
                                                    mesh_, node);
    if (!lowered) return std::move(lowered).error().In(graph_.name(node));
    placements_.emplace(*lowered, placements_.at(result));
    wholes_.emplace(*lowered, wholes_.at(result));
    if (const auto counts = counts_.find(result); counts != counts_.end())
      counts_.emplace(*lowered, counts->second);
    if (!(TypeOf(*lowered) == TypeOf(result))) laid_out_.insert(*lowered);
    rewriter_.ReplaceUses(result, *lowered);
    rewriter_.Erase(node);
    return Ok();
  }

  /// Arguments that are a number of rows by expert are read from what counted them.
  void ReadRows() {
    std::map<DimId, ValueId> numbers;
    for (const auto& [counts, dispatch] : dispatches_)
      numbers.emplace(rows_.at(counts), dispatch.num_rows());
    if (numbers.empty()) return;
    for (const NodeId node : graph_.nodes().Snapshot()) {
      const auto read = [&](uint32_t slot, const auto& self) -> void {
        const Arg arg = graph_.slot(slot);
        const auto number = arg.kind() == ArgKind::kDim ? numbers.find(arg.dim()) : numbers.end();
        if (number != numbers.end()) rewriter_.SetSlot(node, slot, Arg(number->second));
        if (!arg.is_span()) return;
        for (uint32_t i = 0; i < arg.span_size(); ++i)
          self(arg.span_begin() + i, self);
      };
      const Node n = graph_.node(node);
      for (uint32_t i = 0; i < n.num_args; ++i)
        read(n.args_begin + i, read);
    }
  }

  /// A value that was moved lies in memory of its own: views of it have other strides than views of
  /// what it was a view of.
  void LowerViews() {
    if (laid_out_.empty()) return;
    for (const NodeId node : graph_.nodes().Snapshot()) {
      if (graph_.node(node).kind != NodeKind::kCall || graph_.args(node).empty()) continue;
      const Arg source = graph_.args(node)[0];
      if (!source.is_value() || !laid_out_.contains(source.value())) continue;
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        const ValueId result = graph_.result(node, i);
        if (!graph_.value(result).alias_of.valid() || !graph_.value(result).type.valid()) continue;
        const Type type = TypeOfView(graph_, node, i);
        if (type == TypeOf(result)) continue;
        rewriter_.SetType(result, module_.types().Intern(type));
        laid_out_.insert(result);
      }
    }
  }

  const Type& TypeOf(ValueId value) const { return module_.types()[graph_.value(value).type]; }

  Graph& graph_;
  Module& module_;
  const Mesh mesh_;
  Rewriter rewriter_;
  AttentionLowering attention_{rewriter_};
  std::map<ValueId, Placements> placements_;        // of values that had some
  std::map<ValueId, Type> wholes_;                  // their types, of the whole tensor
  std::map<ValueId, ValueId> counts_;               // of rows by expert, what counts their dispatch
  std::map<ValueId, DimId> rows_;                   // by counts: how many a rank has
  std::map<ValueId, DispatchLowering> dispatches_;  // by counts
  LabelsOfLosses labels_;
  std::set<ValueId> laid_out_;  // values that lie in other memory than their types said
};

}  // namespace

Result<Changed> LowerPlacements::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    const std::string mesh_text(graph.attribute(graph.output(), kMeshAttribute));
    if (mesh_text.empty() || IsLowered(graph)) continue;
    STRATA_TRY(Mesh mesh, Mesh::Parse(mesh_text));
    if (auto lowered = GraphLowerer(graph, std::move(mesh)).Run(); !lowered)
      return std::move(lowered).error().In(graph.name_text());
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata
