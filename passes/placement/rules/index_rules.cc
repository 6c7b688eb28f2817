#include <algorithm>
#include <string_view>
#include <vector>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// weight `[v, d]`, indices `[..]` → `[.., d]`: with some of the rows, a sum of what ranks find.
Status Embedding(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(1).size();
  b.MakeReduce(b.operand_factor(0, 0), "sum");
  b.rule().ends_with_zeros = true;  // no index says a row beyond the whole
  b.SetOperand(0, 1, b.result_factor(0, rank));
  for (size_t dim = 0; dim < rank; ++dim)
    b.SetOperand(1, dim, b.result_factor(0, dim));
  b.rule().linear = {{0}};
  return Ok();
}

/// gradient `[.., d]`, indices `[..]` → `[v, d]`: every row sums what its index got. A rank that
/// has all gradients can compute some of the rows.
Status EmbeddingBackward(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(1).size();
  for (size_t dim = 0; dim < rank; ++dim) {
    b.SetOperand(1, dim, b.operand_factor(0, dim));
    b.MakeReduce(b.operand_factor(0, dim), "sum");
  }
  b.SetOperand(0, rank, b.result_factor(0, 1));
  b.rule().size_args = {{2, 0}};
  b.rule().linear = {{0}};
  if (!b.FlagArg(4, "scale_grad_by_freq", false)) return Ok();
  b.MakeOperandWhole(1);  // a rank counts how often each row is read
  b.MakeWhole(b.result_factor(0, 0));
  return Ok();
}

/// self `[..]`, index of equal rank along `dim` → like index
Status Gather(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(1, "dim", rank).value_or(0);
  const DimTable& dims = b.module().dims();
  for (size_t dim = 0; dim < rank; ++dim) {
    b.SetOperand(1, dim, b.result_factor(0, dim));
    if (dim == along) {
      b.MakeWhole(b.operand_factor(0, dim));
    } else if (dims.ProvablyEqual(b.operand_sizes(0)[dim], b.result_sizes(0)[dim])) {
      b.SetOperand(0, dim, b.result_factor(0, dim));
    } else {  // a prefix of the dimension is read
      b.MakeWhole(b.operand_factor(0, dim));
      b.MakeWhole(b.result_factor(0, dim));
    }
  }
  b.rule().linear = {{0}};
  return Ok();
}

/// self `[.., n, ..]`, index `[m]` → `[.., m, ..]`
Status IndexSelect(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(1, "dim", rank).value_or(0);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (dim != along) b.SetOperand(0, dim, b.result_factor(0, dim));
  }
  b.MakeWhole(b.operand_factor(0, along));
  if (b.operand_sizes(1).size() == 1) b.SetOperand(1, 0, b.result_factor(0, along));
  if (b.IsRowOfToken(1, b.operand_sizes(0)[along])) {
    b.rule().order = {.tokens = b.operand_factor(0, along),
                      .rows = b.result_factor(0, along),
                      .sum = b.module().Intern("sum"),
                      .cut = b.CutOfTokens(1)};
  }
  b.rule().linear = {{0}};
  return Ok();
}

/// How the dimensions of a tensor, of the tensors that index it, and of what they select belong
/// together, as in NumPy: the dimensions of all index tensors, broadcast, stand where the first
/// indexed dimension is, or first when the indexed ones are apart.
struct Indexed {
  std::vector<bool> is_indexed;  ///< of each dimension of the tensor
  size_t rank = 0;               ///< of the index tensors, broadcast
  size_t at = 0;                 ///< where their dimensions begin in what is selected

  static Indexed Of(const RuleBuilder& b, size_t tensor_rank) {
    Indexed found{.is_indexed = std::vector<bool>(tensor_rank, false)};
    size_t operand = 1, dim = 0, changes = 0;
    for (const Arg& index : b.graph().elements(b.graph().args(b.node())[1])) {
      if (index.is_value()) {
        if (operand == 1) found.at = dim;
        if (dim > 0 && !found.is_indexed[dim - 1]) ++changes;
        found.is_indexed[dim] = true;
        found.rank = std::max(found.rank, b.operand_sizes(operand++).size());
      }
      ++dim;
    }
    const bool are_apart = changes > (found.is_indexed[0] ? 0 : 1);
    if (are_apart) found.at = 0;
    return found;
  }

