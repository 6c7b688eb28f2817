#include "diff/pattern/symbolic_sizes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/arg_printer.h"
#include "ir/module.h"
#include "ir/symbol_sizes.h"

namespace strata {
namespace {

const Type* TypeOf(const Listing& listing, EntityId id) {
  const ValueId value = listing.value(id);
  if (!value.valid()) return nullptr;
  const TypeId type = listing.graph(id).value(value).type;
  return type.valid() ? &listing.root().module().types()[type] : nullptr;
}

/// Prints arguments with numbers for symbolic integers. Tensors have no names.
class NumberPrinter final : public ArgPrinter {
 public:
  NumberPrinter(const Graph& graph, const SymbolSizes& sizes, std::string& out)
      : ArgPrinter(graph, out), sizes_(sizes) {}

 private:
  void PrintValue(ValueId value) override {
    const Module& module = graph_.module();
    const TypeId type = graph_.value(value).type;
    const bool is_number = type.valid() && module.types()[type].kind == TypeKind::kSymInt;
    is_number ? PrintDim(module.types()[type].dim) : void(out_ += '_');
  }
  void PrintDim(DimId dim) override {
    const Result<int64_t> number = NumberOf(graph_.module(), dim, sizes_);
    number ? void(out_ += fmt::format("{}", *number)) : ArgPrinter::PrintDim(dim);
  }
  void PrintBody(const Graph& body) override { out_ += body.name_text(); }

  const SymbolSizes& sizes_;
};

/// One direction: the numbers are on one side, the symbols on the other.
class Finder {
 public:
  Finder(const GraphDiff& diff, const Matching& matching, Side symbolic)
      : diff_(diff), matching_(matching), symbolic_(symbolic) {}

  SymbolicSizes Run() {
    if (!BindSymbols() || sizes_.empty()) return {};
    SymbolicSizes result;
    for (HunkId hunk : IdsOf(diff_.hunks)) {
      if (SaysNothingElse(diff_.hunks[hunk])) result.hunks.push_back(hunk);
    }
    result.title = Title();
    return result;
  }

 private:
  const Listing& listing(Side side) const { return side == kBefore ? diff_.before : diff_.after; }
  static EntityId Of(const Pair& pair, Side side) {
    return side == kBefore ? pair.before : pair.after;
  }

  /// What the sizes of inputs say; false: two inputs disagree.
  bool BindSymbols() {
    const Side plain = 1 - symbolic_;
    const DimTable& dims = listing(symbolic_).root().module().dims();
    const DimTable& plain_dims = listing(plain).root().module().dims();
    for (const Pair& pair : diff_.pairs) {
      if (diff_.before[pair.before].kind != EntityKind::kInput) continue;
      const Type* type = TypeOf(listing(symbolic_), Of(pair, symbolic_));
      const Type* plain_type = TypeOf(listing(plain), Of(pair, plain));
      if (type == nullptr || plain_type == nullptr) continue;
      for (size_t i = 0; i < std::min(type->sizes.size(), plain_type->sizes.size()); ++i) {
        const DimId dim = type->sizes[i], plain_dim = plain_type->sizes[i];
        if (!dim.valid() || !plain_dim.valid() || dims.kind(dim) != DimKind::kSymbol) continue;
        const std::optional<int64_t> number = plain_dims.AsConst(plain_dim);
        if (!number) continue;
        const auto [known, is_new] = sizes_.emplace(dims.name(dim), *number);
        if (is_new) order_.emplace_back(dims.name(dim));
        if (known->second != *number) return false;
      }
    }
    return true;
  }

  bool SaysNothingElse(const Hunk& hunk) const {
    const bool after = symbolic_ == kAfter;
    return (after ? hunk.deleted : hunk.inserted).empty() &&
           std::ranges::all_of(after ? hunk.inserted : hunk.deleted,
                               [&](EntityId id) { return IsSizeNode(id); }) &&
           std::ranges::all_of(hunk.pairs,
                               [&](PairId pair) { return IsEqualPair(diff_.pairs[pair]); });
  }

  bool IsSymInt(EntityId id) const {
    const Type* type = TypeOf(listing(symbolic_), id);
    return type != nullptr && type->kind == TypeKind::kSymInt;
  }

