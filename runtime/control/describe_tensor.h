#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/json.h"
#include "base/result.h"

namespace strata {

/// What `print` shows of a tensor: type and statistics always, and one more thing.
struct TensorQuestion {
  enum class Kind : uint8_t {
    kStatistics,
    kHistogram,  ///< of the finite elements, in 16 equal intervals between minimum and maximum
    kSlice,      ///< the elements of `slice`, at most 256
    kImage,      ///< a matrix as means of at most 32 x 64 rectangles
  };
  Kind kind = Kind::kStatistics;
  std::string slice;  ///< `[0:4, 3, :]`
};

/// Reads what follows the name in `print NAME [0:4, :]`, `print NAME histogram`.
/// Errors: anything else.
Result<TensorQuestion> ParseTensorQuestion(std::string_view text);

struct TensorDescription {
  std::string text;  ///< lines, without a line end at the end
  std::string json;  ///< an object: dtype, sizes, statistics, and histogram, slice or image
};

/// Reads the tensor only. Errors: a slice that does not fit its sizes; an image of a tensor with
/// fewer than two dimensions.
Result<TensorDescription> DescribeTensor(const at::Tensor& tensor, const TensorQuestion& question);

}  // namespace strata
