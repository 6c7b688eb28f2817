#include <string_view>
#include <vector>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// query `[b, h·r, s, d]`, key and value `[b, h, t, d]`, of which each head serves r query heads:
/// batch and heads are free. A rank that has some positions of queries needs all of keys and
/// values; `lower` gives it a mask of its own (passes/placement/lower_attention.h).
class Attention {
 public:
  Attention(RuleBuilder& b, size_t query, size_t key, bool has_mask) : b_(b) {
    const DimTable& dims = b.module().dims();
    batch_ = b.operand_factor(query, 0);
    heads_ = b.NewFactor(b.operand_sizes(key)[1]);
    const auto all = dims.AsConst(b.operand_sizes(query)[1]);
    const auto served = dims.AsConst(b.operand_sizes(key)[1]);
    if (all && served && *served > 0 && *all % *served == 0)
      per_head_ = b.NewFactor(b.module().dims().Const(*all / *served), Factor::Kind::kWhole);
    // A square: each query sees the keys up to its own position.
    if (!has_mask && dims.ProvablyEqual(b.operand_sizes(query)[2], b.operand_sizes(key)[2]))
      positions_ = b.NewFactor(b.operand_sizes(query)[2]);
  }

  void Query(FactorDims& dims) { Heads(dims, true); }
  void Key(FactorDims& dims) { Heads(dims, false); }
  int positions() const { return positions_; }

 private:
  void Heads(FactorDims& dims, bool is_query) {
    if (dims.size() < 3) return;
    for (size_t dim = 2; dim < dims.size(); ++dim)
      b_.MakeWhole(dims[dim][0]);
    dims[0] = {batch_};
    dims[1] = {heads_};
    if (is_query && per_head_ >= 0) dims[1].push_back(per_head_);
    if (is_query && positions_ >= 0) dims[2] = {positions_};
  }

  RuleBuilder& b_;
  int batch_, heads_, per_head_ = -1, positions_ = -1;
};

/// (query, key, value, …) → (out, logsumexp `[b, h·r, s]`, …)
Status Forward(RuleBuilder& b) {
  Attention attention(b, 0, 1, b.num_operands() > 3);
  attention.Query(b.rule().operands[0]);
  attention.Key(b.rule().operands[1]);
  attention.Key(b.rule().operands[2]);
  for (size_t operand = 3; operand < b.num_operands(); ++operand)
    b.MakeOperandWhole(operand);  // a mask
  for (FactorDims& result : b.rule().results)
    attention.Query(result);
  return Ok();
}

/// (grad_out, query, key, value, out, logsumexp, …) → (of query, of key, of value)
Status Backward(RuleBuilder& b) {
  Attention attention(b, 1, 2, b.num_operands() > 6);
  if (attention.positions() >= 0) b.MakeReduce(attention.positions(), "sum");
  for (const size_t like_query : {0, 1, 4, 5})
    attention.Query(b.rule().operands[like_query]);
  for (const size_t like_key : {2, 3})
    attention.Key(b.rule().operands[like_key]);
  for (size_t operand = 6; operand < b.num_operands(); ++operand)
    b.MakeOperandWhole(operand);
  attention.Query(b.rule().results[0]);
  attention.Key(b.rule().results[1]);
  attention.Key(b.rule().results[2]);
  return Ok();
}

constexpr RuleEntry kAttentionRules[] = {
    {"_scaled_dot_product_flash_attention_for_cpu", Forward},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", Backward},
};

}  // namespace

std::span<const RuleEntry> AttentionRules() {
  return kAttentionRules;
}

}  // namespace strata
