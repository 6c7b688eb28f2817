#include <algorithm>
#include <string_view>
#include <vector>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// Elements move, none changes.
Status Moves(RuleBuilder& b) {
  b.rule().moves_elements = true;
  return Ok();
}

/// Splits the dimensions of both shapes into common factors, the slowest first: [8, 64, 64] and
/// [512, 4, 16] have b = 8, s = 64, h = 4, d = 16. Dimensions that share no boundary are one group
/// of which the slowest common factor is free, the rest whole.
class CommonFactors {
 public:
  CommonFactors(RuleBuilder& b, std::span<const DimId> in, std::span<const DimId> out)
      : b_(b), dims_(b.module().dims()), in_(in), out_(out) {}

  void Fill() {
    size_t i = 0, o = 0;
    DimId rest_in = Size(in_, i), rest_out = Size(out_, o);
    while (i < in_.size() && o < out_.size()) {
      if (dims_.ProvablyEqual(rest_in, rest_out)) {
        Put(i, o, b_.NewFactor(rest_in));
        rest_in = Size(in_, ++i);
        rest_out = Size(out_, ++o);
      } else if (const auto quotient = Divide(rest_in, rest_out)) {
        Put(i, o, b_.NewFactor(rest_out));
        rest_in = *quotient;
        rest_out = Size(out_, ++o);
      } else if (const auto inverse = Divide(rest_out, rest_in)) {
        Put(i, o, b_.NewFactor(rest_in));
        rest_out = *inverse;
        rest_in = Size(in_, ++i);
      } else {  // no common boundary: what is left cannot be sharded
        break;
      }
    }
    for (; i < in_.size(); ++i)
      PutWhole(b_.rule().operands[0][i], in_[i]);
    for (; o < out_.size(); ++o)
      PutWhole(b_.rule().results[0][o], out_[o]);
  }

 private:
  static DimId Size(std::span<const DimId> sizes, size_t dim) {
    return dim < sizes.size() ? sizes[dim] : DimId{};
  }

  std::optional<DimId> Divide(DimId a, DimId divisor) {
    const auto number = dims_.AsConst(a), by = dims_.AsConst(divisor);
    if (number && by) {
      if (*by == 0 || *number % *by != 0) return std::nullopt;
      return dims_.Const(*number / *by);
    }
    DimId quotient = dims_.FloorDiv(a, divisor);
    // 64*s0 by 2*s0: expressions are divided by numbers only, so ask what the sizes suggest.
    const auto size = dims_.Hint(a), by_size = dims_.Hint(divisor);
    if (!by && size && by_size.value_or(0) > 0) quotient = dims_.Const(*size / *by_size);
    if (!dims_.ProvablyEqual(dims_.Mul(quotient, divisor), a)) return std::nullopt;
    return quotient;
  }

  void Put(size_t i, size_t o, int factor) {
    Put(b_.rule().operands[0][i], filled_in_, i, factor);
    Put(b_.rule().results[0][o], filled_out_, o, factor);
  }
  static void Put(std::vector<int>& factors, std::vector<bool>& filled, size_t dim, int factor) {
    if (filled.size() <= dim) filled.resize(dim + 1, false);
    if (!filled[dim]) factors.clear();
    filled[dim] = true;
    factors.push_back(factor);
  }
  void PutWhole(std::vector<int>& factors, DimId size) {
    factors = {b_.NewFactor(size, Factor::Kind::kWhole)};
  }

  RuleBuilder& b_;
  DimTable& dims_;
  std::span<const DimId> in_, out_;
  std::vector<bool> filled_in_, filled_out_;
};

Status Reshape(RuleBuilder& b) {
  const std::vector<DimId> in(b.operand_sizes(0).begin(), b.operand_sizes(0).end());
  const std::vector<DimId> out(b.result_sizes(0).begin(), b.result_sizes(0).end());
  CommonFactors(b, in, out).Fill();
  b.rule().size_lists = {1};
  return Moves(b);
}

/// Sizes that are counted from the end: new dimensions come first, and those of size 1 grow.
Status Expand(RuleBuilder& b) {
  const auto in = b.operand_sizes(0), out = b.result_sizes(0);
  const DimTable& dims = b.module().dims();
  for (size_t dim = 0; dim < in.size(); ++dim) {
    const size_t to = out.size() - in.size() + dim;
    if (dims.ProvablyEqual(in[dim], out[to])) b.SetOperand(0, dim, b.result_factor(0, to));
  }
  b.rule().size_lists = {1};
  return Moves(b);
}

