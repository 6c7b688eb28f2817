#include <span>
#include <string_view>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// The `reduction` of the loss functions of ATen.
enum LossReduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

/// Log-probabilities `[n, classes, ..]` and labels `[n, ..]`: a rank has all classes of its labels,
/// which are independent, and summed.
Status NllOfPlaces(RuleBuilder& b) {
  const int64_t reduction = b.IntArg(3, "reduction").value_or(kMean);
  b.MakeWhole(b.operand_factor(0, 1));
  if (b.num_operands() > 2) b.MakeOperandWhole(2);
  for (size_t dim = 0; dim < b.operand_sizes(1).size(); ++dim) {
    const int place = b.operand_factor(0, dim == 0 ? 0 : dim + 1);
    b.SetOperand(1, dim, place);
    if (reduction == kMean) b.MakeWhole(place);
    if (reduction != kMean) b.MakeReduce(place, "sum");
    if (reduction == kNone) b.SetResult(0, dim, place);
  }
  return Ok();
}

/// (grad, log-probabilities, labels, [weights], total weight) → like log-probabilities
Status NllOfPlacesBackward(RuleBuilder& b) {
  const int64_t reduction = b.IntArg(4, "reduction").value_or(kMean);
  b.rule().operands[1] = b.rule().results[0];
  b.MakeWhole(b.result_factor(0, 1));
  if (b.num_operands() > 4) b.MakeOperandWhole(3);
  for (size_t dim = 0; dim < b.operand_sizes(2).size(); ++dim) {
    const int place = b.result_factor(0, dim == 0 ? 0 : dim + 1);
    b.SetOperand(2, dim, place);
    if (reduction == kNone) b.SetOperand(0, dim, place);
  }
  const int total_weight = static_cast<int>(b.num_operands()) - 1;
  if (reduction != kMean) b.rule().ignored = {total_weight};
  return Ok();
}

/// Rows are independent, and summed. A rank that has some classes knows the losses of their labels.
Status NllForward(RuleBuilder& b) {
  const int64_t reduction = b.IntArg(3, "reduction").value_or(kMean);
  const bool has_classes = b.operand_sizes(0).size() == 2;
  const int row = b.operand_factor(0, 0);
  const bool has_weights = b.num_operands() > 2;
  if (has_classes && (has_weights || reduction == kMean)) {
    b.MakeWhole(b.operand_factor(0, 1));
  } else if (has_classes) {
    b.MakeReduce(b.operand_factor(0, 1), "sum");
    b.rule().ends_with_zeros = true;  // no label says a class beyond the whole
  }
  b.SetOperand(1, 0, row);
  if (has_weights) b.MakeOperandWhole(2);
  if (!has_classes || reduction == kMean) {
    b.MakeWhole(row);
  } else if (reduction == kSum) {
    b.MakeReduce(row, "sum");
  } else {
    b.SetResult(0, 0, row);
    b.MakeReduce(row, "sum");
  }
  return Ok();
}

/// (grad, log-probabilities, labels, [weights], total weight) → like log-probabilities
Status NllBackward(RuleBuilder& b) {
  const int64_t reduction = b.IntArg(4, "reduction").value_or(kMean);
  const int row = b.operand_factor(1, 0);
  b.SetResult(0, 0, row);
  b.SetOperand(1, 1, b.result_factor(0, 1));
  if (b.num_operands() > 4) b.MakeWhole(b.result_factor(0, 1));
  b.SetOperand(2, 0, row);
  if (reduction == kNone) b.SetOperand(0, 0, row);
  if (b.num_operands() > 4) b.MakeOperandWhole(3);
  const int total_weight = static_cast<int>(b.num_operands()) - 1;
  if (reduction != kMean) b.rule().ignored = {total_weight};
  return Ok();
}

/// (grad, output) along the dimension of argument 2.
Status SoftmaxBackward(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(2, "dim", rank).value_or(rank - 1);
  for (size_t dim = 0; dim < rank; ++dim) {
    b.SetOperand(0, dim, b.result_factor(0, dim));
    b.SetOperand(1, dim, b.result_factor(0, dim));
  }
  if (b.base() == "_log_softmax_backward_data") {
    b.rule().joint = b.result_factor(0, along);
  } else {
    b.MakeWhole(b.result_factor(0, along));
  }
  b.rule().linear = {{0}};
  return Ok();
}

/// Elements of operands from `first` on belong to those of a shape; false: not of all of them.
bool ShareElements(RuleBuilder& b, size_t first, std::span<const DimId> shape,
                   const FactorDims& elements) {
  for (size_t operand = first; operand < b.num_operands(); ++operand) {
    if (!b.AreEqual(b.operand_sizes(operand), shape)) return false;
    b.rule().operands[operand] = elements;
  }
  return true;
}

/// (x, y, [weight, [weight of positives]]): a loss of each pair of elements.
Status PairLoss(RuleBuilder& b) {
  const size_t position = b.base() == "binary_cross_entropy"               ? 3
                          : b.base() == "binary_cross_entropy_with_logits" ? 4
                                                                           : 2;
  const int64_t reduction = b.IntArg(position, "reduction").value_or(kMean);
  const FactorDims elements = b.rule().operands[0];
  if (!ShareElements(b, 1, b.operand_sizes(0), elements)) {
    b.MakeAllWhole();
    return Ok();
  }
  if (reduction == kNone) b.rule().results[0] = elements;
  for (size_t dim = 0; dim < elements.size() && reduction != kNone; ++dim)
    b.MakeReduce(b.operand_factor(0, dim), reduction == kMean ? "avg" : "sum");
  return Ok();
}

/// (gradient, x, y, [weight]) → of x. That of a mean divides by the number of elements it sees.
Status PairLossBackward(RuleBuilder& b) {
  const size_t position = b.base() == "binary_cross_entropy_backward" ? 4 : 3;
  const int64_t reduction = b.IntArg(position, "reduction").value_or(kMean);
  const FactorDims elements = b.rule().results[0];
  const size_t first = reduction == kNone ? 0 : 1;
  if (!ShareElements(b, first, b.result_sizes(0), elements)) {
    b.MakeAllWhole();
    return Ok();
  }
  if (reduction == kMean) b.MakeResultWhole(0);
  b.rule().linear = {{0}};
  return Ok();
}

constexpr RuleEntry kLossRules[] = {
    {"_log_softmax_backward_data", SoftmaxBackward},
    {"_softmax_backward_data", SoftmaxBackward},
    {"binary_cross_entropy", PairLoss},
    {"binary_cross_entropy_backward", PairLossBackward},
    {"binary_cross_entropy_with_logits", PairLoss},
    {"huber_loss", PairLoss},
    {"huber_loss_backward", PairLossBackward},
    {"mse_loss", PairLoss},
    {"mse_loss_backward", PairLossBackward},
    {"nll_loss2d_backward", NllOfPlacesBackward},
    {"nll_loss2d_forward", NllOfPlaces},
    {"nll_loss_backward", NllBackward},
    {"nll_loss_forward", NllForward},
    {"smooth_l1_loss", PairLoss},
    {"smooth_l1_loss_backward", PairLossBackward},
    {"soft_margin_loss", PairLoss},
    {"soft_margin_loss_backward", PairLossBackward},
};

}  // namespace

std::span<const RuleEntry> LossRules() {
  return kLossRules;
}

}  // namespace strata
