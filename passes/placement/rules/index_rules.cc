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

/// Where the index tensors of `index` and `index_put` stand: at dimensions `first`, `first` + 1, …
/// of the indexed tensor. Errors: other dimensions between them, index tensors of several shapes.
struct Indexed {
  size_t first = 0, count = 0;

  static Result<Indexed> Of(const RuleBuilder& b) {
    const auto indices = b.graph().elements(b.graph().args(b.node())[1]);
    const auto is_tensor = [](const Arg& arg) { return arg.is_value(); };
    const auto begin = std::ranges::find_if(indices, is_tensor);
    const auto end = std::find_if_not(begin, indices.end(), is_tensor);
    if (std::any_of(end, indices.end(), is_tensor))
      return Error("an index of dimensions that are apart");
    Indexed found{.first = static_cast<size_t>(begin - indices.begin()),
                  .count = static_cast<size_t>(end - begin)};
    for (size_t i = 1; i < found.count; ++i) {
      if (!b.AreEqual(b.operand_sizes(1), b.operand_sizes(1 + i)))
        return Error("an index of tensors of several shapes");
    }
    return found;
  }
};

/// self `[.., n.., ..]`, index tensors of one shape for n.. → `[.., *index, ..]`
Status Index(RuleBuilder& b) {
  if (b.OperandOf(0) != 0) return Error("an index of no tensor");
  STRATA_TRY(const Indexed indexed, Indexed::Of(b));
  if (indexed.count == 0 || b.dtype(1) == DType::kBool) return Error("an index without numbers");
  const size_t index_rank = b.operand_sizes(1).size();
  for (size_t operand = 1; operand < b.num_operands(); ++operand)
    for (size_t dim = 0; dim < index_rank; ++dim)
      b.SetOperand(operand, dim, b.result_factor(0, indexed.first + dim));
  for (size_t dim = 0; dim < b.operand_sizes(0).size(); ++dim) {
    if (dim < indexed.first) {
      b.SetOperand(0, dim, b.result_factor(0, dim));
    } else if (dim < indexed.first + indexed.count) {
      b.MakeWhole(b.operand_factor(0, dim));
    } else {
      b.SetOperand(0, dim, b.result_factor(0, dim - indexed.count + index_rank));
    }
  }
  b.rule().linear = {{0}};
  return Ok();
}

/// (self, dim, index, source): adds rows of `source` to rows of `self` along `dim`.
Status IndexAdd(RuleBuilder& b) {
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
  if (b.IsRowOfToken(1, b.result_sizes(0)[along])) {
    b.SetOperand(1, 0, b.operand_factor(2, along));
    b.OrderRows(b.result_factor(0, along), b.operand_factor(2, along)).cut = b.CutOfTokens(1);
  }
  b.rule().linear = {{0, 2}};
  if (b.base().ends_with('_')) b.rule().written = {0};
  return Ok();
}

/// self `[.., n.., ..]`, index tensors of one shape for n.., values `[.., *index, ..]`: what is
/// indexed is whole, the other dimensions belong together.
Status IndexPut(RuleBuilder& b) {
  STRATA_TRY(const Indexed indexed, Indexed::Of(b));
  const size_t values = 1 + indexed.count, rank = b.result_sizes(0).size();
  if (b.num_operands() != values + 1 || indexed.count == 0)
    return Error("an index without a tensor");
  const size_t index_rank = b.operand_sizes(1).size();
  if (b.operand_sizes(values).size() + indexed.count != index_rank + rank)
    return Error("values that are repeated over dimensions");
  for (size_t operand = 1; operand <= values; ++operand)
    b.MakeOperandWhole(operand);
  for (size_t dim = 0; dim < rank; ++dim) {
    const bool is_behind = dim >= indexed.first + indexed.count;
    const bool is_indexed = dim >= indexed.first && !is_behind;
    const size_t of_values = is_behind ? dim - indexed.count + index_rank : dim;
    b.SetOperand(0, dim, b.result_factor(0, dim));
    if (!is_indexed && b.module().dims().ProvablyEqual(b.operand_sizes(values)[of_values],
                                                       b.result_sizes(0)[dim])) {
      b.SetOperand(values, of_values, b.result_factor(0, dim));
    } else {
      b.MakeWhole(b.result_factor(0, dim));
    }
  }
  b.rule().linear = {{0, static_cast<int>(values)}};
  if (b.base().ends_with('_')) b.rule().written = {0};
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
    {"index_put", IndexPut},
    {"index_put_", IndexPut},
    {"index_select", IndexSelect},
    {"scatter", Scatter},
    {"scatter_", Scatter},
    {"scatter_add", Scatter},
    {"scatter_add_", Scatter},
    {"scatter_reduce", Scatter},
    {"scatter_reduce_", Scatter},
};

}  // namespace

std::span<const RuleEntry> IndexRules() {
  return kIndexRules;
}

}  // namespace strata
