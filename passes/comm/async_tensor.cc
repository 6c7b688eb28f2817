#include "passes/comm/async_tensor.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

constexpr std::string_view kMm = "aten.mm.default", kReshape = "aten.reshape.default",
                           kSplit = "aten.split.Tensor", kCat = "aten.cat.default",
                           kMul = "aten.mul.Tensor", kTranspose = "aten.t.default";
/// Parts of fewer columns make a gather of the last dimension slower than it is whole.
constexpr int64_t kLeastColumns = 1024;

std::optional<std::vector<int64_t>> Sizes(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return std::nullopt;
  const Type& type = graph.module().types()[id];
  std::vector<int64_t> sizes;
  for (const DimId dim : type.sizes) {
    const auto number = graph.module().dims().AsConst(dim);
    if (!number) return std::nullopt;
    sizes.push_back(*number);
  }
  return type.kind == TypeKind::kTensor && type.has_strides ? std::optional(sizes) : std::nullopt;
}

int64_t DimArg(const Graph& graph, NodeId node, size_t index) {
  const std::span<const Arg> args = graph.args(node);
  return args.size() > index && args[index].kind() == ArgKind::kInt ? args[index].as_int() : 0;
}

/// The cat along `to` of all parts that a split along `from` makes; none: others read them too.
NodeId MovedParts(const Graph& graph, NodeId split, int64_t from, int64_t to) {
  if (!split.valid() || graph.op(split) != kSplit || DimArg(graph, split, 2) != from) return {};
  const NodeId cat = OnlyUserOf(graph, split);
  if (!cat.valid() || graph.op(cat) != kCat || DimArg(graph, cat, 1) != to) return {};
  const std::span<const Arg> parts = graph.elements(graph.args(cat)[0]);
  if (parts.size() != graph.node(split).num_results) return {};
  for (size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].is_value() || parts[i].value() != graph.result(split, i)) return {};
  return cat;
}

/// m = mm(x, w) → reshape [b, s, n] → split and cat → reduce_scatter → wait.
struct Scatter {
  NodeId mm = {}, view = {}, split = {}, cat = {}, launch, wait;
};

/// x → all_gather → wait → split and cat: `whole` [b, s, k] → perhaps mul by a row → views → mm.
struct Gather {
  NodeId launch, wait, split = {}, cat = {};
  NodeId scaled = {};  ///< the mul; none: there is none
  int64_t dim = 1;     ///< that is gathered
  struct Product {
    NodeId view, mm;
  };
  std::vector<Product> products = {};
};

/// Writes the parts of one graph.
class AsyncRewriter {
 public:
  AsyncRewriter(Graph& graph, int64_t chunks)
      : graph_(graph), module_(graph.module()), rewriter_(graph), chunks_(chunks) {}

  bool Run() {
    bool changed = false;
    for (const NodeId node : graph_.nodes().Snapshot()) {
      if (graph_.node(node).kind == NodeKind::kErased) continue;
      if (IsCollective(graph_, node, CollectiveKind::kReduceScatter)) {
        if (const auto scatter = FindScatter(node)) {
          WriteScatter(*scatter);
          changed = true;
        }
      } else if (IsCollective(graph_, node, CollectiveKind::kAllGather)) {
        const Gather gather = FindGather(node);
        if (!gather.products.empty()) WriteGather(gather);
        changed = changed || !gather.products.empty();
      }
    }
    return changed;
  }

 private:
  std::optional<Scatter> FindScatter(NodeId launch) const {
    Scatter found{.launch = launch, .wait = OnlyWaitOf(graph_, launch)};
    found.cat = OnlyInputOf(graph_, launch);
    found.split = found.cat.valid() ? OnlyInputOf(graph_, found.cat) : NodeId();
    if (!found.wait.valid() || MovedParts(graph_, found.split, 1, 0) != found.cat ||
        OnlyUserOf(graph_, found.cat) != launch) {
      return std::nullopt;
    }
    found.view = OnlyInputOf(graph_, found.split);
    if (!found.view.valid() || graph_.op(found.view) != kReshape ||
        OnlyUserOf(graph_, found.view) != found.split) {
      return std::nullopt;
    }
    found.mm = OnlyInputOf(graph_, found.view);
    if (!found.mm.valid() || graph_.op(found.mm) != kMm ||
        OnlyUserOf(graph_, found.mm) != found.view) {
      return std::nullopt;
    }
    const auto rows = Sizes(graph_, graph_.result(found.mm));
    const auto batch = Sizes(graph_, graph_.result(found.view));
    const bool fits = rows && batch && batch->size() == 3 && batch->front() % chunks_ == 0 &&
                      batch->front() * batch->at(1) == rows->front() &&
                      Sizes(graph_, graph_.args(found.mm)[0].value()) &&
                      Sizes(graph_, graph_.result(found.wait));
    return fits ? std::optional(found) : std::nullopt;
  }