  size_t count() const { return static_cast<size_t>(std::ranges::count(is_indexed, true)); }
  size_t selected_rank() const { return is_indexed.size() - count() + rank; }
  /// Where a dimension that is not indexed stands in what is selected.
  size_t PositionOf(size_t dim) const {
    const auto end = is_indexed.begin() + static_cast<std::ptrdiff_t>(dim);
    const auto kept = static_cast<size_t>(std::count(is_indexed.begin(), end, false));
    return kept < at ? kept : kept + rank;
  }
};

/// Whether an index, which are the operands before `end`, says of each element if it is one.
bool HasMask(const RuleBuilder& b, size_t end) {
  for (size_t operand = 1; operand < end; ++operand)
    if (b.dtype(operand) == DType::kBool || b.dtype(operand) == DType::kU8) return true;
  return false;
}

/// self `[.., n.., ..]`, index tensors for n.. → `[.., *index, ..]`
Status Index(RuleBuilder& b) {
  if (b.OperandOf(0) != 0) return Error("an index of no tensor");
  if (b.num_operands() < 2 || HasMask(b, b.num_operands()))
    return Error("an index without numbers");
  const Indexed indexed = Indexed::Of(b, b.operand_sizes(0).size());
  for (size_t operand = 1; operand < b.num_operands(); ++operand) {
    const auto sizes = b.operand_sizes(operand);
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      const size_t to = indexed.at + indexed.rank - sizes.size() + dim;
      if (b.module().dims().ProvablyEqual(sizes[dim], b.result_sizes(0)[to]))
        b.SetOperand(operand, dim, b.result_factor(0, to));
    }
  }
  for (size_t dim = 0; dim < indexed.is_indexed.size(); ++dim) {
    if (indexed.is_indexed[dim]) {
      b.MakeWhole(b.operand_factor(0, dim));
    } else {
      b.SetOperand(0, dim, b.result_factor(0, indexed.PositionOf(dim)));
    }
  }
  b.rule().linear = {{0}};
  return Ok();
}

/// (self, dim, index, source): rows of `source` replace rows of `self` along `dim`.
Status IndexCopy(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(1, "dim", rank).value_or(0);
  b.MakeOperandWhole(1);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (dim == along) {
      b.SetOperand(0, dim, b.result_factor(0, dim));
      b.MakeWhole(b.operand_factor(2, dim));
      b.MakeWhole(b.result_factor(0, dim));
    } else {
      b.SetOperand(0, dim, b.result_factor(0, dim));
      b.SetOperand(2, dim, b.result_factor(0, dim));
    }
  }
  b.rule().linear = {{0, 2}};
  if (b.base().ends_with('_')) b.rule().written = {0};
  return Ok();
}

/// The same, but adds them.
Status IndexAdd(RuleBuilder& b) {
  STRATA_RETURN_IF_ERROR(IndexCopy(b));
  const size_t along = b.DimArg(1, "dim", b.result_sizes(0).size()).value_or(0);
  if (b.IsRowOfToken(1, b.result_sizes(0)[along])) {
    b.SetOperand(1, 0, b.operand_factor(2, along));
    b.OrderRows(b.result_factor(0, along), b.operand_factor(2, along)).cut = b.CutOfTokens(1);
  }
  return Ok();
}

/// The dimension at which a mask that is the only index begins.
size_t MaskAt(const RuleBuilder& b) {
  const auto indices = b.graph().elements(b.graph().args(b.node())[1]);
  const auto mask = std::ranges::find_if(indices, [](const Arg& arg) { return arg.is_value(); });
  return static_cast<size_t>(mask - indices.begin());
}

/// A number written where a mask of the dimensions from `first` on says so: each element on its
/// own.
void PutNumber(RuleBuilder& b, size_t first) {
  for (size_t dim = 0; dim < b.result_sizes(0).size(); ++dim)
    b.SetOperand(0, dim, b.result_factor(0, dim));
  for (size_t dim = 0; dim < b.operand_sizes(1).size(); ++dim)
    b.SetOperand(1, dim, b.result_factor(0, first + dim));
  b.MakeOperandWhole(2);
}

