#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/files/safetensors.h"

namespace strata {

/// Tensors of one safetensors file, or of a folder of them: with `model.safetensors.index.json`
/// those shards that it names, without it every `*.safetensors`. Opened without copies.
class TensorFiles {
 public:
  /// Errors: as of SafetensorsFile; an invalid index, or one that names a file or tensor that is
  /// not there; a tensor that two files hold; a folder without such files.
  static Result<TensorFiles> Open(const std::string& path);

  /// Those of `files`; `path` names them together in errors.
  static Result<TensorFiles> OpenAll(std::string path, const std::vector<std::string>& files);

  /// Sorted by name.
  const std::vector<const TensorView*>& tensors() const { return tensors_; }
  /// Null if there is none of this name.
  const TensorView* Find(std::string_view name) const;
  /// As given to `Open`.
  const std::string& path() const { return path_; }

 private:
  TensorFiles() = default;

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::vector<const TensorView*> tensors_;
};

/// Elements of a tensor as fp32, from F32, BF16, F16 or F64 (rounded). REQUIRES:
/// IsFloat(tensor.dtype); `out` has a place per element.
void ReadFloats(const TensorView& tensor, std::span<float> out);
bool IsFloat(TensorDtype dtype);

// Bits of BF16 and F16, rounded to the nearest, ties to even; a NaN stays one.
uint16_t ToBFloat16(float value);
uint16_t ToHalf(float value);

}  // namespace strata
