#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/flex/flex_node.h"
#include "passes/flex/flex_program.h"
#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// What a body does with the index of a sequence of the batch, or of a head. Ranks that have some
/// of them count from 0: a body may select with such an index in a buffer that is cut in the same
/// way, and do nothing else with it.
struct IndexUse {
  bool is_number = false;                                ///< its value matters
  std::vector<std::pair<int32_t, size_t>> selects = {};  ///< dimensions of buffers: (buffer, dim)

  bool Selects(int32_t buffer, size_t dim) const {
    return std::ranges::count(selects, std::pair(buffer, dim)) > 0;
  }
};

IndexUse UseOf(const FlexProgram& body, int32_t index) {
  const auto is_index = [&](const FlexProgram::Operand& operand) {
    if (operand.op < 0) return false;
    const FlexProgram::Op& op = body.ops[static_cast<size_t>(operand.op)];
    return op.code == "input" && op.index == index;
  };
  IndexUse use;
  use.is_number = is_index(body.result);
  for (const FlexProgram::Op& op : body.ops) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (!is_index(op.operands[i])) continue;
      if (op.code != "load") use.is_number = true;
      if (op.code == "load" && !use.Selects(op.index, i)) use.selects.emplace_back(op.index, i);
    }
  }
  // Every read of a buffer that is cut selects with the index.
  for (const FlexProgram::Op& op : body.ops)
    for (const auto& [buffer, dim] : use.selects)
      if (op.code == "load" && op.index == buffer && !is_index(op.operands[dim]))
        use.is_number = true;
  return use;
}

/// Sequences of the batch and heads of a call, as factors of its tensors.
class FlexFactors {
 public:
  FlexFactors(RuleBuilder& b, int batch, std::vector<int> heads)
      : b_(b), batch_(batch), heads_(std::move(heads)) {}

  /// A body reads buffers that are operands from `first` on.
  Status AddBody(GraphId body, FlexRole role, std::optional<size_t> first) {
    STRATA_TRY(const FlexProgram program, MakeFlexProgram(b_.module().graph(body), role));
    const int32_t row = role == FlexRole::kMask ? 0 : 1;  // a score comes first
    const IndexUse rows = UseOf(program, row), heads = UseOf(program, row + 1);
    if (rows.is_number) b_.MakeWhole(batch_);
    if (heads.is_number) MakeHeadsWhole();
    if (!first) return Ok();
    for (size_t buffer = 0; buffer < program.num_buffers; ++buffer) {
      FactorDims& dims = b_.rule().operands[*first + buffer];
      b_.MakeOperandWhole(*first + buffer);
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        if (rows.Selects(static_cast<int32_t>(buffer), dim)) dims[dim] = {batch_};
        if (heads.Selects(static_cast<int32_t>(buffer), dim)) dims[dim] = heads_;
      }
    }
    return Ok();
  }

  /// `[rows or 1, heads or 1, …]`: of a block mask.
  void Blocks(FactorDims& dims, std::span<const DimId> sizes, DimId rows, DimId heads) {
    for (const std::vector<int>& dim : dims)
      b_.MakeWhole(dim[0]);
    const DimTable& table = b_.module().dims();
    if (table.ProvablyEqual(sizes[0], rows)) dims[0] = {batch_};
    if (table.ProvablyEqual(sizes[1], heads)) dims[1] = heads_;
  }

  void MakeHeadsWhole() {
    for (const int factor : heads_)
      b_.MakeWhole(factor);
  }

 private:
  RuleBuilder& b_;
  const int batch_;
  const std::vector<int> heads_;
};

/// The operand that each element of the list argument `position` is.
std::vector<std::optional<size_t>> OperandsOf(const RuleBuilder& b, size_t position) {
  size_t next = b.NumOperandsBefore(position);
  std::vector<std::optional<size_t>> operands;
  for (const Arg& element : b.graph().elements(b.graph().args(b.node())[position]))
    operands.push_back(element.is_value() ? std::optional(next++) : std::nullopt);
  return operands;
}

