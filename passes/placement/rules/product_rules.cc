#include <string_view>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// Sums over `k`, which is dimension `a_dim` of operand `a` and `b_dim` of operand `b_`.
void Contract(RuleBuilder& b, size_t a, size_t a_dim, size_t b_, size_t b_dim) {
  const int k = b.operand_factor(a, a_dim);
  b.MakeReduce(k, "sum");
  b.SetOperand(b_, b_dim, k);
}

/// [m, k] · [k, n], at operands `a` and `a + 1`.
Status Matrices(RuleBuilder& b, size_t a) {
  b.SetOperand(a, 0, b.result_factor(0, 0));
  b.SetOperand(a + 1, 1, b.result_factor(0, 1));
  Contract(b, a, 1, a + 1, 0);
  b.rule().ends_with_zeros = b.EndsWithZeros(a) && b.EndsWithZeros(a + 1);
  b.rule().linear = {{static_cast<int>(a)}, {static_cast<int>(a) + 1}};
  return Ok();
}

Status Mm(RuleBuilder& b) {
  return Matrices(b, 0);
}

/// bias + a · b: a sum over k would add the bias on every rank.
Status Addmm(RuleBuilder& b) {
  STRATA_RETURN_IF_ERROR(Matrices(b, 1));
  b.MakeWhole(b.operand_factor(1, 1));
  b.rule().linear.clear();
  const size_t rank = b.operand_sizes(0).size();
  for (size_t dim = 0; dim < rank; ++dim) {
    const size_t to = 2 - rank + dim;
    if (b.module().dims().ProvablyEqual(b.operand_sizes(0)[dim], b.result_sizes(0)[to]))
      b.SetOperand(0, dim, b.result_factor(0, to));
  }
  return Ok();
}

/// [b, m, k] · [b, k, n]
Status Bmm(RuleBuilder& b) {
  b.SetOperand(0, 0, b.result_factor(0, 0));
  b.SetOperand(1, 0, b.result_factor(0, 0));
  b.SetOperand(0, 1, b.result_factor(0, 1));
  b.SetOperand(1, 2, b.result_factor(0, 2));
  Contract(b, 0, 2, 1, 1);
  b.rule().linear = {{0}, {1}};
  return Ok();
}

/// x + [b, m, k] · [b, k, n]
Status Baddbmm(RuleBuilder& b) {
  for (size_t dim = 0; dim < b.operand_sizes(0).size(); ++dim) {
    const size_t to = 3 - b.operand_sizes(0).size() + dim;
    if (b.module().dims().ProvablyEqual(b.operand_sizes(0)[dim], b.result_sizes(0)[to]))
      b.SetOperand(0, dim, b.result_factor(0, to));
  }
  for (const size_t operand : {size_t{1}, size_t{2}})
    b.SetOperand(operand, 0, b.result_factor(0, 0));
  b.SetOperand(1, 1, b.result_factor(0, 1));
  b.SetOperand(2, 2, b.result_factor(0, 2));
  b.MakeWhole(b.operand_factor(1, 2));
  b.MakeWhole(b.operand_factor(2, 1));
  return Ok();
}

/// [m, k] · [k]
Status Mv(RuleBuilder& b) {
  b.SetOperand(0, 0, b.result_factor(0, 0));
  Contract(b, 0, 1, 1, 0);
  b.rule().linear = {{0}, {1}};
  return Ok();
}

/// x + [m, k] · [k]
Status Addmv(RuleBuilder& b) {
  if (b.AreEqual(b.operand_sizes(0), b.result_sizes(0))) b.SetOperand(0, 0, b.result_factor(0, 0));
  b.SetOperand(1, 0, b.result_factor(0, 0));
  b.MakeWhole(b.operand_factor(1, 1));
  b.MakeWhole(b.operand_factor(2, 0));
  return Ok();
}

Status Dot(RuleBuilder& b) {
  Contract(b, 0, 0, 1, 0);
  b.rule().linear = {{0}, {1}};
  return Ok();
}

/// Rows by group, which `offs` ends: [t, k] · [g, k, n] → [t, n], or [k, t] · [t, n] → [g, k, n].
/// Groups begin and end anywhere: a rank has all rows, or those of its tokens or experts.
Status GroupedMm(RuleBuilder& b) {
  for (size_t operand = 2; operand < b.num_operands(); ++operand)
    b.MakeOperandWhole(operand);
  const size_t left = b.operand_sizes(0).size(), right = b.operand_sizes(1).size();
  if (left == 2 && right == 3) {
    b.SetOperand(0, 0, b.result_factor(0, 0));
    b.MakeWhole(b.operand_factor(1, 0));
    b.SetOperand(1, 2, b.result_factor(0, 1));
    Contract(b, 0, 1, 1, 1);
    b.OrderRows(-1, b.result_factor(0, 0)).groups = b.operand_factor(1, 0);
  } else if (left == 2 && right == 2) {
    b.SetOperand(0, 1, b.operand_factor(1, 0));
    b.MakeWhole(b.result_factor(0, 0));
    b.SetOperand(0, 0, b.result_factor(0, 1));
    b.SetOperand(1, 1, b.result_factor(0, 2));
    b.OrderRows(-1, b.operand_factor(1, 0)).groups = b.result_factor(0, 0);
  } else {
    return Error("grouped products of {} and {} dimensions", left, right);
  }
  if (b.num_operands() > 2) b.rule().order.totals = {2};
  b.rule().linear = {{0}, {1}};
  return Ok();
}

constexpr RuleEntry kProductRules[] = {
    {"_grouped_mm", GroupedMm},
    {"addmm", Addmm},
    {"addmv", Addmv},
    {"baddbmm", Baddbmm},
    {"bmm", Bmm},
    {"dot", Dot},
    {"mm", Mm},
    {"mv", Mv},
    {"vdot", Dot},
};

}  // namespace

std::span<const RuleEntry> ProductRules() {
  return kProductRules;
}

}  // namespace strata