Status Permutation(RuleBuilder& b, const std::vector<size_t>& from) {
  for (size_t dim = 0; dim < from.size(); ++dim)
    b.SetOperand(0, from[dim], b.result_factor(0, dim));
  return Moves(b);
}

std::vector<size_t> Identity(size_t rank) {
  std::vector<size_t> order(rank);
  for (size_t dim = 0; dim < rank; ++dim)
    order[dim] = dim;
  return order;
}

Status T(RuleBuilder& b) {
  std::vector<size_t> order = Identity(b.operand_sizes(0).size());
  std::ranges::reverse(order);
  return Permutation(b, order);
}

Status Transpose(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const auto first = b.DimArg(1, "dim0", rank), second = b.DimArg(2, "dim1", rank);
  if (!first || !second) return Error("transpose without constant dimensions");
  std::vector<size_t> order = Identity(rank);
  std::swap(order[*first], order[*second]);
  return Permutation(b, order);
}

Status Permute(RuleBuilder& b) {
  return Permutation(b, b.DimsArg(1, "dims", b.operand_sizes(0).size()));
}

Status Unsqueeze(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t added = b.DimArg(1, "dim", rank).value_or(0);
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    b.SetOperand(0, dim, b.result_factor(0, dim < added ? dim : dim + 1));
  return Moves(b);
}

Status Squeeze(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const DimTable& dims = b.module().dims();
  const auto removed = b.DimsArg(1, "dim", rank);
  const size_t num_removed = rank - b.result_sizes(0).size();
  size_t to = 0, dropped = 0;
  for (size_t dim = 0; dim < rank; ++dim) {
    const bool drop = dropped < num_removed && std::ranges::count(removed, dim) != 0 &&
                      dims.AsConst(b.operand_sizes(0)[dim]) == 1;
    dropped += drop ? 1 : 0;
    if (!drop) b.SetOperand(0, dim, b.result_factor(0, to++));
  }
  return Moves(b);
}

/// Two dimensions of operand or result become the last one of the other: a rank needs all of them.
/// The arguments from `position` on are offset, dim1, dim2.
void ShareDiagonal(RuleBuilder& b, size_t position, FactorDims& whole, FactorDims& diagonal) {
  const size_t rank = whole.size();
  const size_t first = b.DimArg(position + 1, "dim1", rank).value_or(0);
  const size_t second = b.DimArg(position + 2, "dim2", rank).value_or(1);
  for (size_t dim = 0, to = 0; dim < rank; ++dim) {
    if (dim == first || dim == second) {
      b.MakeWhole(whole[dim][0]);
    } else {
      diagonal[to++] = whole[dim];
    }
  }
  b.MakeWhole(diagonal.back()[0]);
}

Status Diagonal(RuleBuilder& b) {
  ShareDiagonal(b, 1, b.rule().operands[0], b.rule().results[0]);
  return Moves(b);
}

/// (gradient, sizes, offset, dim1, dim2): zeros of these sizes around the gradient.
Status DiagonalBackward(RuleBuilder& b) {
  ShareDiagonal(b, 2, b.rule().results[0], b.rule().operands[0]);
  b.rule().size_lists = {1};
  return Moves(b);
}

/// (x, source, offset, dim1, dim2): x with the source as its diagonal.
Status DiagonalScatter(RuleBuilder& b) {
  b.rule().results[0] = b.rule().operands[0];
  ShareDiagonal(b, 2, b.rule().operands[0], b.rule().operands[1]);
  b.rule().linear = {{0, 1}};
  return Ok();
}

/// Dimension `dim` is taken apart: a rank needs all of it.
Status WithoutDim(RuleBuilder& b, size_t dim, bool is_removed) {
  const size_t rank = b.operand_sizes(0).size();
  for (size_t result = 0; result < b.num_results(); ++result) {
    if (b.result_sizes(result).empty() && rank > 1) continue;
    for (size_t from = 0, to = 0; from < rank; ++from) {
      if (from == dim) {
        b.MakeWhole(b.operand_factor(0, from));
        if (!is_removed) b.MakeWhole(b.result_factor(result, to++));
        continue;
      }
      b.SetResult(result, to++, b.operand_factor(0, from));
    }
  }
  return Moves(b);
}

Status Slice(RuleBuilder& b) {
  return WithoutDim(b, b.DimArg(1, "dim", b.operand_sizes(0).size()).value_or(0), false);
}