  Gather FindGather(NodeId launch) const {
    Gather found{.launch = launch, .wait = OnlyWaitOf(graph_, launch)};
    if (!found.wait.valid()) return found;
    found.split = OnlyUserOf(graph_, found.wait);
    for (const int64_t dim : {1, 2}) {
      if (found.cat.valid()) break;
      found.cat = MovedParts(graph_, found.split, 0, dim);
      found.dim = dim;
    }
    const auto given = Sizes(graph_, graph_.args(launch)[0].value());
    if (!found.cat.valid() || !given || given->size() != 3 || given->front() % chunks_ != 0)
      return found;
    const bool is_last = found.dim == 2;
    if (is_last && given->back() < kLeastColumns) return found;
    const std::vector<NodeId> users = UsersOf(graph_, found.cat);
    const auto scaled =
        std::ranges::find_if(users, [&](NodeId user) { return IsScale(found, user); });
    if (scaled != users.end()) found.scaled = *scaled;
    const NodeId rows = found.scaled.valid() ? found.scaled : found.cat;
    for (const NodeId view : UsersOf(graph_, rows)) {
      if (!IsRows(rows, view)) continue;
      for (const NodeId mm : UsersOf(graph_, view)) {
        if (graph_.op(mm) == kMm && graph_.args(mm)[0].value() == graph_.result(view) &&
            IsThere(graph_.args(mm)[1].value(), found.cat))
          found.products.push_back({view, mm});
      }
    }
    if (is_last && !AreAllReaders(found)) found.products.clear();
    return found;
  }

  /// Nothing but the products reads what is gathered.
  bool AreAllReaders(const Gather& gather) const {
    size_t num_readers = 0;
    for (const NodeId view : UsersOf(graph_, gather.cat)) {
      if (!IsRows(gather.cat, view)) return false;
      num_readers += UsersOf(graph_, view).size();
    }
    return num_readers == gather.products.size();
  }

  /// Each row times one row that is there before: the weight of a norm.
  bool IsScale(const Gather& gather, NodeId user) const {
    if (graph_.op(user) != kMul || !graph_.args(user)[1].is_value()) return false;
    const ValueId weight = graph_.args(user)[1].value();
    const auto sizes = Sizes(graph_, weight);
    return graph_.args(user)[0].value() == graph_.result(gather.cat) && sizes &&
           sizes->size() == 1 &&
           graph_.value(graph_.result(user)).type == graph_.value(graph_.result(gather.cat)).type &&
           IsBefore(graph_.value(weight).def, gather.cat);
  }

  /// The view [b·s, k] of [b, s, k].
  bool IsRows(NodeId rows, NodeId view) const {
    const auto whole = Sizes(graph_, graph_.result(rows));
    if (graph_.op(view) != kReshape || !whole) return false;
    const auto sizes = Sizes(graph_, graph_.result(view));
    return sizes && sizes->size() == 2 && sizes->back() == whole->back();
  }

  bool IsBefore(NodeId node, NodeId other) const {
    if (position_.empty()) position_ = OrderOf(graph_);
    const auto at = [&](NodeId n) {
      const auto index = static_cast<size_t>(n.index);
      return index < position_.size() ? position_[index] : INT32_MAX;
    };
    return at(node) < at(other);
  }

  /// It is computed before `node`, or is a transposed view of what is.
  bool IsThere(ValueId value, NodeId node) const {
    const NodeId def = graph_.value(value).def;
    if (IsBefore(def, node)) return true;
    return graph_.op(def) == kTranspose &&
           IsBefore(graph_.value(graph_.args(def)[0].value()).def, node);
  }

  /// The same value, made again at the cursor if need be.
  ValueId Raised(ValueId value, NodeId node) {
    const NodeId def = graph_.value(value).def;
    if (IsBefore(def, node)) return value;
    return graph_.result(rewriter_.Clone(def));
  }

  TypeId Like(ValueId value, std::span<const int64_t> sizes) {
    const Type& like = module_.types()[graph_.value(value).type];
    return module_.types().Tensor(like.dtype, sizes, module_.str(like.device));
  }

