#include "prove/reduce.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/placement/placement.h"
#include "prove/evaluator.h"
#include "prove/size_arguments.h"
#include "prove/size_map.h"
#include "prove/work.h"

namespace strata::prove {
namespace {

constexpr double kMaxInputElements = 1 << 27;  // 1 GB
constexpr int64_t kLargeSize = 64;             // to be named where it is kept

/// A bound that means the end.
bool IsEnd(int64_t value) {
  return value >= int64_t{1} << 62;
}

double Elements(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid()) return 0;
  double elements = 1;
  for (const DimId size : graph.module().types()[type].sizes)
    elements *= static_cast<double>(graph.module().dims().Hint(size).value_or(1));
  return elements;
}

std::vector<GraphId> BodiesOf(const Graph& graph, NodeId node) {
  std::vector<GraphId> bodies;
  for (const Arg& arg : graph.args(node))
    if (arg.kind() == ArgKind::kGraph) bodies.push_back(arg.graph());
  return bodies;
}

/// Calls `fn` for the graph and the bodies of its nodes.
template <class Fn>
void ForEachGraph(Module& module, GraphId id, std::set<int32_t>& seen, const Fn& fn) {
  if (!seen.insert(id.index).second) return;
  Graph& graph = module.graph(id);
  for (const NodeId node : graph.nodes())
    for (const GraphId body : BodiesOf(graph, node))
      ForEachGraph(module, body, seen, fn);
  fn(graph);
}

/// What the sizes of a graph have to satisfy.
class Collector {
 public:
  Collector(const Graph& graph, SizeConstraints& constraints)
      : graph_(graph), constraints_(constraints) {}

  /// Errors: symbolic sizes.
  Status Run() {
    for (const NodeId node : graph_.nodes()) {
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        STRATA_TRY(const Sizes sizes, SizesOf(graph_.result(node, i)));
        for (const int64_t size : sizes)
          constraints_.Add(size);
      }
      // A size that no type has may be an error of the program: it must stay different.
      ForEachInteger(graph_, node, [&](uint32_t /*slot*/, IntegerUse use, int64_t value) {
        if (use == IntegerUse::kSize && value >= 0 && !IsEnd(value)) constraints_.Add(value);
      });
      if (graph_.node(node).kind == NodeKind::kCall) STRATA_RETURN_IF_ERROR(AddCall(node));
    }
    return Ok();
  }

  /// No literal is what a size becomes: a wrong divisor would be right then.
  void AvoidNumbers() {
    for (const NodeId node : graph_.nodes()) {
      ForEachInteger(graph_, node, [&](uint32_t /*slot*/, IntegerUse use, int64_t value) {
        constexpr int64_t kLeast = -std::numeric_limits<int64_t>::max();
        if (use != IntegerUse::kSize) constraints_.Avoid(std::abs(std::max(value, kLeast)));
      });
    }
  }

  /// Arguments of unknown meaning that are equal to sizes. REQUIRES: all sizes are there.
  void KeepOthers() {
    for (const NodeId node : graph_.nodes()) {
      ForEachInteger(graph_, node, [&](uint32_t /*slot*/, IntegerUse use, int64_t value) {
        if (use == IntegerUse::kOther && constraints_.Has(value)) constraints_.Keep(value);
      });
    }
  }

  /// Shards divide what the axes of the mesh divide; other sizes of shards stay.
  Status AddShards(const Mesh& mesh) {
    for (const NodeId node : graph_.nodes()) {
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        const TypeId type = graph_.value(graph_.result(node, i)).type;
        if (!type.valid()) continue;
        STRATA_TRY(Sizes sizes, SizesOf(graph_.result(node, i)));
        const std::vector<Placement>& placements = graph_.module().types()[type].placements;
        for (size_t axis = 0; axis < placements.size(); ++axis) {
          if (placements[axis].kind != Placement::Kind::kShard) continue;
          int64_t& size = sizes[static_cast<size_t>(placements[axis].dim)];
          size = AddQuotient(size, mesh.axes()[axis].size);
        }
      }
    }
    return Ok();
  }

 private:
  Result<Sizes> SizesOf(ValueId value) const {
    const Module& module = graph_.module();
    const TypeId type = graph_.value(value).type;
    Sizes sizes;
    if (!type.valid()) return sizes;
    for (const DimId dim : module.types()[type].sizes) {
      const std::optional<int64_t> size = module.dims().AsConst(dim);
      if (!size) return Error(ErrorCode::kUnsupported, "symbolic sizes");
      sizes.push_back(*size);
    }
    return sizes;
  }

  /// `size` is `count` times the quotient, which it returns.
  int64_t AddQuotient(int64_t size, int64_t count) {
    constraints_.Keep(count);
    if (size % count != 0) {
      constraints_.Keep(size);
      return (size + count - 1) / count;
    }
    constraints_.AddProduct(std::vector{size}, std::vector{count, size / count});
    return size / count;
  }

  Status AddCall(NodeId node) {
    const std::vector<ValueId> operands = graph_.operands(node);
    if (operands.empty() || graph_.node(node).num_results == 0) return Ok();
    STRATA_TRY(const Sizes from, SizesOf(operands[0]));
    STRATA_TRY(const Sizes to, SizesOf(graph_.result(node)));
    const std::string_view base = BaseName(graph_.op(node));
    const bool has_size_list = base.ends_with("view") || base.starts_with("reshape") ||
                               base == "_reshape_alias" || base == "view_copy";
    if (has_size_list) AddView(from, to);
    if (base == "all_gather_into_tensor" || base == "reduce_scatter_tensor" || base == "shard_axis")
      AddScaled(from, to);
    if (base == "cat") return AddCat(node, operands, to);
    if (base.starts_with("split")) return AddSplit(node, from);
    if (base.starts_with("slice")) AddSlice(node, from, to);
    if (base == "stack") constraints_.Keep(std::ssize(operands));
    if (base.starts_with("_scaled_dot_product")) return AddAttention(node);
    return Ok();
  }

  /// Runs of dimensions with equal products.
  void AddView(const Sizes& from, const Sizes& to) {
    size_t i = 0, j = 0;
    while (i < from.size() && j < to.size()) {
      std::vector<int64_t> left = {from[i++]}, right = {to[j++]};
      int64_t a = left[0], b = right[0];
      while (a != b && a > 0 && b > 0) {
        if (a < b && i < from.size()) {
          left.push_back(from[i]);
          a *= from[i++];
        } else if (b < a && j < to.size()) {
          right.push_back(to[j]);
          b *= to[j++];
        } else {
          return;
        }
      }
      constraints_.AddProduct(left, right);
    }
  }

  /// Gathers, scatters and shards: one dimension becomes a multiple or a quotient.
  void AddScaled(const Sizes& from, const Sizes& to) {
    for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      const int64_t large = std::max(from[i], to[i]), small = std::min(from[i], to[i]);
      if (large != small && small > 0) AddQuotient(large, large / small);
    }
  }

  Status AddCat(NodeId node, const std::vector<ValueId>& operands, const Sizes& to) {
    const auto args = graph_.args(node);
    int64_t dim = args.size() > 1 && args[1].kind() == ArgKind::kInt ? args[1].as_int() : 0;
    if (dim < 0) dim += std::ssize(to);
    std::vector<int64_t> parts;
    for (const ValueId operand : operands) {
      STRATA_TRY(const Sizes sizes, SizesOf(operand));
      if (dim < std::ssize(sizes)) parts.push_back(sizes[static_cast<size_t>(dim)]);
    }
    if (dim < std::ssize(to)) constraints_.AddSum(to[static_cast<size_t>(dim)], parts);
    return Ok();
  }

  Status AddSplit(NodeId node, const Sizes& from) {
    std::vector<Sizes> parts;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      STRATA_TRY(Sizes sizes, SizesOf(graph_.result(node, i)));
      parts.push_back(std::move(sizes));
    }
    for (size_t dim = 0; dim < from.size(); ++dim) {
      std::vector<int64_t> sizes;
      for (const Sizes& part : parts)
        if (dim < part.size() && part[dim] != from[dim]) sizes.push_back(part[dim]);
      constraints_.AddSum(from[dim], sizes);
    }
    return Ok();
  }

  void AddSlice(NodeId node, const Sizes& from, const Sizes& to) {
    std::vector<int64_t> bounds;
    ForEachInteger(graph_, node, [&](uint32_t /*slot*/, IntegerUse use, int64_t value) {
      if (use == IntegerUse::kSize && value > 0 && !IsEnd(value)) bounds.push_back(value);
    });
    for (size_t dim = 0; dim < std::min(from.size(), to.size()); ++dim) {
      const int64_t whole = std::max(from[dim], to[dim]);
      if (from[dim] == to[dim]) continue;
      // Bounds in the middle and the part between them are steps on the way to the whole.
      std::set<int64_t> ends(bounds.begin(), bounds.end());
      ends.insert(whole);
      std::vector<int64_t> parts;
      int64_t begin = 0;
      for (const int64_t end : ends) {
        if (end > whole) break;
        parts.push_back(end - begin);
        if (begin > 0) constraints_.AddSum(end, std::vector{begin, end - begin});
        begin = end;
      }
    }
  }

  /// Groups of query heads read one head of keys.
  Status AddAttention(NodeId node) {
    std::vector<int64_t> heads;
    for (const ValueId operand : graph_.operands(node)) {
      STRATA_TRY(const Sizes sizes, SizesOf(operand));
      if (sizes.size() == 4) heads.push_back(sizes[1]);
    }
    for (const int64_t a : heads)
      for (const int64_t b : heads)
        if (b > 0 && a > b && a % b == 0) constraints_.AddDivisor(b, a);
    return Ok();
  }

  const Graph& graph_;
  SizeConstraints& constraints_;
};

