#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// What ranks have of one collective, computed once for ranks that read the same operands.
class CollectiveResults {
 public:
  /// The sum, mean or maximum of the operands; "": one after the other along dimension 0. Errors:
  /// another reduction, or operands that do not fit together.
  Result<Tensor> Of(std::span<const Tensor> operands, std::string_view reduction);

 private:
  struct Known {
    std::vector<Tensor> operands;
    std::string_view reduction;
    Tensor result;
  };
  std::vector<Known> known_;
};

/// One after the other along dimension 0.
Tensor Concatenated(std::span<const Tensor> parts);

/// What `move` makes of tensors whose elements it only moves: the laws that hold for all of them
/// hold for it, too.
template <class Move>
Result<Tensor> MovedWithLaws(std::span<const Tensor> parts, const Move& move) {
  STRATA_TRY(Tensor moved, move(parts));
  Laws kept;
  bool has_any = false;
  for (const Law law : kLaws) {
    std::vector<Tensor> known;
    for (const Tensor& part : parts)
      if (const Laws* laws = part.laws(); laws != nullptr && laws->*law != nullptr)
        known.push_back(*(laws->*law));
    if (known.size() != parts.size()) continue;
    STRATA_TRY(Tensor of_law, MovedWithLaws(std::span<const Tensor>(known), move));
    kept.*law = std::make_shared<const Tensor>(std::move(of_law));
    has_any = true;
  }
  if (has_any) moved.SetLaws(std::move(kept));
  return moved;
}

}  // namespace strata::prove
