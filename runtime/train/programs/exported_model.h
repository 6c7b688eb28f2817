#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/folder.h"
#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/files/safetensors.h"

namespace strata {

/// A tensor with bytes of its own.
struct OwnedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// REQUIRES: IsFloat(tensor.dtype).
OwnedTensor CopyTensor(const TensorView& tensor);

/// They borrow the values.
std::vector<TensorView> ViewsOf(const std::vector<OwnedTensor>& tensors);

/// A tensor of Strata's as files with Hugging Face's names store it; InitialWeights::Read reverses
/// it. REQUIRES: HasHuggingFaceName, and the shape that the model has.
std::vector<OwnedTensor> ExportToHuggingFace(const TrainConfig& config, const std::string& name,
                                             const std::vector<int64_t>& shape,
                                             std::span<const float> values);

/// The parameters of a model for use elsewhere: in Hugging Face's layout, in a narrower type.
class ExportedModel {
 public:
  struct Options {
    bool hugging_face = false;
    ExportType dtype = ExportType::kFloat32;
  };
  /// Copies the tensors, which are fp32 and Strata's.
  ExportedModel(const TrainConfig& config, const std::vector<TensorView>& model,
                const Options& options);

  /// Valid while this object lives.
  const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<OwnedTensor> tensors_;
  std::vector<std::vector<uint16_t>> narrow_;
  std::vector<TensorView> views_;
};

/// Writes the checkpoint `path`, a folder `step-N`, as Hugging Face's libraries read models:
/// `config.json`, and `model.safetensors` or shards of it with an index. Returns warnings: what the
/// architecture there cannot express. Errors: not a complete checkpoint, tensors that are not those
/// of the model that it describes.
Result<std::vector<std::string>> ExportHuggingFaceModel(const std::string& path, ExportType dtype,
                                                        const AtomicFolder& folder);

}  // namespace strata