/// Replaces sizes in types and arguments. Returns whether a number of arithmetic equals one.
bool Rewrite(Graph& graph, const std::map<int64_t, int64_t>& sizes, Numbers numbers) {
  Module& module = graph.module();
  Rewriter rewriter(graph);
  bool has_numbers = false;
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const ValueId value = graph.result(node, i);
      if (!graph.value(value).type.valid()) continue;
      Type type = module.types()[graph.value(value).type];
      for (DimId& dim : type.sizes)
        dim = module.dims().Const(sizes.at(*module.dims().AsConst(dim)));
      type.strides.clear();
      type.has_strides = false;
      rewriter.SetType(value, module.types().Intern(type));
    }
    std::vector<std::pair<uint32_t, int64_t>> changes;
    ForEachInteger(graph, node, [&](uint32_t slot, IntegerUse use, int64_t value) {
      const auto found = sizes.find(value);
      if (found == sizes.end() || found->second == value) return;
      if (use != IntegerUse::kSize && use != IntegerUse::kNumber) return;
      has_numbers |= use == IntegerUse::kNumber;
      if (use == IntegerUse::kSize || numbers == Numbers::kAsSizes)
        changes.emplace_back(slot, found->second);
    });
    for (const auto& [slot, size] : changes)
      rewriter.SetSlot(node, slot, Arg::Int(size));
  }
  return has_numbers;
}

/// Whether all values can be evaluated.
bool IsSmall(const Graph& graph) {
  if (NeedsReduction(graph)) return false;
  for (const NodeId node : graph.nodes())
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      if (Elements(graph, graph.result(node, i)) > kMaxInputElements / 8) return false;
  return true;
}

/// Why reduced sizes are not small.
Error TooLarge(const SizeConstraints& constraints, const std::map<int64_t, int64_t>& sizes) {
  const auto kept = constraints.kept().lower_bound(kLargeSize);
  if (kept != constraints.kept().end()) {
    return Error(ErrorCode::kUnsupported,
                 "too much depends on sizes that other arguments are equal to: {}",
                 fmt::join(kept, constraints.kept().end(), ", "));
  }
  return Error(ErrorCode::kUnsupported,
               "with the smallest numbers that were found for its {} sizes it is too large, too",
               sizes.size());
}

/// That every value has the sizes of its type.
Status CheckSizes(const Graph& graph) {
  STRATA_TRY(const std::vector<Value> inputs, MakeInputs(graph, 1));
  Evaluator evaluator(graph, 1);
  std::string wrong;
  STRATA_RETURN_IF_ERROR(evaluator.Run(inputs, [&](NodeId node, std::span<Value> results) {
    const size_t count = std::min<size_t>(results.size(), graph.node(node).num_results);
    for (size_t i = 0; i < count && wrong.empty(); ++i) {
      const TypeId type = graph.value(graph.result(node, i)).type;
      const auto* tensor = std::get_if<Tensor>(&results[i]);
      if (!type.valid() || tensor == nullptr) continue;
      Sizes sizes;
      for (const DimId dim : graph.module().types()[type].sizes)
        sizes.push_back(graph.module().dims().Hint(dim).value_or(0));
      if (sizes != tensor->sizes()) wrong = graph.name(node);
    }
  }));
  if (wrong.empty()) return Ok();
  return Error(ErrorCode::kUnsupported, "{} has other sizes than its type", wrong);
}

}  // namespace

bool NeedsReduction(const Graph& graph) {
  return ProductsOf(graph) > kMaxProducts || InputElementsOf(graph) > kMaxInputElements;
}

Result<ReducedPair> Reduce(const Graph& before, const Graph& after, Numbers numbers) {
  ReducedPair pair;
  pair.before_module = before.module().Clone();
  pair.after_module = after.module().Clone();
  SizeConstraints constraints;
  std::vector<Graph*> graphs;
  for (auto [module, id] : {std::pair(pair.before_module.get(), before.id()),
                            std::pair(pair.after_module.get(), after.id())}) {
    std::set<int32_t> seen;
    ForEachGraph(*module, id, seen, [&](Graph& graph) { graphs.push_back(&graph); });
  }
  for (const Graph* graph : graphs)
    STRATA_RETURN_IF_ERROR(Collector(*graph, constraints).Run());
  if (const std::string_view text = after.attribute(after.output(), kMeshAttribute);
      !text.empty()) {
    STRATA_TRY(const Mesh mesh, Mesh::Parse(text));
    for (const MeshAxis& axis : mesh.axes())
      constraints.Keep(axis.size);
    STRATA_RETURN_IF_ERROR(Collector(before, constraints).AddShards(mesh));
  }
  for (const Graph* graph : graphs) {
    Collector(*graph, constraints).KeepOthers();
    Collector(*graph, constraints).AvoidNumbers();
  }
  STRATA_TRY(const auto sizes, constraints.Solve());
  for (Graph* graph : graphs)
    pair.has_numbers |= Rewrite(*graph, sizes, numbers);
  pair.before = &pair.before_module->graph(before.id());
  pair.after = &pair.after_module->graph(after.id());
  for (const auto& [size, number] : sizes)
    if (size != number) pair.sizes[size] = number;
  for (const Graph* graph : {pair.before, pair.after}) {
    if (!IsSmall(*graph)) return TooLarge(constraints, sizes);
  }
  if (!IsLowered(before)) STRATA_RETURN_IF_ERROR(CheckSizes(*pair.before));
  return pair;
}

}  // namespace strata::prove
