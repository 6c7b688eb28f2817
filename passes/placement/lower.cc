#include "passes/placement/lower.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/placement/lower_embedding.h"
#include "passes/placement/lower_redistribution.h"
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
      } else if (base == "embedding" || base == "embedding_dense_backward") {
        LowerLookup(node, base != "embedding");
      }
    }
    return Ok();
  }

 private:
  const Placements& PlacementsOf(ValueId value) const {
    return module_.types()[graph_.value(value).type].placements;
  }

  /// Arguments that state sizes of result 0 state the local ones.
  Status LowerSizes(NodeId node) {
    STRATA_TRY(const ShardingRule rule, ShardingRuleOf(graph_, node));
    if (rule.size_lists.empty() && rule.size_args.empty()) return Ok();
    const ValueId result = graph_.result(node);
    STRATA_TRY(const TypeId local, LocalType(module_, graph_.value(result).type, mesh_));
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
    auto local = LocalType(module_, placed, mesh_);
    if (!local) return std::move(local).error().In(graph_.value_name(value));
    placements_.emplace(value, PlacementsOf(value));
    rewriter_.SetType(value, *local);
    return Ok();
  }

  void LowerLookup(NodeId node, bool is_backward) {
    const ValueId table = is_backward ? graph_.result(node) : graph_.args(node)[0].value();
    const Placements vocabulary = placements_.at(table);
    if (!CutsRows(vocabulary)) return;
    const Placements result = placements_.at(graph_.result(node));
    rewriter_.SetCursorBefore(node);
    const ValueId lowered = LowerEmbedding(rewriter_, node, vocabulary, mesh_);
    placements_.emplace(lowered, result);
  }

  Status LowerMove(NodeId node) {
    const ValueId operand = graph_.args(node)[0].value();
    const ValueId result = graph_.result(node);
    rewriter_.SetCursorBefore(node);
    auto lowered = LowerRedistribution(rewriter_, operand, placements_.at(operand),
                                       placements_.at(result), mesh_, node);
    if (!lowered) return std::move(lowered).error().In(graph_.name(node));
    placements_.emplace(*lowered, placements_.at(result));
    rewriter_.ReplaceUses(result, *lowered);
    rewriter_.Erase(node);
    return Ok();
  }

  Graph& graph_;
  Module& module_;
  const Mesh mesh_;
  Rewriter rewriter_;
  std::map<ValueId, Placements> placements_;  // of values that had some
};

}  // namespace

Result<Changed> LowerPlacements::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    const std::string mesh_text(graph.attribute(graph.output(), kMeshAttribute));
    const bool is_lowered = !graph.attribute(graph.output(), kGlobalTypeAttribute).empty();
    if (mesh_text.empty() || is_lowered) continue;
    STRATA_TRY(Mesh mesh, Mesh::Parse(mesh_text));
    if (auto lowered = GraphLowerer(graph, std::move(mesh)).Run(); !lowered)
      return std::move(lowered).error().In(graph.name_text());
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata
