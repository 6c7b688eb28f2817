#include "prove/sizes/reduce.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/placement/placement.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/inputs.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/evaluation/work.h"
#include "prove/sizes/element_read.h"
#include "prove/sizes/graph_sizes.h"
#include "prove/sizes/indexed_size.h"
#include "prove/sizes/mesh_sizes.h"
#include "prove/sizes/size_arguments.h"
#include "prove/sizes/size_constraints.h"

namespace strata::prove {
namespace {

constexpr double kMaxInputElements = 1 << 27;  // 1 GB
constexpr int64_t kLargeSize = 64;             // to be named where it is kept
constexpr double kManyProducts = 4;            // of the most products, for which kinds are found

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

/// Whether a number in arithmetic becomes what a size becomes that it is equal to.
bool IsReplaced(const GraphSizes& sizes, uint32_t slot, IntegerUse use, Numbers numbers) {
  if (use != IntegerUse::kNumber && use != IntegerUse::kLast) return false;
  return numbers == Numbers::kAsSizes || (numbers == Numbers::kNewAsSizes && !sizes.IsShared(slot));
}

/// Whether a literal is an index in a dimension that stays: it counts nothing then.
bool IsIndexOfKept(const GraphSizes& sizes, NodeId node, uint32_t slot,
                   const SizeConstraints& constraints) {
  const Graph& graph = sizes.graph();
  const auto args = graph.args(node);
  if (BaseName(graph.op(node)) != "select" || slot != graph.node(node).args_begin + 2) return false;
  if (!args[0].is_value() || args[1].kind() != ArgKind::kInt) return false;
  const std::vector<SizeId>& dims = sizes.of(args[0].value());
  const int64_t dim = args[1].as_int() + (args[1].as_int() < 0 ? std::ssize(dims) : 0);
  return dim >= 0 && dim < std::ssize(dims) && constraints.Stays(dims[static_cast<size_t>(dim)]);
}

/// No literal is what a size becomes: a wrong divisor would be right then. Sizes that arguments of
/// unknown meaning are equal to stay.
void AddOtherIntegers(GraphSizes& sizes, Numbers numbers, SizeConstraints& constraints) {
  const Graph& graph = sizes.graph();
  for (const NodeId node : graph.nodes()) {
    ForEachInteger(graph, node, [&](uint32_t slot, IntegerUse use, int64_t value) {
      if (use == IntegerUse::kSize || sizes.arguments().contains(slot)) return;
      if (use == IntegerUse::kName) return;
      if (sizes.IsPosition(slot) || sizes.bounds().contains(slot)) return;
      if (IsIndexOfKept(sizes, node, slot, constraints)) return;
      constexpr int64_t kLeast = -std::numeric_limits<int64_t>::max();
      constraints.Avoid(std::abs(std::max(value, kLeast)));
      if (use == IntegerUse::kOther) constraints.KeepAll(value);
      if (!IsReplaced(sizes, slot, use, numbers)) return;
      const int64_t number = use == IntegerUse::kLast ? value + 1 : value;
      if (const auto size = IndexedSize(sizes, node, number, constraints)) {
        sizes.SetBound(slot, *size);
      } else {
        constraints.JoinAll(number);
      }
    });
  }
}

std::vector<NamedArg> KeywordsOf(const Graph& graph, NodeId node) {
  std::vector<NamedArg> keywords;
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
    keywords.push_back(graph.kwarg(node, i));
  return keywords;
}

/// Numbers in the place of sizes.
class SizeRewrite {
 public:
  SizeRewrite(const SizeConstraints& constraints, const IdVector<SizeId, int64_t>& numbers)
      : numbers_(numbers) {
    for (const SizeId size : Ids<SizeId>(numbers.size())) {
      const int64_t old = constraints.number(size);
      by_number_.emplace(old, numbers[size]);
      if (old != numbers[size]) reduced_.emplace(old, numbers[size]);
    }
  }

  /// In types and arguments. Returns whether a number of arithmetic equals a size that changes.
  bool Run(const GraphSizes& sizes, Numbers numbers) const {
    Graph& graph = sizes.graph();
    Module& module = graph.module();
    Rewriter rewriter(graph);
    bool has_numbers = false;
    for (const NodeId node : graph.nodes()) {
      for (size_t i = 0; i < graph.node(node).num_results; ++i) {
        const ValueId value = graph.result(node, i);
        if (!graph.value(value).type.valid()) continue;
        Type type = module.types()[graph.value(value).type];
        for (size_t dim = 0; dim < type.sizes.size(); ++dim)
          if (module.dims().AsConst(type.sizes[dim]))
            type.sizes[dim] = module.dims().Const(numbers_[sizes.of(value)[dim]]);
        type.strides.clear();
        type.has_strides = false;
        rewriter.SetType(value, module.types().Intern(type));
      }
      std::vector<std::pair<uint32_t, int64_t>> changes;
      ForEachInteger(graph, node, [&](uint32_t slot, IntegerUse use, int64_t value) {
        if (const auto argument = sizes.arguments().find(slot);
            argument != sizes.arguments().end()) {
          changes.emplace_back(slot, (value < 0 ? -1 : 1) * numbers_[argument->second]);
          return;
        }
        if (use != IntegerUse::kNumber && use != IntegerUse::kLast) return;
        const int64_t less = use == IntegerUse::kLast ? 1 : 0;
        if (const auto bound = sizes.bounds().find(slot); bound != sizes.bounds().end()) {
          has_numbers = has_numbers || numbers_[bound->second] != value + less;
          changes.emplace_back(slot, numbers_[bound->second] - less);
          return;
        }
        const auto found = by_number_.find(value + less);
        if (found == by_number_.end() || found->second == found->first) return;
        has_numbers = true;
        if (IsReplaced(sizes, slot, use, numbers)) changes.emplace_back(slot, found->second - less);
      });
      for (const auto& [slot, size] : changes)
        rewriter.SetSlot(node, slot, Arg::Int(size));
    }
    return has_numbers;
  }

  /// Leaves out results and elements of lists that ranks have which are left out, and the numbers
  /// that only such elements are.
  void DropPieces(const GraphSizes& sizes) const {
    Graph& graph = sizes.graph();
    Rewriter rewriter(graph);
    std::set<NodeId> dropped;
    for (auto it = sizes.counts().rbegin(); it != sizes.counts().rend(); ++it) {
      const auto& [node, size] = *it;
      const auto count = static_cast<size_t>(numbers_[size]);
      if (graph.node(node).num_results > 1) {
        std::vector<TypeId> types;
        for (size_t i = 0; i < count; ++i)
          types.push_back(graph.value(graph.result(node, i)).type);
        rewriter.SetResults(node, types, graph.node(node).returns_tuple);
        continue;
      }
      std::vector<Arg> args(graph.args(node).begin(), graph.args(node).end());
      for (Arg& arg : args) {
        if (!arg.is_span()) continue;
        const std::vector<Arg> elements(graph.elements(arg).begin(), graph.elements(arg).end());
        arg = rewriter.MakeSpan(arg.kind(), std::span(elements).first(count));
        for (const Arg& element : std::span(elements).subspan(count))
          if (element.is_value()) dropped.insert(graph.value(element.value()).def);
      }
      rewriter.SetArgs(node, args, KeywordsOf(graph, node));
    }
    for (const NodeId number : dropped) {
      const auto read = ElementReadBy(graph, number);
      if (!read || graph.HasUses(number)) continue;
      rewriter.Erase(number);
      if (!graph.HasUses(read->select)) rewriter.Erase(read->select);
    }
  }

  const std::set<std::pair<int64_t, int64_t>>& reduced() const { return reduced_; }

