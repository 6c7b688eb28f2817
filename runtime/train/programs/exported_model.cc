#include "runtime/train/programs/exported_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "runtime/config/course.h"
#include "runtime/files/tensor_files.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/files/hugging_face.h"
#include "runtime/train/files/hugging_face_config.h"
#include "runtime/train/programs/initial_weights.h"

namespace strata {
namespace {

constexpr int64_t kShardBytes = int64_t{5} << 30U;

/// Errors: a tensor that the model does not have, or has in another shape.
Status CheckTensor(const TrainConfig& config, const TensorView& tensor, const std::string& path) {
  const auto bad = [&](std::string_view why) {
    return Error("not a tensor of the model: {}: {}: {}; export a checkpoint that strata wrote",
                 path, OneLine(tensor.name), why);
  };
  if (!HasHuggingFaceName(config, tensor.name)) return bad("no name for it");
  if (!IsFloat(tensor.dtype)) return bad("its elements are not floating point");
  const HuggingFaceTensor theirs = ToHuggingFace(config, tensor.name);
  const bool has_experts = theirs.names.size() > 1 || tensor.shape.size() == 3;
  if (has_experts && (tensor.shape.size() != 3 || tensor.shape[0] != std::ssize(theirs.names))) {
    return bad("its experts are not those of the configuration");
  }
  if (theirs.paired_heads > 0 &&
      (tensor.shape.size() != 2 || tensor.shape[0] % (2 * theirs.paired_heads) != 0)) {
    return bad("its heads are not those of the configuration");
  }
  return Ok();
}

/// `model.safetensors`, or shards and their index.
Status WriteModel(std::vector<TensorView> tensors, const AtomicFolder& folder) {
  std::ranges::sort(tensors, {}, &TensorView::name);
  std::vector<std::vector<TensorView>> shards(1);
  int64_t bytes = 0, total = 0;
  for (TensorView& tensor : tensors) {
    const int64_t size = std::ssize(tensor.bytes);
    if (bytes > 0 && bytes + size > kShardBytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += size;
    total += size;
    shards.back().push_back(std::move(tensor));
  }
  std::string text;
  JsonWriter index(text);
  index.BeginObject().Key("metadata").BeginObject().Field("total_size", total).EndObject();
  index.Key("weight_map").BeginObject();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? "model.safetensors"
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    for (const TensorView& tensor : shards[i])
      index.Break(2).Field(tensor.name, name);
    STRATA_TRY(const std::string path, folder.PathOf(name));
    STRATA_RETURN_IF_ERROR(WriteSafetensors(path, std::move(shards[i]), {{"format", "pt"}}));
  }
  index.EndObject().EndObject();
  return shards.size() == 1 ? Ok() : folder.Write("model.safetensors.index.json", text + "\n");
}

}  // namespace

OwnedTensor CopyTensor(const TensorView& tensor) {
  OwnedTensor copy{.name = tensor.name, .shape = tensor.shape, .values = {}};
  copy.values.resize(tensor.bytes.size() / ByteSize(tensor.dtype));
  ReadFloats(tensor, copy.values);
  return copy;
}

std::vector<TensorView> ViewsOf(const std::vector<OwnedTensor>& tensors) {
  std::vector<TensorView> views;
  for (const OwnedTensor& tensor : tensors) {
    views.push_back({.name = tensor.name,
                     .dtype = TensorDtype::kF32,
                     .shape = tensor.shape,
                     .bytes = std::as_bytes(std::span(tensor.values))});
  }
  return views;
}

std::vector<OwnedTensor> ExportToHuggingFace(const TrainConfig& config, const std::string& name,
                                             const std::vector<int64_t>& shape,
                                             std::span<const float> values) {
  const HuggingFaceTensor tensor = ToHuggingFace(config, name);
  std::vector<OwnedTensor> result;
  if (tensor.names.size() > 1 || shape.size() == 3) {
    const size_t part = values.size() / tensor.names.size();
    for (size_t i = 0; i < tensor.names.size(); ++i) {
      const std::span<const float> matrix = values.subspan(i * part, part);
      result.push_back({.name = tensor.names[i],
                        .shape = {shape.begin() + 1, shape.end()},
                        .values = {matrix.begin(), matrix.end()}});
    }
    return result;
  }
  result.push_back(
      {.name = tensor.names[0], .shape = shape, .values = {values.begin(), values.end()}});
  if (tensor.paired_heads > 0) {
    PermuteRows(values, tensor.paired_heads, shape[0], /*to_pairs=*/false, result[0].values);
  }
  return result;
}

ExportedModel::ExportedModel(const TrainConfig& config, const std::vector<TensorView>& model,
                             const Options& options) {
  for (const TensorView& tensor : model) {
    OwnedTensor ours = CopyTensor(tensor);
    if (!options.hugging_face) {
      tensors_.push_back(std::move(ours));
      continue;
    }
    for (OwnedTensor& theirs : ExportToHuggingFace(config, ours.name, ours.shape, ours.values))
      tensors_.push_back(std::move(theirs));
  }
  views_ = ViewsOf(tensors_);
  if (options.dtype == ExportType::kFloat32) return;
  const bool is_half = options.dtype == ExportType::kFloat16;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    narrow_.emplace_back();
    std::ranges::transform(tensors_[i].values, std::back_inserter(narrow_.back()),
                           is_half ? ToHalf : ToBFloat16);
    views_[i].dtype = is_half ? TensorDtype::kF16 : TensorDtype::kBF16;
    views_[i].bytes = std::as_bytes(std::span(narrow_.back()));
  }
}

Result<std::vector<std::string>> ExportHuggingFaceModel(const std::string& path, ExportType dtype,
                                                        const AtomicFolder& folder) {
  STRATA_TRY(const Checkpoint checkpoint, OpenCheckpoint(path));
  if (checkpoint.info.is_hugging_face) {
    return Error("tensors have Hugging Face's names already: {}: use them as they are", path);
  }
  STRATA_TRY(const TrainConfig config, ModelOfCourse(checkpoint.info.config));
  HuggingFaceLimits limits = LimitsOfHuggingFace(config);
  std::vector<TensorView> model;
  int64_t left_out = 0;
  for (const TensorView* tensor : checkpoint.model.tensors()) {
    STRATA_RETURN_IF_ERROR(CheckTensor(config, *tensor, path));
    const bool is_known =
        limits.missing_tensor.empty() || !tensor->name.ends_with(limits.missing_tensor);
    const bool is_zero =
        std::ranges::all_of(tensor->bytes, [](std::byte b) { return b == std::byte{0}; });
    if (is_known) {
      model.push_back(*tensor);
    } else if (!is_zero) {
      ++left_out;
    }
  }
  if (left_out > 0) {
    limits.warnings.push_back(
        fmt::format("{} has no {}: {} tensors are left out, its router chooses other experts",
                    ArchitectureOf(config), limits.missing_tensor, left_out));
  }
  const ExportedModel exported(config, model, {.hugging_face = true, .dtype = dtype});
  STRATA_RETURN_IF_ERROR(WriteModel(exported.views(), folder));
  STRATA_RETURN_IF_ERROR(folder.Write("config.json", HuggingFaceConfig(config, dtype)));
  return std::move(limits.warnings);
}

}  // namespace strata