  ValueId Call(std::string_view op, std::initializer_list<Arg> args, TypeId type, NodeId from) {
    const NodeId node = rewriter_.Create(
        {.op = op, .args = {args.begin(), args.size()}, .results = std::span(&type, 1)},
        From({from}, Origin::kReplaced));
    return graph_.result(node);
  }

  ValueId View(ValueId value, std::span<const int64_t> sizes, NodeId from) {
    std::vector<Arg> numbers;
    for (const int64_t size : sizes)
      numbers.push_back(Arg::Int(size));
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, numbers);
    const ValueId view = Call(kReshape, {Arg(value), list}, Like(value, sizes), from);
    rewriter_.SetAlias(view, OwnerOf(graph_, value));
    return view;
  }

  /// Part `index` of dimension 0.
  ValueId Part(ValueId value, int64_t index, NodeId from) {
    Type type = module_.types()[graph_.value(value).type];
    DimTable& dims = module_.dims();
    const int64_t rows = *dims.AsConst(type.sizes[0]) / chunks_, first = index * rows;
    const int64_t before = type.dim.valid() ? dims.AsConst(type.dim).value_or(0) : 0;
    type.sizes[0] = dims.Const(rows);
    type.dim = dims.Const(before + first * dims.AsConst(type.strides[0]).value_or(0));
    const ValueId part = Call("aten.slice.Tensor",
                              {Arg(value), Arg::Int(0), Arg::Int(first), Arg::Int(first + rows)},
                              module_.types().Intern(type), from);
    rewriter_.SetAlias(part, OwnerOf(graph_, value));
    return part;
  }

  /// The parts along `from` of `value`, one after the other along `to`, as `split` and `cat` did.
  ValueId MoveParts(ValueId value, NodeId split, NodeId cat, size_t from, size_t to) {
    const size_t count = graph_.node(split).num_results;
    std::vector<int64_t> sizes = *Sizes(graph_, value);
    sizes[from] /= static_cast<int64_t>(count);
    Type piece = module_.types()[graph_.value(value).type];
    piece.sizes[from] = module_.dims().Const(sizes[from]);
    const std::vector<TypeId> types(count, module_.types().Intern(piece));
    const Arg args[] = {Arg(value), Arg::Int(sizes[from]), Arg::Int(static_cast<int64_t>(from))};
    const NodeId parts =
        rewriter_.Create({.op = kSplit, .args = args, .results = types, .returns_tuple = true},
                         From({split}, Origin::kReplaced));
    std::vector<Arg> elements;
    for (size_t i = 0; i < count; ++i) {
      rewriter_.SetAlias(graph_.result(parts, i), OwnerOf(graph_, value));
      elements.emplace_back(graph_.result(parts, i));
    }
    sizes[to] *= static_cast<int64_t>(count);
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, elements);
    return Call(kCat, {list, Arg::Int(static_cast<int64_t>(to))}, Like(value, sizes), cat);
  }

  ValueId Launch(ValueId value, NodeId launch, std::span<const int64_t> sizes) {
    std::vector<Arg> args(graph_.args(launch).begin(), graph_.args(launch).end());
    args[0] = Arg(value);
    const TypeId type = Like(value, sizes);
    const NodeId node =
        rewriter_.Create({.op = graph_.op(launch), .args = args, .results = std::span(&type, 1)},
                         From({launch}, Origin::kReplaced));
    return graph_.result(node);
  }

  ValueId Wait(ValueId launched, NodeId wait) {
    const ValueId complete =
        Call(graph_.op(wait), {Arg(launched)}, graph_.value(launched).type, wait);
    rewriter_.SetAlias(complete, launched);
    return complete;
  }

  ValueId Joined(const std::vector<ValueId>& parts, ValueId like, NodeId from) {
    std::vector<Arg> elements(parts.begin(), parts.end());
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, elements);
    return Call(kCat, {list}, graph_.value(like).type, from);
  }

  bool IsUnused(NodeId node) const {
    return node.valid() && graph_.node(node).kind != NodeKind::kErased && !graph_.HasUses(node);
  }

  void EraseUnused(std::initializer_list<NodeId> readers_first) {
    for (const NodeId node : readers_first)
      if (IsUnused(node)) rewriter_.Erase(node);
  }

  void WriteScatter(const Scatter& old) {
    const ValueId x = graph_.args(old.mm)[0].value(), w = graph_.args(old.mm)[1].value();
    std::vector<int64_t> batch = *Sizes(graph_, graph_.result(old.view));
    std::vector<int64_t> result = *Sizes(graph_, graph_.result(old.wait));
    batch[0] /= chunks_;
    result[0] /= chunks_;
    const int64_t rows[] = {batch[0] * batch[1], batch[2]};
    rewriter_.SetCursorBefore(old.mm);
    std::vector<ValueId> launched, complete;
    for (int64_t i = 0; i < chunks_; ++i) {
      const ValueId part = Part(x, i, old.mm);
      const ValueId product =
          Call(kMm, {Arg(part), Arg(w)}, Like(graph_.result(old.mm), rows), old.mm);
      const ValueId moved = MoveParts(View(product, batch, old.view), old.split, old.cat, 1, 0);
      launched.push_back(Launch(moved, old.launch, result));
    }
    rewriter_.SetCursorBefore(old.wait);
    for (const ValueId one : launched)
      complete.push_back(Wait(one, old.wait));
    rewriter_.ReplaceUses(graph_.result(old.wait),
                          Joined(complete, graph_.result(old.wait), old.wait));
    EraseUnused({old.wait, old.launch, old.cat, old.split, old.view, old.mm});
    position_.clear();
  }

  void WriteGather(const Gather& old) {
    const ValueId x = graph_.args(old.launch)[0].value();
    std::vector<int64_t> gathered = *Sizes(graph_, graph_.result(old.launch));
    gathered[0] /= chunks_;
    rewriter_.SetCursorBefore(old.launch);
    std::vector<ValueId> launched;
    for (int64_t i = 0; i < chunks_; ++i)
      launched.push_back(Launch(Part(x, i, old.launch), old.launch, gathered));
    rewriter_.SetCursorBefore(old.cat);
    std::vector<ValueId> weights, whole, scaled;
    for (const Gather::Product& product : old.products)
      weights.push_back(Raised(graph_.args(product.mm)[1].value(), old.cat));
    std::vector<std::vector<ValueId>> products(old.products.size());
    for (const ValueId one : launched) {
      whole.push_back(
          MoveParts(Wait(one, old.wait), old.split, old.cat, 0, static_cast<size_t>(old.dim)));
      ValueId rows = whole.back();
      if (old.scaled.valid()) {
        rows = Call(kMul, {Arg(rows), graph_.args(old.scaled)[1]}, graph_.value(rows).type,
                    old.scaled);
        scaled.push_back(rows);
      }
      for (size_t p = 0; p < products.size(); ++p)
        products[p].push_back(PartOfProduct(rows, weights[p], old.products[p]));
    }
    for (size_t p = 0; p < products.size(); ++p) {
      const ValueId result = graph_.result(old.products[p].mm);
      rewriter_.ReplaceUses(result, Joined(products[p], result, old.products[p].mm));
    }
    Replace(old.scaled, scaled, old);
    Replace(old.cat, whole, old);
    EraseUnused({old.split, old.wait, old.launch});
    position_.clear();
  }

  ValueId PartOfProduct(ValueId rows, ValueId weight, const Gather::Product& old) {
    const std::vector<int64_t> sizes = *Sizes(graph_, rows);
    const int64_t flat[] = {sizes[0] * sizes[1], sizes[2]};
    const ValueId view = View(rows, flat, old.view);
    const int64_t result[] = {flat[0], Sizes(graph_, graph_.result(old.mm))->back()};
    return Call(kMm, {Arg(view), Arg(weight)}, Like(graph_.result(old.mm), result), old.mm);
  }

  /// Others may read the whole, which is then put together.
  void Replace(NodeId node, const std::vector<ValueId>& parts, const Gather& old) {
    if (!node.valid()) return;
    for (const Gather::Product& product : old.products) {
      EraseUnused({product.mm});
      EraseUnused({product.view});
    }
    if (graph_.HasUses(node)) {
      const ValueId value = graph_.result(node);
      rewriter_.ReplaceUses(value, Joined(parts, value, node));
    }
    rewriter_.Erase(node);
  }

  Graph& graph_;
  Module& module_;
  Rewriter rewriter_;
  int64_t chunks_;
  mutable std::vector<int32_t> position_;  // by node; empty: not known
};

}  // namespace

Result<Changed> AsyncTensorParallel::Run(Module& module) {
  if (options_.chunks < 2) return Error("one part overlaps with nothing: chunks: take 2");
  bool changed = false;
  for (const GraphId id : module.programs())
    changed |= AsyncRewriter(module.graph(id), options_.chunks).Run();
  return Changed(changed);
}

}  // namespace strata
