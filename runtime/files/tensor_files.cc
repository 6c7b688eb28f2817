#include "runtime/files/tensor_files.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <set>
#include <simdjson.h>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";

struct Index {
  std::set<std::string> files;
  std::vector<std::string> tensors;
};

Result<Index> ReadIndex(const std::string& path) {
  STRATA_TRY(const std::string text, ReadFile(path));
  const auto bad = [&path](std::string_view why) {
    return Error(ErrorCode::kCorrupt, "not an index of safetensors files: {}: {}; make it anew",
                 path, why);
  };
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  const simdjson::padded_string padded(text);
  simdjson::dom::element root;
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) return bad("it is not valid JSON");
  if (root["weight_map"].get(map) != simdjson::SUCCESS) return bad("it has no 'weight_map'");
  Index index;
  for (const auto& [tensor, file] : map) {
    std::string_view name;
    if (file.get(name) != simdjson::SUCCESS || name.empty() ||
        name.find('/') != std::string_view::npos) {
      return bad(fmt::format("tensor '{}' has no file of this folder", OneLine(tensor)));
    }
    index.files.emplace(name);
    index.tensors.emplace_back(tensor);
  }
  return index;
}

/// Names of the folder's safetensors files.
std::set<std::string> ListShards(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kSuffix)) names.insert(name);
  }
  return names;
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16U;
  const uint32_t exponent = (half >> 10U) & 0x1fU;
  const uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {  // zero, or subnormal: mantissa · 2^-24 is exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 112U;
  return std::bit_cast<float>(sign | wide << 23U | mantissa << 13U);
}

template <class Stored, class Convert>
void ConvertEach(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(stored);
  }
}

}  // namespace

Result<TensorFiles> TensorFiles::Open(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return OpenAll(path, {path});

  const std::string index_path = (fs::path(path) / kIndexName).string();
  Index index;
  if (fs::exists(index_path, error)) {
    STRATA_TRY(index, ReadIndex(index_path));
  } else {
    index.files = ListShards(path);
  }
  if (index.files.empty()) {
    return Error(ErrorCode::kNotFound, "no safetensors files: {}: name a folder that holds some",
                 path);
  }
  std::vector<std::string> files;
  for (const std::string& name : index.files)
    files.push_back((fs::path(path) / name).string());
  STRATA_TRY(TensorFiles result, OpenAll(path, files));
  for (const std::string& tensor : index.tensors) {
    if (result.Find(tensor) != nullptr) continue;
    return Error(ErrorCode::kCorrupt,
                 "no tensor '{}': {}: its index names it; copy the folder anew", OneLine(tensor),
                 path);
  }
  return result;
}

Result<TensorFiles> TensorFiles::OpenAll(std::string path, const std::vector<std::string>& files) {
  TensorFiles result;
  result.path_ = std::move(path);
  for (const std::string& name : files) {
    STRATA_TRY(SafetensorsFile file, SafetensorsFile::Open(name));
    result.files_.push_back(std::move(file));
  }
  for (const SafetensorsFile& file : result.files_) {
    for (const TensorView& tensor : file.tensors())
      result.tensors_.push_back(&tensor);
  }
  std::ranges::sort(result.tensors_, {}, &TensorView::name);
  const auto twice = std::ranges::adjacent_find(result.tensors_, {}, &TensorView::name);
  if (twice == result.tensors_.end()) return result;
  return Error(ErrorCode::kCorrupt, "tensor '{}' is in two files: {}: keep one of them",
               OneLine((*twice)->name), result.path_);
}

const TensorView* TensorFiles::Find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &TensorView::name);
  return found != tensors_.end() && (*found)->name == name ? *found : nullptr;
}

bool IsFloat(TensorDtype dtype) {
  return dtype == TensorDtype::kF32 || dtype == TensorDtype::kBF16 || dtype == TensorDtype::kF16 ||
         dtype == TensorDtype::kF64;
}

void ReadFloats(const TensorView& tensor, std::span<float> out) {
  STRATA_CHECK(IsFloat(tensor.dtype) && tensor.bytes.size() == out.size() * ByteSize(tensor.dtype),
               "{}", tensor.name);
  switch (tensor.dtype) {
    case TensorDtype::kF32:
      std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return;
    case TensorDtype::kBF16:
      ConvertEach<uint16_t>(tensor.bytes, out, [](uint16_t bits) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16U);
      });
      return;
    case TensorDtype::kF16:
      ConvertEach<uint16_t>(tensor.bytes, out, HalfToFloat);
      return;
    default:
      ConvertEach<double>(tensor.bytes, out, [](double x) { return static_cast<float>(x); });
      return;
  }
}

uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return 0x7fc0U;
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

uint16_t ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16U) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (value != value) return 0x7e00U;
  constexpr uint32_t kInfinityFrom = 0x477ff000U;  // 65520
  constexpr uint32_t kNormalFrom = 0x38800000U;    // 2^-14
  uint32_t half = 0x7c00U;
  if (magnitude < kNormalFrom) {  // The last place of 0.5 is that of a subnormal: 2^-24.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else if (magnitude < kInfinityFrom) {
    half = (magnitude - (112U << 23U) + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace strata