Status Select(RuleBuilder& b) {
  return WithoutDim(b, b.DimArg(1, "dim", b.operand_sizes(0).size()).value_or(0), true);
}

Status Unbind(RuleBuilder& b) {
  return WithoutDim(b, b.DimArg(1, "dim", b.operand_sizes(0).size()).value_or(0), true);
}

/// Windows of a dimension, whose elements become the last dimension.
Status Unfold(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const size_t along = b.DimArg(1, "dimension", rank).value_or(0);
  if (rank == 0) return Moves(b);
  for (size_t dim = 0; dim < rank; ++dim)
    if (dim != along) b.SetOperand(0, dim, b.result_factor(0, dim));
  b.MakeWhole(b.operand_factor(0, along));
  b.MakeWhole(b.result_factor(0, along));
  b.MakeWhole(b.result_factor(0, rank));
  return Moves(b);
}

/// Sums of the gradients of windows, in the sizes of argument 1.
Status UnfoldBackward(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(2, "dim", rank).value_or(0);
  b.MakeOperandWhole(0);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (dim == along) b.MakeWhole(b.result_factor(0, dim));
    if (dim != along) b.SetOperand(0, dim, b.result_factor(0, dim));
  }
  b.rule().size_lists = {1};
  b.rule().linear = {{0}};
  return Ok();
}

/// Zeros of the sizes of argument 1, with the gradient in a part of dimension `dim`.
Status SliceBackward(RuleBuilder& b) {
  b.rule().size_lists = {1};
  return WithoutDim(b, b.DimArg(2, "dim", b.operand_sizes(0).size()).value_or(0), false);
}

/// Zeros of the sizes of argument 1, with the gradient at an index of dimension `dim`.
Status SelectBackward(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(2, "dim", rank).value_or(0);
  for (size_t dim = 0, from = 0; dim < rank; ++dim) {
    if (dim == along) {
      b.MakeWhole(b.result_factor(0, dim));
    } else {
      b.SetOperand(0, from++, b.result_factor(0, dim));
    }
  }
  b.rule().size_lists = {1};
  return Moves(b);
}

/// (x, source, dim, …): x with the source in a part of the dimension, or at an index of it, which
/// the source does not have.
Status WriteAlong(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(2, "dim", rank).value_or(0);
  const bool is_at_index = b.base() == "select_scatter";
  for (size_t dim = 0, from = 0; dim < rank; ++dim) {
    b.SetOperand(0, dim, b.result_factor(0, dim));
    if (dim == along) {
      b.MakeWhole(b.result_factor(0, dim));
      if (!is_at_index) b.MakeWhole(b.operand_factor(1, from++));
    } else {
      b.SetOperand(1, from++, b.result_factor(0, dim));
    }
  }
  b.rule().linear = {{0, 1}};
  return Ok();
}

/// Elements move along the dimensions of an argument; of none, along all.
Status MovesAlong(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const std::vector<size_t> along = b.DimsArg(b.base() == "roll" ? 2 : 1, "dims", rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    b.SetOperand(0, dim, b.result_factor(0, dim));
    if (std::ranges::count(along, dim) != 0) b.MakeWhole(b.result_factor(0, dim));
  }
  return Moves(b);
}

/// (x, quarter turns, two dimensions), which a rank has all of.
Status Rotate(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  std::vector<size_t> turned = {0, 1};
  if (b.FindArg(2, "dims") != nullptr) turned = b.DimsArg(2, "dims", rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (std::ranges::count(turned, dim) == 0) {
      b.SetOperand(0, dim, b.result_factor(0, dim));
    } else {
      b.MakeWhole(b.operand_factor(0, dim));
      b.MakeWhole(b.result_factor(0, dim));
    }
  }
  return Moves(b);
}

/// Dimensions that are not repeated stay as they are; new ones come first.
Status Repeat(RuleBuilder& b) {
  const auto in = b.operand_sizes(0), out = b.result_sizes(0);
  const DimTable& dims = b.module().dims();
  for (size_t to = 0; to < out.size(); ++to) {
    const bool is_new = to < out.size() - in.size();
    const size_t dim = to - (out.size() - in.size());
    if (!is_new && dims.ProvablyEqual(in[dim], out[to])) {
      b.SetOperand(0, dim, b.result_factor(0, to));
      continue;
    }
    if (!is_new) b.MakeWhole(b.operand_factor(0, dim));
    b.MakeWhole(b.result_factor(0, to));
  }
  return Moves(b);
}

