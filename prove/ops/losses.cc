#include <string>
#include <variant>

#include <fmt/format.h>

#include "base/random.h"
#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

// Reductions of nll_loss, as ATen numbers them.
constexpr int64_t kMean = 1, kSum = 2;

/// The weights of the rows: of each row's class, 0 where the label is ignored.
struct Rows {
  std::vector<int64_t> labels;  ///< -1: ignored or out of range
  std::vector<Residue> weights;
  Residue total = 0;
};

/// Arguments weight, reduction and ignore_index stand at `first`.
Result<Rows> ReadRows(const Call& call, const Tensor& target, int64_t classes, size_t first) {
  Rows rows;
  std::vector<uint64_t> weights;
  if (call.Find(first, "weight") != nullptr) {
    STRATA_TRY(const Tensor weight, call.TensorAt(first, "weight"));
    weights = weight.Read();
  }
  const int64_t ignored = call.IntegerAt(first + 2, "ignore_index", -100);
  for (const uint64_t word : target.Read()) {
    const auto label = static_cast<int64_t>(word);
    const bool is_valid = label != ignored && label >= 0 && label < classes;
    rows.labels.push_back(is_valid ? label : -1);
    Residue weight = is_valid ? 1 : 0;
    if (is_valid && !weights.empty()) weight = weights[static_cast<size_t>(label)];
    if (!is_valid && label != ignored) weight = kUndefined;  // ATen would fail
    rows.weights.push_back(weight);
    rows.total = prove::Add(rows.total, weight);
  }
  return rows;
}

/// nll_loss_forward(self, target, weight, reduction, ignore_index) -> (output, total_weight)
Result<Values> EvaluateLossForward(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));  // [rows, classes]
  STRATA_TRY(const Tensor target, call.TensorAt(1));
  if (a.dim() != 2) return Error(ErrorCode::kUnsupported, "a loss of one row");
  STRATA_TRY(const Rows rows, ReadRows(call, target, a.size(1), 2));
  const std::vector<uint64_t> words = a.Read();
  std::vector<Residue> losses;
  Residue sum = 0;
  for (size_t row = 0; row < rows.labels.size(); ++row) {
    Residue loss = rows.weights[row];
    if (rows.labels[row] >= 0) {
      const size_t at =
          row * static_cast<size_t>(a.size(1)) + static_cast<size_t>(rows.labels[row]);
      loss = prove::Mul(loss, Neg(words[at]));
    }
    losses.push_back(loss);
    sum = prove::Add(sum, loss);
  }
  const int64_t reduction = call.IntegerAt(3, "reduction", kMean);
  const Tensor total(Domain::kFloat, {}, rows.total);
  if (reduction == kMean) sum = prove::Div(sum, rows.total);
  if (reduction == kMean || reduction == kSum)
    return Values{Tensor(Domain::kFloat, {}, sum), total};
  return Values{OfWords(Domain::kFloat, {a.size(0)}, std::move(losses)), total};
}

/// nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
Result<Values> EvaluateLossBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1));
  STRATA_TRY(const Tensor target, call.TensorAt(2));
  if (a.dim() != 2) return Error(ErrorCode::kUnsupported, "a loss of one row");
  STRATA_TRY(const Rows rows, ReadRows(call, target, a.size(1), 3));
  STRATA_TRY(const Residue total, call.NumberAt(6, "total_weight", 1));
  const int64_t reduction = call.IntegerAt(4, "reduction", kMean);
  Tensor result(Domain::kFloat, a.sizes(), 0);
  const std::vector<uint64_t> gradients = gradient.Read();
  for (size_t row = 0; row < rows.labels.size(); ++row) {
    if (rows.labels[row] < 0) continue;
    const size_t at = row * static_cast<size_t>(a.size(1)) + static_cast<size_t>(rows.labels[row]);
    Residue slope = Neg(prove::Mul(rows.weights[row], gradients[gradients.size() == 1 ? 0 : row]));
    if (reduction == kMean) slope = prove::Div(slope, total);
    result.storage()->words[at] = slope;
  }
  return Values{std::move(result)};
}