  /// A symbolic integer, or the list of sizes from which some are taken.
  bool IsSizeNode(EntityId id) const {
    if (TypeOf(listing(symbolic_), id) != nullptr) return IsSymInt(id);
    const auto users = matching_.labels(symbolic_).users(id);
    return !users.empty() && std::ranges::all_of(users, [&](const Labels::Edge& user) {
      return !matching_.matched(symbolic_, user.entity) && IsSymInt(user.entity);
    });
  }

  bool IsEqualPair(const Pair& pair) const {
    if (pair.status.moved) return false;
    for (const FieldDiff& field : pair.fields) {
      if (field.derived || field.path.starts_with("meta.")) continue;
      const std::string_view path = field.path;
      const bool equal = path == "shape" || path == "strides" ? HaveEqualTypes(pair)
                         : path.starts_with("args[") || path.starts_with("kwargs.")
                             ? HaveEqualArguments(pair)
                             : path.starts_with("operands[") && HaveEqualOperands(pair);
      if (!equal) return false;
    }
    return true;
  }

  std::optional<std::vector<int64_t>> Numbers(Side side, EntityId id) const {
    const Type* type = TypeOf(listing(side), id);
    if (type == nullptr || type->kind != TypeKind::kTensor) return std::nullopt;
    std::vector<DimId> dims = type->sizes;
    if (type->has_strides) dims.insert(dims.end(), type->strides.begin(), type->strides.end());
    if (!std::ranges::all_of(dims, &DimId::valid)) return std::nullopt;
    Result<std::vector<int64_t>> numbers = NumbersOf(listing(side).root().module(), dims, sizes_);
    return numbers ? std::optional(*std::move(numbers)) : std::nullopt;
  }
  bool HaveEqualTypes(const Pair& pair) const {
    const auto before = Numbers(kBefore, pair.before);
    return before && before == Numbers(kAfter, pair.after);
  }

  std::string Arguments(Side side, EntityId id) const {
    const Graph& graph = listing(side).graph(id);
    const NodeId node = listing(side)[id].node;
    std::string text;
    NumberPrinter printer(graph, sizes_, text);
    printer.PrintList(graph.args(node));
    for (size_t i = 0; i < graph.node(node).num_kwargs; ++i) {
      const NamedArg kwarg = graph.kwarg(node, i);
      text += fmt::format(", {}=", graph.module().str(kwarg.name));
      printer.Print(kwarg.value);
    }
    return text;
  }
  bool HaveEqualArguments(const Pair& pair) const {
    return Arguments(kBefore, pair.before) == Arguments(kAfter, pair.after);
  }

  /// Besides new symbolic integers, as an output has that returns them.
  bool HaveEqualOperands(const Pair& pair) const {
    std::vector<EntityId> plain, symbolic;
    for (const Labels::Edge& edge :
         matching_.labels(1 - symbolic_).operands(Of(pair, 1 - symbolic_)))
      plain.push_back(matching_.partner(1 - symbolic_, edge.entity));
    for (const Labels::Edge& edge : matching_.labels(symbolic_).operands(Of(pair, symbolic_))) {
      const bool is_new = !matching_.matched(symbolic_, edge.entity) && IsSymInt(edge.entity);
      if (!is_new) symbolic.push_back(edge.entity);
    }
    return plain == symbolic;
  }

  std::string Title() const {
    constexpr size_t kShown = 4;
    std::vector<std::string> parts;
    for (const std::string& name : std::span(order_).first(std::min(order_.size(), kShown))) {
      const int64_t number = sizes_.find(name)->second;
      parts.push_back(symbolic_ == kAfter ? fmt::format("{} → {}", number, name)
                                          : fmt::format("{} → {}", name, number));
    }
    if (order_.size() > kShown) parts.push_back(fmt::format("{} more", order_.size() - kShown));
    return fmt::format("sizes became {} ({})", symbolic_ == kAfter ? "symbolic" : "constant",
                       fmt::join(parts, ", "));
  }

  const GraphDiff& diff_;
  const Matching& matching_;
  const Side symbolic_;
  SymbolSizes sizes_;
  std::vector<std::string> order_;  // of symbols, by first appearance
};

}  // namespace

SymbolicSizes FindSymbolicSizes(const GraphDiff& diff, const Matching& matching) {
  SymbolicSizes found = Finder(diff, matching, kAfter).Run();
  if (!found.hunks.empty()) return found;
  return Finder(diff, matching, kBefore).Run();
}

}  // namespace strata
