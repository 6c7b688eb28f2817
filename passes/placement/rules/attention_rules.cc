#include <string_view>
#include <vector>

#include "ir/attention.h"
#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// query `[b, h·r, s, d]`, key and value `[b, h, t, d]`, of which each head serves r query heads,
/// and mask `[b, h·r, s, t]`, or what broadcasts to it: batch and heads are free. So are positions
/// of queries, which need all of keys and values, where the mask is an argument or can become one:
/// `lower` gives a rank that has some of a causal attention a mask of its own
/// (passes/placement/lowering/lower_attention.h).
class Attention {
 public:
  Attention(RuleBuilder& b, const AttentionOp& op)
      : b_(b),
        op_(op),
        query_(*b.OperandOf(op.query)),
        key_(*b.OperandOf(op.query + 1)),
        value_(*b.OperandOf(op.query + 2)) {
    batch_ = b.operand_factor(query_, 0);
    heads_ = b.NewHeads(size(query_, 1), size(key_, 1));
    if (MayCutPositions()) AddPositions();
  }

  static bool IsKnown(const RuleBuilder& b, const AttentionOp& op) {
    for (size_t position = op.query; position < op.query + 3; ++position) {
      const auto operand = b.OperandOf(position);
      if (!operand || b.operand_sizes(*operand).size() != 4) return false;
    }
    return true;
  }

  /// `like_query`, `like_key`: more operands of these shapes.
  void Operands(std::initializer_list<size_t> like_query) {
    std::vector<FactorDims>& operands = b_.rule().operands;
    for (size_t operand = 0; operand < operands.size(); ++operand)
      if (operand != query_) b_.MakeOperandWhole(operand);
    Query(operands[query_]);
    Key(operands[key_]);
    Key(operands[value_]);
    for (const size_t position : like_query)
      if (const auto operand = b_.OperandOf(position)) Query(operands[*operand]);
    const Arg* mask = FindMask(b_.graph(), b_.node(), op_);
    if (mask != nullptr) MaskOf(MaskOperand());
  }

  /// Of results that are not `count` first ones, every rank has one of its own.
  void KeepResults(size_t count) {
    for (size_t result = count; result < b_.num_results(); ++result)
      b_.rule().results[result].clear();
  }

  void Query(FactorDims& dims) { Heads(dims, true); }
  void Key(FactorDims& dims) { Heads(dims, false); }
  void SumOverPositions() {
    if (positions_ >= 0) b_.MakeReduce(positions_, "sum");
  }

 private:
  DimId size(size_t operand, size_t dim) const { return b_.operand_sizes(operand)[dim]; }
  bool AreEqual(DimId a, DimId b) const { return b_.module().dims().ProvablyEqual(a, b); }

  size_t MaskOperand() const {
    if (op_.mask == AttentionOp::Mask::kByPosition) return *b_.OperandOf(op_.mask_position);
    return b_.num_operands() - 1;
  }

  bool MayCutPositions() const {
    if (!b_.FlagArg(op_.causal, "is_causal", false)) return true;
    // A square: each query sees the keys up to its own position.
    return op_.mask != AttentionOp::Mask::kNone && AreEqual(size(query_, 2), size(key_, 2)) &&
           FindMask(b_.graph(), b_.node(), op_) == nullptr;
  }

  /// Statistics that have a multiple of 32 rows stay those of the rank's queries.
  void AddPositions() {
    DimTable& dims = b_.module().dims();
    if (op_.rows_per_unit == 1) {
      positions_ = b_.NewFactor(size(query_, 2));
      return;
    }
    const auto all = dims.AsConst(size(query_, 2));
    if (!all || *all % op_.rows_per_unit != 0) return;
    positions_ = b_.NewFactor(dims.Const(*all / op_.rows_per_unit));
    in_unit_ = b_.NewFactor(dims.Const(op_.rows_per_unit), Factor::Kind::kWhole);
  }

  std::vector<int> Positions() const {
    return in_unit_ >= 0 ? std::vector<int>{positions_, in_unit_} : std::vector<int>{positions_};
  }

  void Heads(FactorDims& dims, bool is_query) {
    if (dims.size() < 3) return;
    for (size_t dim = 2; dim < dims.size(); ++dim)
      b_.MakeWhole(dims[dim][0]);
    dims[0] = {batch_};
    dims[1] = is_query ? heads_ : std::vector<int>{heads_[0]};
    if (is_query && positions_ >= 0) dims[2] = Positions();
  }

  void MaskOf(size_t operand) {
    FactorDims& mask = b_.rule().operands[operand];
    const std::vector<int> factors[] = {
        {batch_}, heads_, positions_ >= 0 ? Positions() : std::vector<int>{}};
    for (size_t dim = 0; dim < 3; ++dim) {
      const size_t from_last = 4 - dim;
      if (mask.size() < from_last || factors[dim].empty()) continue;
      const size_t at = mask.size() - from_last;
      if (AreEqual(size(operand, at), size(query_, dim))) mask[at] = factors[dim];
    }
  }

  RuleBuilder& b_;
  const AttentionOp& op_;
  const size_t query_, key_, value_;
  int batch_, positions_ = -1, in_unit_ = -1;
  std::vector<int> heads_;  // of queries, those of keys first
};

bool IsZero(const Arg& arg) {
  return (arg.kind() == ArgKind::kFloat && arg.as_float() == 0.0) ||
         (arg.kind() == ArgKind::kInt && arg.as_int() == 0);
}

/// (query, key, value, …) → (out, logsumexp `[b, h·r, s]`, …);
/// (grad_out, query, key, value, out, logsumexp, …) → (of query, of key, of value)
Status AnyAttention(RuleBuilder& b) {
  const AttentionOp& op = *FindAttentionOp(b.op());
  if (!Attention::IsKnown(b, op)) return Error("query, key or value without four dimensions");
  if (const Arg* dropout = b.FindArg(op.dropout, "dropout_p");
      dropout != nullptr && !IsZero(*dropout))
    return Error(ErrorCode::kUnsupported, "ranks would not draw what one draws for dropout");
  Attention attention(b, op);
  std::vector<FactorDims>& results = b.rule().results;
  if (!op.is_backward) {
    attention.Operands({});
    for (size_t result = 0; result < 2 && result < results.size(); ++result)
      attention.Query(results[result]);
    attention.KeepResults(2);
    return Ok();
  }
  if (results.size() > 3 && !results[3].empty())
    return Error(ErrorCode::kUnsupported, "a gradient of the mask");
  attention.SumOverPositions();
  attention.Operands({0, op.output, op.log_sums});
  attention.Query(results[0]);
  attention.Key(results[1]);
  attention.Key(results[2]);
  return Ok();
}

constexpr RuleEntry kAttentionRules[] = {
    {"_scaled_dot_product_cudnn_attention", AnyAttention},
    {"_scaled_dot_product_cudnn_attention_backward", AnyAttention},
    {"_scaled_dot_product_efficient_attention", AnyAttention},
    {"_scaled_dot_product_efficient_attention_backward", AnyAttention},
    {"_scaled_dot_product_flash_attention", AnyAttention},
    {"_scaled_dot_product_flash_attention_backward", AnyAttention},
    {"_scaled_dot_product_flash_attention_for_cpu", AnyAttention},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", AnyAttention},
};

}  // namespace

std::span<const RuleEntry> AttentionRules() {
  return kAttentionRules;
}

}  // namespace strata