std::optional<size_t> FirstBuffer(const RuleBuilder& b, size_t position) {
  const auto args = b.graph().args(b.node());
  if (position >= args.size() || !args[position].is_span()) return std::nullopt;
  return b.NumOperandsBefore(position);
}

/// query `[b, h·r, s, d]`, key and value `[b, h, t, d]`, of which each head serves r query heads;
/// results, or gradients, of these shapes. Batch and heads are free; every query needs all keys.
Status Flex(RuleBuilder& b) {
  STRATA_TRY(const FlexNode flex, ReadFlexNode(b.graph(), b.node()));
  constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kBeforeScale = 2, kBeforeMaskBuffers = 4;
  const std::vector<DimId> query(b.operand_sizes(kQuery).begin(), b.operand_sizes(kQuery).end());
  const DimId key_heads = b.operand_sizes(kKey)[1];
  const int batch = b.operand_factor(kQuery, 0);
  const std::vector<int> heads = b.NewHeads(query[1], key_heads);

  const auto place = [&](FactorDims& tensor, bool is_key) {
    for (size_t dim = 2; dim < tensor.size(); ++dim)
      b.MakeWhole(tensor[dim][0]);
    tensor[0] = {batch};
    tensor[1] = is_key ? std::vector<int>{heads[0]} : heads;
  };
  for (size_t i = 0; i < flex.tensors.size(); ++i)
    place(b.rule().operands[i], i == kKey || i == kValue);
  for (size_t i = 0; i < b.num_results(); ++i)
    if (!b.rule().results[i].empty())
      place(b.rule().results[i], flex.is_backward && (i == kKey || i == kValue));

  FlexFactors factors(b, batch, heads);
  const size_t mask_position = flex.is_backward ? 9 : 4;
  for (const auto& operand : OperandsOf(b, mask_position))
    if (operand && b.operand_sizes(*operand).size() >= 2)
      factors.Blocks(b.rule().operands[*operand], b.operand_sizes(*operand), query[0], query[1]);
  const auto scores = FirstBuffer(b, mask_position + kBeforeScale + 1);
  STRATA_RETURN_IF_ERROR(factors.AddBody(flex.score_mod, FlexRole::kScore, scores));
  if (flex.is_backward)
    STRATA_RETURN_IF_ERROR(factors.AddBody(flex.joint_graph, FlexRole::kJoint, scores));
  return factors.AddBody(flex.mask_mod, FlexRole::kMask,
                         FirstBuffer(b, mask_position + kBeforeMaskBuffers));
}

/// (mask_mod, [rows or 1, heads or 1, …], buffers, device) → tensors `[rows or 1, heads or 1, …]`
Status BlockMask(RuleBuilder& b) {
  const auto body = BodyNamedBy(b.graph(), b.graph().args(b.node())[0]);
  if (!body) return Error(ErrorCode::kUnsupported, "a block mask must name its body");
  const std::vector<DimId> sizes(b.result_sizes(0).begin(), b.result_sizes(0).end());
  const int batch = b.NewFactor(sizes[0]), heads = b.NewFactor(sizes[1]);
  FlexFactors factors(b, batch, {heads});
  for (size_t i = 0; i < b.num_results(); ++i)
    if (!b.rule().results[i].empty())
      factors.Blocks(b.rule().results[i], b.result_sizes(i), sizes[0], sizes[1]);
  b.rule().size_lists = {1};
  return factors.AddBody(*body, FlexRole::kMask, FirstBuffer(b, 2));
}

constexpr RuleEntry kFlexRules[] = {
    {"create_block_mask", BlockMask},
    {"flex_attention", Flex},
    {"flex_attention_backward", Flex},
};

}  // namespace

std::span<const RuleEntry> FlexRules() {
  return kFlexRules;
}

}  // namespace strata