/// self `[.., n.., ..]`, index tensors for n.., values that broadcast to `[.., *index, ..]`: what
/// is indexed is whole, the other dimensions belong together.
Status IndexPut(RuleBuilder& b) {
  const size_t values = b.num_operands() - 1, rank = b.result_sizes(0).size();
  if (b.num_operands() < 3 || b.OperandOf(0) != 0) return Error("an index without a tensor");
  if (b.base().ends_with('_')) b.rule().written = {0};
  b.rule().linear = {{0, static_cast<int>(values)}};
  const bool has_mask = HasMask(b, values);
  const auto value_sizes = b.operand_sizes(values);
  const bool is_number = std::ranges::all_of(
      value_sizes, [&](DimId size) { return b.module().dims().AsConst(size) == 1; });
  if (has_mask && b.num_operands() == 3 && is_number) {
    PutNumber(b, MaskAt(b));
    return Ok();
  }
  if (has_mask) {
    b.MakeAllWhole();
    return Ok();
  }
  const Indexed indexed = Indexed::Of(b, rank);
  for (size_t operand = 1; operand <= values; ++operand)
    b.MakeOperandWhole(operand);
  const size_t missing = indexed.selected_rank() - value_sizes.size();
  for (size_t dim = 0; dim < rank; ++dim) {
    b.SetOperand(0, dim, b.result_factor(0, dim));
    if (indexed.is_indexed[dim]) {
      b.MakeWhole(b.result_factor(0, dim));
      continue;
    }
    const size_t position = indexed.PositionOf(dim);
    if (position >= missing &&
        b.module().dims().ProvablyEqual(value_sizes[position - missing], b.result_sizes(0)[dim]))
      b.SetOperand(values, position - missing, b.result_factor(0, dim));
  }
  return Ok();
}

/// (self, dim, index, value): writes a number to rows of `self`.
Status IndexFill(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(1, "dim", rank).value_or(0);
  for (size_t operand = 1; operand < b.num_operands(); ++operand)
    b.MakeOperandWhole(operand);
  for (size_t dim = 0; dim < rank; ++dim)
    b.SetOperand(0, dim, b.result_factor(0, dim));
  if (rank > 0) b.MakeWhole(b.result_factor(0, along));
  if (b.base().ends_with('_')) b.rule().written = {0};
  return Ok();
}

/// (x, indices): elements of the flat x.
Status Take(RuleBuilder& b) {
  b.MakeOperandWhole(0);
  b.rule().operands[1] = b.rule().results[0];
  b.rule().linear = {{0}};
  return Ok();
}

/// Writes along `dim`: that one is whole in all tensors, the others belong together where equal.
Status Scatter(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(1, "dim", rank).value_or(0);
  const DimTable& dims = b.module().dims();
  for (size_t dim = 0; dim < rank; ++dim) {
    bool are_equal = dim != along;
    for (size_t operand = 0; operand < b.num_operands(); ++operand)
      are_equal =
          are_equal && (b.operand_sizes(operand).size() != rank ||
                        dims.ProvablyEqual(b.operand_sizes(operand)[dim], b.result_sizes(0)[dim]));
    for (size_t operand = 0; operand < b.num_operands(); ++operand) {
      if (b.operand_sizes(operand).size() != rank) continue;
      if (are_equal) {
        b.SetOperand(operand, dim, b.result_factor(0, dim));
      } else {
        b.MakeWhole(b.operand_factor(operand, dim));
      }
    }
    if (!are_equal) b.MakeWhole(b.result_factor(0, dim));
  }
  if (b.base().ends_with('_')) b.rule().written = {0};
  return Ok();
}

/// (x, boundaries): where each element lies between boundaries, of which a rank needs all.
Status Bucketize(RuleBuilder& b) {
  if (b.num_operands() != 2) return Error("numbers instead of tensors");
  b.MakeOperandWhole(1);
  for (size_t dim = 0; dim < b.result_sizes(0).size(); ++dim)
    b.SetOperand(0, dim, b.result_factor(0, dim));
  return Ok();
}

constexpr RuleEntry kIndexRules[] = {
    {"_unsafe_index", Index},
    {"_unsafe_index_put", IndexPut},
    {"bucketize", Bucketize},
    {"embedding", Embedding},
    {"embedding_dense_backward", EmbeddingBackward},
    {"gather", Gather},
    {"index", Index},
    {"index_add", IndexAdd},
    {"index_add_", IndexAdd},
    {"index_copy", IndexCopy},
    {"index_copy_", IndexCopy},
    {"index_fill", IndexFill},
    {"index_fill_", IndexFill},
    {"index_put", IndexPut},
    {"index_put_", IndexPut},
    {"index_select", IndexSelect},
    {"scatter", Scatter},
    {"scatter_", Scatter},
    {"scatter_add", Scatter},
    {"scatter_add_", Scatter},
    {"scatter_reduce", Scatter},
    {"scatter_reduce_", Scatter},
    {"take", Take},
};

}  // namespace

std::span<const RuleEntry> IndexRules() {
  return kIndexRules;
}

}  // namespace strata
