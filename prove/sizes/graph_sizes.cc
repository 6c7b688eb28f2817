#include "prove/sizes/graph_sizes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "passes/placement/placement.h"
#include "prove/sizes/size_arguments.h"

namespace strata::prove {
namespace {

/// A literal integer in the arguments of a call.
struct Literal {
  uint32_t slot;
  IntegerUse use;
  int64_t number;
};

std::vector<Literal> LiteralsOf(const Graph& graph, NodeId node) {
  std::vector<Literal> literals;
  ForEachInteger(graph, node, [&](uint32_t slot, IntegerUse use, int64_t number) {
    literals.push_back({slot, use, number});
  });
  return literals;
}

class Pairs {
 public:
  Pairs(GraphSizes& before, GraphSizes& after, const MeshSizes& mesh, SizeConstraints& constraints)
      : before_(before),
        after_(after),
        mesh_(mesh),
        constraints_(constraints),
        is_lowering_(IsLowered(after.graph()) && !IsLowered(before.graph())) {}

  void ByStableId() {
    std::map<StableId, NodeId> nodes;
    for (const NodeId node : before_.graph().nodes())
      nodes.emplace(before_.graph().node(node).stable_id, node);
    for (const NodeId node : after_.graph().nodes()) {
      const auto found = nodes.find(after_.graph().node(node).stable_id);
      if (found != nodes.end()) AddNodes(found->second, node);
    }
  }

  void ByPosition() {
    const std::vector<NodeId> from = before_.graph().placeholders(),
                              to = after_.graph().placeholders();
    for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
      AddNodes(from[i], to[i]);
  }

  void Outputs() {
    if (!before_.graph().output().valid() || !after_.graph().output().valid()) return;
    const std::vector<ValueId> from = before_.graph().operands(before_.graph().output()),
                               to = after_.graph().operands(after_.graph().output());
    for (size_t i = 0; i < from.size() && from.size() == to.size(); ++i)
      AddValues(from[i], to[i]);
  }

 private:
  void AddNodes(NodeId from, NodeId to) {
    const Graph &before = before_.graph(), &after = after_.graph();
    for (size_t i = 0; i < std::min(before.node(from).num_results, after.node(to).num_results); ++i)
      AddValues(before.result(from, i), after.result(to, i));
    const std::vector<Literal> a = LiteralsOf(before, from), b = LiteralsOf(after, to);
    for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
      if (a[i].use != b[i].use || a[i].number != b[i].number) continue;
      if (a[i].use != IntegerUse::kSize) {
        before_.SetShared(a[i].slot);
        after_.SetShared(b[i].slot);
      } else if (a[i].number >= 0) {
        constraints_.Join(before_.Argument(a[i].slot, a[i].number, constraints_),
                          after_.Argument(b[i].slot, b[i].number, constraints_));
      }
    }
  }

  void AddValues(ValueId from, ValueId to) {
    const std::vector<SizeId>&wholes = before_.of(from), &parts = after_.of(to);
    if (wholes.size() != parts.size()) return;
    for (size_t dim = 0; dim < wholes.size(); ++dim) {
      if (is_lowering_) {
        AddShard(from, dim, wholes[dim], parts[dim]);
      } else if (constraints_.number(wholes[dim]) == constraints_.number(parts[dim])) {
        constraints_.Join(wholes[dim], parts[dim]);
      }
    }
  }

  /// What ranks have of a dimension that axes of the mesh cut, one after the other. Where one does
  /// not divide it, the last ranks have less, and are padded.
  void AddShard(ValueId value, size_t dim, SizeId whole, SizeId part) {
    for (const size_t axis : AxesThatCut(value, dim)) {
      const SizeId ranks = mesh_.OfAxis(axis);
      const int64_t count = constraints_.number(ranks), size = constraints_.number(whole);
      const SizeId quotient = constraints_.New((size + count - 1) / count);
      const int64_t padded_size = constraints_.number(quotient) * count;
      SizeId padded = whole;
      if (padded_size != size) {
        padded = constraints_.New(padded_size);
        const SizeId padding = constraints_.New(padded_size - size);
        constraints_.AddSum(padded, std::vector{whole, padding});
        constraints_.AddLess(padding, ranks);
      }
      constraints_.AddCut(padded, ranks, quotient);
      whole = quotient;
    }
    if (constraints_.number(whole) == constraints_.number(part)) constraints_.Join(whole, part);
  }

  /// Strided shards lie inside the others.
  std::vector<size_t> AxesThatCut(ValueId value, size_t dim) const {
    const TypeId type = before_.graph().value(value).type;
    std::vector<size_t> axes;
    if (!type.valid()) return axes;
    const auto& placements = before_.graph().module().types()[type].placements;
    const size_t count = std::min(placements.size(), mesh_.mesh().axes().size());
    for (const bool strided : {false, true}) {
      for (size_t axis = 0; axis < count; ++axis) {
        const Placement& p = placements[axis];
        const bool cuts = p.kind == Placement::Kind::kShard && p.dim == static_cast<int32_t>(dim);
        if (cuts && (p.split > 0) == strided) axes.push_back(axis);
      }
    }
    return axes;
  }

  GraphSizes &before_, &after_;
  const MeshSizes& mesh_;
  SizeConstraints& constraints_;
  const bool is_lowering_;
};

}  // namespace

Result<GraphSizes> GraphSizes::Of(Graph& graph, SizeConstraints& constraints) {
  GraphSizes sizes(graph);
  sizes.values_.resize(static_cast<size_t>(graph.value_bound()));
  const Module& module = graph.module();
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId value = graph.result(node, i);
      const TypeId type = graph.value(value).type;
      if (!type.valid()) continue;
      for (const DimId dim : module.types()[type].sizes) {
        const std::optional<int64_t> size = module.dims().AsConst(dim);
        // What a run reads from its tensors, as rows that experts get, follows from smaller sizes.
        if (!size && module.dims().Hint(dim))
          return Error(ErrorCode::kUnsupported, "symbolic sizes");
        sizes.values_[value].push_back(size ? constraints.New(*size)
                                            : constraints.NewUnknown(dim.index));
      }
    }
  }
  return sizes;
}

SizeId GraphSizes::Argument(uint32_t slot, int64_t number, SizeConstraints& constraints) {
  const auto found = arguments_.find(slot);
  if (found != arguments_.end()) return found->second;
  return arguments_.emplace(slot, constraints.New(number)).first->second;
}

void AddPairs(GraphSizes& before, GraphSizes& after, bool stable_ids, const MeshSizes& mesh,
              SizeConstraints& constraints) {
  Pairs pairs(before, after, mesh, constraints);
  if (stable_ids) {
    pairs.ByStableId();
  } else {
    pairs.ByPosition();
  }
  pairs.Outputs();
}

}  // namespace strata::prove