/// Pairs of widths, from the last dimension on.
Status Pad(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const Arg* widths = b.FindArg(1, "pad");
  // Two widths for each dimension, those of the last one first.
  const auto is_padded = [&](size_t dim) {
    if (widths == nullptr) return true;
    const size_t first = 2 * (rank - 1 - dim);
    for (size_t i = first; i < std::min<size_t>(first + 2, widths->span_size()); ++i) {
      const Arg& width = b.graph().elements(*widths)[i];
      if (width.kind() != ArgKind::kInt || width.as_int() != 0) return true;
    }
    return false;
  };
  for (size_t dim = 0; dim < rank; ++dim) {
    if (!is_padded(dim)) {
      b.SetOperand(0, dim, b.result_factor(0, dim));
    } else {
      b.MakeWhole(b.operand_factor(0, dim));
      b.MakeWhole(b.result_factor(0, dim));
    }
  }
  return Ok();
}

Status Split(RuleBuilder& b) {
  return WithoutDim(b, b.DimArg(2, "dim", b.operand_sizes(0).size()).value_or(0), false);
}

/// The operands follow each other along a dimension that is whole, or new.
Status Concatenate(RuleBuilder& b, bool adds_dim) {
  const size_t rank = b.result_sizes(0).size();
  const size_t dim = b.DimArg(1, "dim", rank).value_or(0);
  b.MakeWhole(b.result_factor(0, dim));
  std::vector<int> all;
  for (size_t operand = 0; operand < b.num_operands(); ++operand) {
    all.push_back(static_cast<int>(operand));
    for (size_t from = 0, to = 0; from < b.operand_sizes(operand).size(); ++from, ++to) {
      if (adds_dim && to == dim) ++to;
      if (!adds_dim && from == dim) {
        b.MakeWhole(b.operand_factor(operand, from));
      } else {
        b.SetOperand(operand, from, b.result_factor(0, to));
      }
    }
  }
  b.rule().linear = {all};
  b.rule().moves_elements = true;
  return Ok();
}

Status Cat(RuleBuilder& b) {
  return Concatenate(b, false);
}

Status Stack(RuleBuilder& b) {
  return Concatenate(b, true);
}

/// [..., 2] as complex numbers [...], and back.
Status Complex(RuleBuilder& b) {
  const size_t rank = std::min(b.operand_sizes(0).size(), b.result_sizes(0).size());
  for (size_t dim = 0; dim < rank; ++dim)
    b.SetOperand(0, dim, b.result_factor(0, dim));
  if (b.operand_sizes(0).size() > rank) b.MakeWhole(b.operand_factor(0, rank));
  if (b.result_sizes(0).size() > rank) b.MakeWhole(b.result_factor(0, rank));
  b.rule().linear = {{0}};
  return Ok();
}

constexpr RuleEntry kViewRules[] = {
    {"_reshape_alias", Reshape},
    {"_unsafe_view", Reshape},
    {"cat", Cat},
    {"chunk", Split},
    {"constant_pad_nd", Pad},
    {"diagonal", Diagonal},
    {"diagonal_backward", DiagonalBackward},
    {"diagonal_copy", Diagonal},
    {"diagonal_scatter", DiagonalScatter},
    {"expand", Expand},
    {"flip", MovesAlong},
    {"permute", Permute},
    {"repeat", Repeat},
    {"reshape", Reshape},
    {"rev", MovesAlong},
    {"roll", MovesAlong},
    {"rot90", Rotate},
    {"select", Select},
    {"select_backward", SelectBackward},
    {"select_scatter", WriteAlong},
    {"slice", Slice},
    {"slice_backward", SliceBackward},
    {"slice_scatter", WriteAlong},
    {"split", Split},
    {"split_with_sizes", Split},
    {"squeeze", Squeeze},
    {"stack", Stack},
    {"t", T},
    {"transpose", Transpose},
    {"unbind", Unbind},
    {"unfold", Unfold},
    {"unfold_backward", UnfoldBackward},
    {"unsafe_chunk", Split},
    {"unsafe_split", Split},
    {"unsafe_split_with_sizes", Split},
    {"unsqueeze", Unsqueeze},
    {"view", Reshape},
    {"view_as_complex", Complex},
    {"view_as_real", Complex},
};

}  // namespace

std::span<const RuleEntry> ViewRules() {
  return kViewRules;
}

}  // namespace strata