/// mse_loss(self, target, reduction) -> (self - target)²
Result<Values> EvaluateSquaredError(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor target, call.TensorAt(1));
  STRATA_TRY(const Tensor difference, Sub(a, target));
  STRATA_TRY(Tensor squares, Mul(difference, difference));
  const int64_t reduction = call.IntegerAt(2, "reduction", kMean);
  if (reduction != kMean && reduction != kSum) return Values{std::move(squares)};
  Residue sum = 0;
  for (const uint64_t word : squares.Read())
    sum = prove::Add(sum, word);
  if (reduction == kMean) sum = prove::Div(sum, FromInteger(squares.numel()));
  return Values{Tensor(Domain::kFloat, {}, sum)};
}

/// mse_loss_backward(grad_output, self, target, reduction) -> 2 g (self - target)
Result<Values> EvaluateSquaredErrorBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1));
  STRATA_TRY(const Tensor target, call.TensorAt(2));
  STRATA_TRY(const Tensor difference, Sub(a, target));
  STRATA_TRY(const Tensor slope, Mul(difference, gradient));
  Residue factor = FromInteger(2);
  if (call.IntegerAt(3, "reduction", kMean) == kMean)
    factor = prove::Div(factor, FromInteger(difference.numel()));
  return Values{Scale(slope, factor)};
}

/// A function of the elements of all operands from `first` on, which broadcast, and of what the
/// call states. Only this is known of it.
Result<Tensor> OfElements(Call& call, size_t first) {
  std::string stated(call.op().substr(0, call.op().find('.', call.op().find('.') + 1)));
  for (const Argument& argument : call.args())
    if (const auto* number = std::get_if<double>(&argument.value))
      stated += fmt::format(" {}", *number);
  STRATA_TRY(Tensor result, call.TensorAt(first));
  result = Apply(FunctionKey(stated), ConvertTo(result, Domain::kFloat));
  for (size_t i = first + 1; i < call.num_args(); ++i) {
    if (!call.args()[i].is_tensor()) continue;
    STRATA_TRY(const Tensor other, call.TensorAt(i));
    STRATA_TRY(result, Map(result, ConvertTo(other, Domain::kFloat), Domain::kFloat,
                           [&](Residue x, Residue y) { return Uninterpreted(Mix(i ^ x), y); }));
  }
  return result;
}

/// A loss of each element, summed or averaged. `kReduction`: where the reduction stands.
template <size_t kReduction>
Result<Values> EvaluatePairLoss(Call& call) {
  const int64_t reduction = call.IntegerAt(kReduction, "reduction", kMean);
  STRATA_TRY(Tensor losses, OfElements(call, 0));
  if (reduction != kMean && reduction != kSum) return Values{std::move(losses)};
  Residue sum = 0;
  for (const Residue loss : losses.Read())
    sum = prove::Add(sum, loss);
  if (reduction == kMean) sum = prove::Div(sum, FromInteger(losses.numel()));
  return Values{Tensor(Domain::kFloat, {}, sum)};
}

/// (gradient, x, y, …): the slope of each element, times the gradient.
template <size_t kReduction>
Result<Values> EvaluatePairLossBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor slopes, OfElements(call, 1));
  STRATA_TRY(Tensor result, Mul(slopes, gradient));
  if (call.IntegerAt(kReduction, "reduction", kMean) == kMean)
    result = Scale(result, Inverse(FromInteger(slopes.numel())));
  return Values{std::move(result)};
}

constexpr OpDefinition kLossesOps[] = {
    {"aten.binary_cross_entropy", EvaluatePairLoss<3>},
    {"aten.binary_cross_entropy_backward", EvaluatePairLossBackward<4>},
    {"aten.binary_cross_entropy_with_logits", EvaluatePairLoss<4>},
    {"aten.huber_loss", EvaluatePairLoss<2>},
    {"aten.huber_loss_backward", EvaluatePairLossBackward<3>},
    {"aten.mse_loss", EvaluateSquaredError},
    {"aten.mse_loss_backward", EvaluateSquaredErrorBackward},
    {"aten.nll_loss_backward", EvaluateLossBackward},
    {"aten.nll_loss_forward", EvaluateLossForward},
    {"aten.smooth_l1_loss", EvaluatePairLoss<2>},
    {"aten.smooth_l1_loss_backward", EvaluatePairLossBackward<3>},
    {"aten.soft_margin_loss", EvaluatePairLoss<2>},
    {"aten.soft_margin_loss_backward", EvaluatePairLossBackward<3>},
};

}  // namespace

std::span<const OpDefinition> LossOps() {
  return kLossesOps;
}

}  // namespace strata::prove