 private:
  const IdVector<SizeId, int64_t>& numbers_;
  std::map<int64_t, int64_t> by_number_;  // sizes that a number of arithmetic is equal to are one
  std::set<std::pair<int64_t, int64_t>> reduced_;
};

double RanksOf(const Graph& graph) {
  const auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
  return IsLowered(graph) && mesh ? static_cast<double>(mesh->num_ranks()) : 1;
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
Error TooLarge(const SizeConstraints& constraints,
               const std::set<std::pair<int64_t, int64_t>>& reduced) {
  const std::set<int64_t> all = constraints.Kept();
  if (const auto kept = all.lower_bound(kLargeSize); kept != all.end()) {
    return Error(ErrorCode::kUnsupported,
                 "too much depends on sizes that other arguments are equal to: {}",
                 fmt::join(kept, all.end(), ", "));
  }
  std::vector<std::string> texts;
  for (const auto& [size, number] : reduced)
    texts.push_back(fmt::format("{} for {}", number, size));
  return Error(
      ErrorCode::kUnsupported,
      "with the smallest numbers that were found for its {} sizes it is too large, too: {}",
      constraints.NumSizes(), fmt::join(texts, ", "));
}

}  // namespace

bool HasSizesOfType(const Graph& graph, NodeId node, std::span<const Value> results) {
  for (size_t i = 0; i < std::min<size_t>(results.size(), graph.node(node).num_results); ++i) {
    const TypeId type = graph.value(graph.result(node, i)).type;
    const auto* tensor = std::get_if<Tensor>(&results[i]);
    if (!type.valid() || tensor == nullptr) continue;
    Sizes sizes;
    for (const DimId dim : graph.module().types()[type].sizes)
      sizes.push_back(graph.module().dims().Hint(dim).value_or(0));
    if (sizes != tensor->sizes()) return false;
  }
  return true;
}

bool NeedsReduction(const Graph& graph) {
  if (ProductsOf(graph) > kMaxProducts || InputElementsOf(graph) > kMaxInputElements) return true;
  if (!IsLowered(graph)) return false;
  const auto mesh = Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
  return mesh && (mesh->num_ranks() > kMaxRanks || !CheckWork(graph, mesh->num_ranks()));
}

Result<ReducedPair> Reduce(const Graph& before, const Graph& after, const ReduceOptions& options) {
  ReducedPair pair;
  pair.before_module = before.module().Clone();
  pair.after_module = after.module().Clone();
  SizeConstraints constraints;
  std::vector<GraphSizes> graphs;
  for (auto [module, id] : {std::pair(pair.before_module.get(), before.id()),
                            std::pair(pair.after_module.get(), after.id())}) {
    std::set<int32_t> seen;
    std::vector<Graph*> found;
    ForEachGraph(*module, id, seen, [&](Graph& graph) { found.push_back(&graph); });
    for (Graph* graph : found) {
      STRATA_TRY(GraphSizes sizes, GraphSizes::Of(*graph, constraints));
      graphs.push_back(std::move(sizes));
    }
  }
  const auto sizes_of = [&](const Module* module, GraphId id) -> GraphSizes& {
    return *std::ranges::find_if(graphs, [&](const GraphSizes& sizes) {
      return &sizes.graph().module() == module && sizes.graph().id() == id;
    });
  };
  const bool by_dimension = options.equality == SizeEquality::kByDimension;
  STRATA_TRY(Mesh parsed, Mesh::Parse(after.attribute(after.output(), kMeshAttribute)));
  MeshSizes mesh(std::move(parsed), by_dimension, constraints);
  for (GraphSizes& sizes : graphs)
    STRATA_RETURN_IF_ERROR(AddCalls(sizes, mesh, constraints));
  AddPairs(sizes_of(pair.before_module.get(), before.id()),
           sizes_of(pair.after_module.get(), after.id()), options.stable_ids, mesh, constraints);
  // What ties the operands of a body to its inputs is not known.
  if (!by_dimension || graphs.size() > 2) constraints.JoinEqual();
  for (GraphSizes& sizes : graphs)
    AddOtherIntegers(sizes, options.numbers, constraints);
  STRATA_TRY(const auto numbers, constraints.Solve(options.shared, options.kinds));
  STRATA_TRY(const std::string mesh_text, mesh.Text(numbers));
  const SizeRewrite rewrite(constraints, numbers);
  for (const GraphSizes& sizes : graphs) {
    pair.has_numbers |= rewrite.Run(sizes, options.numbers);
    rewrite.DropPieces(sizes);
    Graph& graph = sizes.graph();
    if (graph.output().valid() && !graph.attribute(graph.output(), kMeshAttribute).empty())
      Rewriter(graph).SetAttribute(graph.output(), kMeshAttribute, mesh_text);
  }
  pair.before = &pair.before_module->graph(before.id());
  pair.after = &pair.after_module->graph(after.id());
  pair.sizes = rewrite.reduced();
  pair.equal = constraints.Equal(numbers);
  for (const Graph* graph : {pair.before, pair.after}) {
    if (!IsSmall(*graph)) return TooLarge(constraints, pair.sizes);
    pair.products += ProductsOf(*graph) * RanksOf(*graph);
  }
  return pair;
}

namespace {

double ProductsOf(const std::vector<ReducedPair>& pairs) {
  double products = 0;
  for (const ReducedPair& pair : pairs)
    products += pair.products;
  return products;
}

/// As ReduceOnceOrTwice, with the kinds of the options.
Result<std::vector<ReducedPair>> OneOrTwoPairs(const Graph& before, const Graph& after,
                                               const ReduceOptions& options) {
  Result<ReducedPair> one = Reduce(before, after, options);
  const bool is_cheap = one && one->products <= options.max_products;
  std::vector<ReducedPair> pairs;
  double products = one ? one->products : std::numeric_limits<double>::infinity();
  // The more sizes share a number, the smaller the first set is, and the more sizes have to be
  // different in the second.
  for (const size_t most : {3, 2}) {
    if (is_cheap || options.equality != SizeEquality::kByDimension) break;
    ReduceOptions sharing = options;
    sharing.shared.most = most;
    Result<ReducedPair> first = Reduce(before, after, sharing);
    if (!first) continue;
    sharing.shared = {.most = SIZE_MAX, .apart = first->equal};
    Result<ReducedPair> second = Reduce(before, after, sharing);
    if (!second || first->products + second->products >= products) continue;
    products = first->products + second->products;
    pairs.clear();
    pairs.push_back(*std::move(first));
    pairs.push_back(*std::move(second));
    if (products <= 2 * options.max_products) break;
  }
  if (!pairs.empty()) return pairs;
  if (!one) return std::move(one).error();
  pairs.push_back(*std::move(one));
  return pairs;
}

}  // namespace

Result<std::vector<ReducedPair>> ReduceOnceOrTwice(const Graph& before, const Graph& after,
                                                   const ReduceOptions& options) {
  Result<std::vector<ReducedPair>> few = OneOrTwoPairs(before, after, options);
  const bool is_cheap = few && ProductsOf(*few) <= kManyProducts * options.max_products;
  if (is_cheap || options.equality != SizeEquality::kByDimension) return few;
  ReduceOptions of_all_kinds = options;
  of_all_kinds.kinds = Kinds::kByEquation;
  Result<std::vector<ReducedPair>> many = OneOrTwoPairs(before, after, of_all_kinds);
  return !many || (few && ProductsOf(*few) <= ProductsOf(*many)) ? std::move(few) : std::move(many);
}

}  // namespace strata::prove
