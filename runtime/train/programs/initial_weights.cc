#include "runtime/train/programs/initial_weights.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "runtime/train/files/hugging_face.h"

namespace strata {
namespace {

/// torchtitan's other names of the same tensors, by version.
std::string NewerName(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
      {"moe.experts.w1", "moe.routed_experts.inner_experts.w1_EFD"},
      {"moe.experts.w2", "moe.routed_experts.inner_experts.w2_EDF"},
      {"moe.experts.w3", "moe.routed_experts.inner_experts.w3_EFD"},
      {"moe.expert_bias", "moe.expert_bias_E"},
  };
  for (const auto& [old_end, new_end] : kRenamed) {
    if (name.ends_with(old_end)) {
      return fmt::format("{}{}", name.substr(0, name.size() - old_end.size()), new_end);
    }
  }
  return std::string(name);
}

bool HasHuggingFaceNames(const TensorFiles& files) {
  return files.Find("model.embed_tokens.weight") != nullptr ||
         files.Find("model.norm.weight") != nullptr;
}

constexpr std::string_view kEmbedding = "tok_embeddings.weight", kHead = "lm_head.weight";

bool IsSame(const TensorView& tensor, const TensorView* other) {
  return other != nullptr && tensor.dtype == other->dtype && tensor.shape == other->shape &&
         std::ranges::equal(tensor.bytes, other->bytes);
}

/// Where `spec`'s values are: names, each with the shape that it must have.
struct Source {
  HuggingFaceTensor tensor;
  std::vector<int64_t> shape;
};

Source Locate(const TensorFiles& files, bool is_hugging_face, const TrainConfig& config,
              const ParameterSpec& spec) {
  if (is_hugging_face) {
    Source source{.tensor = ToHuggingFace(config, spec.name), .shape = spec.shape};
    if (spec.shape.size() == 3) source.shape.erase(source.shape.begin());
    return source;
  }
  const bool has_old_name = files.Find(spec.name) != nullptr;
  const std::string newer = NewerName(spec.name);
  const bool is_newer = !has_old_name && files.Find(newer) != nullptr;
  return {.tensor = {.names = {is_newer ? newer : spec.name}}, .shape = spec.shape};
}

/// What does not fit, by kind, with up to a few names of each.
class Findings {
 public:
  void Add(std::string_view kind, std::vector<std::string> names) {
    if (names.empty()) return;
    counts_.push_back(fmt::format("{} {}", names.size(), kind));
    details_.push_back(fmt::format("{}: {}", kind, Enumerate(names)));
  }
  Status ToStatus(const std::string& path) const {
    if (counts_.empty()) return Ok();
    return Error(
        "tensors do not fit the model ({}): {}: {}; give the parameters of this configuration",
        fmt::join(counts_, ", "), path, fmt::join(details_, "; "));
  }

 private:
  std::vector<std::string> counts_, details_;
};

Status Check(const TensorFiles& files, bool is_hugging_face, const TrainConfig& config,
             std::span<const ParameterSpec> specs) {
  std::vector<std::string> known, missing, misshapen, unexpected, untied;
  for (const ParameterSpec& spec : specs) {
    const Source source = Locate(files, is_hugging_face, config, spec);
    for (const std::string& name : source.tensor.names) {
      known.push_back(name);
      const TensorView* tensor = files.Find(name);
      if (tensor == nullptr) {
        if (!source.tensor.is_optional) missing.push_back(name);
      } else if (tensor->shape != source.shape || IsFloat(tensor->dtype) == spec.is_integer) {
        const TensorDtype dtype = spec.is_integer ? TensorDtype::kI64 : TensorDtype::kF32;
        misshapen.push_back(fmt::format("{} is {}, not {}", name,
                                        DescribeType(tensor->dtype, tensor->shape),
                                        DescribeType(dtype, source.shape)));
      }
    }
  }
  std::ranges::sort(known);
  for (const TensorView* tensor : files.tensors()) {
    if (std::ranges::binary_search(known, tensor->name)) continue;
    if (is_hugging_face && IsIgnoredHuggingFace(config, tensor->name)) continue;
    if (config.enable_weight_tying && tensor->name == kEmbedding) {
      // torchtitan lists both names of the one tensor.
      if (!IsSame(*tensor, files.Find(kHead)))
        untied.push_back(fmt::format("{} is not {}, which it is tied to", kEmbedding, kHead));
      continue;
    }
    unexpected.push_back(OneLine(tensor->name));
  }
  Findings findings;
  findings.Add("missing", std::move(missing));
  findings.Add("misshapen", std::move(misshapen));
  findings.Add("unexpected", std::move(unexpected));
  findings.Add("not tied", std::move(untied));
  return findings.ToStatus(files.path());
}

}  // namespace

void PermuteRows(std::span<const float> from, int64_t heads, int64_t rows, bool to_pairs,
                 std::span<float> to) {
  const size_t width = from.size() / static_cast<size_t>(rows);
  const int64_t head_rows = rows / heads;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_head = row % head_rows;
    const int64_t half = in_head * 2 / head_rows;
    const int64_t in_pairs = row - in_head + 2 * (in_head - half * (head_rows / 2)) + half;
    const auto source = static_cast<size_t>(to_pairs ? row : in_pairs) * width;
    const auto target = static_cast<size_t>(to_pairs ? in_pairs : row) * width;
    std::ranges::copy(from.subspan(source, width), to.begin() + static_cast<ptrdiff_t>(target));
  }
}

Result<InitialWeights> InitialWeights::Match(TensorFiles files, const TrainConfig& config,
                                             std::span<const ParameterSpec> specs) {
  const bool is_hugging_face = !config.HasOwnModel() && HasHuggingFaceNames(files);
  STRATA_RETURN_IF_ERROR(Check(files, is_hugging_face, config, specs));
  return InitialWeights(std::move(files), config, is_hugging_face);
}

void InitialWeights::Read(const ParameterSpec& spec, std::span<float> out) const {
  const Source source = Locate(files_, is_hugging_face_, config_, spec);
  const size_t part = out.size() / source.tensor.names.size();
  for (size_t i = 0; i < source.tensor.names.size(); ++i) {
    const std::span<float> target = out.subspan(i * part, part);
    const TensorView* tensor = files_.Find(source.tensor.names[i]);
    if (tensor == nullptr) {
      std::ranges::fill(target, 0.0F);
    } else {
      ReadFloats(*tensor, target);
    }
  }
  if (source.tensor.paired_heads > 0) {
    const std::vector<float> halves(out.begin(), out.end());
    PermuteRows(halves, source.tensor.paired_heads, spec.shape[0], /*to_pairs=*/true, out);
  }
}

}  // namespace strata
