#include "prove/evaluation/collective_results.h"

#include <algorithm>

#include "prove/evaluation/shared_calls.h"
#include "prove/ops/definitions.h"
#include "prove/ops/elementwise.h"
#include "prove/values/call.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// The largest of the elements.
Result<Tensor> Largest(std::span<const Tensor> parts) {
  Tensor largest = parts[0].Copy();
  for (const Tensor& part : parts.subspan(1)) {
    Call call("aten.maximum.default", {Argument{largest}, Argument{part}}, {}, 1);
    STRATA_TRY(const Values values, FindDefinition("aten.maximum.default")->evaluate(call));
    largest = std::get<Tensor>(values[0]);
  }
  return largest;
}

/// Summands that are all shifted alike have a sum that is shifted so.
Status ShiftSum(std::span<const Tensor> parts, Tensor& sum) {
  std::vector<Tensor> scaled;
  for (const Tensor& part : parts) {
    const Laws* laws = part.laws();
    if (laws == nullptr || laws->scaled == nullptr || laws->shift == nullptr) return Ok();
    if (!SameValue(Value(*laws->shift), Value(*parts[0].laws()->shift))) return Ok();
    scaled.push_back(*laws->scaled);
  }
  Tensor total = scaled[0].Copy();
  for (const Tensor& part : std::span(scaled).subspan(1)) {
    STRATA_TRY(total, Add(total, part));
  }
  Laws shifted;
  shifted.scaled = std::make_shared<const Tensor>(std::move(total));
  shifted.shift = parts[0].laws()->shift;
  sum.SetLaws(std::move(shifted));
  return Ok();
}

Result<Tensor> Reduced(std::span<const Tensor> parts, std::string_view reduce) {
  if (reduce == "max") return Largest(parts);
  if (reduce != "sum" && reduce != "avg")
    return Error(ErrorCode::kUnsupported, "a reduction by {}", reduce);
  Tensor sum = parts[0].Copy();
  for (const Tensor& part : parts.subspan(1)) {
    STRATA_TRY(sum, Add(sum, part));
  }
  if (reduce == "sum") {
    STRATA_RETURN_IF_ERROR(ShiftSum(parts, sum));
    return sum;
  }
  const Residue inverse = Inverse(FromInteger(static_cast<int64_t>(parts.size())));
  return Map(sum, sum.domain(), [&](uint64_t x) { return Mul(x, inverse); });
}

}  // namespace

Tensor Concatenated(std::span<const Tensor> parts) {
  Sizes sizes = parts[0].sizes();
  sizes[0] = 0;
  std::vector<uint64_t> words;
  for (const Tensor& part : parts) {
    const std::vector<uint64_t> more = part.Read();
    words.insert(words.end(), more.begin(), more.end());
    sizes[0] += part.sizes()[0];
  }
  return OfWords(parts[0].domain(), std::move(sizes), std::move(words));
}

Result<Tensor> CollectiveResults::Of(std::span<const Tensor> operands, std::string_view reduction) {
  const auto same = std::ranges::find_if(known_, [&](const Known& known) {
    return known.reduction == reduction &&
           std::ranges::equal(known.operands, operands,
                              [](const Tensor& a, const Tensor& b) { return IsSameMemory(a, b); });
  });
  if (same != known_.end()) return same->result;
  const auto gather = [](std::span<const Tensor> parts) -> Result<Tensor> {
    return Concatenated(parts);
  };
  STRATA_TRY(Tensor result,
             reduction.empty() ? MovedWithLaws(operands, gather) : Reduced(operands, reduction));
  known_.push_back({.operands = std::vector<Tensor>(operands.begin(), operands.end()),
                    .reduction = reduction,
                    .result = result});
  return result;
}

}  // namespace strata::prove
