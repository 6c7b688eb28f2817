#include "runtime/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <simdjson.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace strata {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kLengthBytes = 8;
// The limit of the format's reference implementation.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// As in torch; keeps messages about a hostile shape short.
constexpr size_t kMaxRank = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct DtypeInfo {
  std::string_view name;
  size_t bytes;
};

// In the order of TensorDtype.
constexpr std::array<DtypeInfo, 15> kDtypes = {{{"BOOL", 1},
                                                {"U8", 1},
                                                {"I8", 1},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1},
                                                {"U16", 2},
                                                {"I16", 2},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"U32", 4},
                                                {"I32", 4},
                                                {"F32", 4},
                                                {"U64", 8},
                                                {"I64", 8},
                                                {"F64", 8}}};

std::optional<TensorDtype> FindDtype(std::string_view name) {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].name == name) return static_cast<TensorDtype>(i);
  }
  return std::nullopt;
}

/// Bytes of a tensor, or nothing when they cannot be counted.
std::optional<uint64_t> CountBytes(TensorDtype dtype, std::span<const int64_t> shape) {
  uint64_t bytes = ByteSize(dtype);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

/// Reads the header of one file. Errors hold only what is wrong; `Parse` says where and what to do.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> data) : data_(data) {}

  Status Read(std::string_view header) {
    simdjson::dom::parser parser;
    simdjson::dom::object object;
    if (const auto error = parser.parse(header.data(), header.size()).get(object)) {
      return Error(ErrorCode::kCorrupt, "header is not a JSON object ({})",
                   simdjson::error_message(error));
    }
    for (const auto& [name, value] : object) {
      STRATA_RETURN_IF_ERROR(name == kMetadataKey ? ReadMetadata(value) : ReadTensor(name, value));
    }
    std::ranges::sort(tensors_, {}, &TensorView::name);
    return CheckDistinct();
  }

  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;

 private:
  Status ReadMetadata(simdjson::dom::element element) {
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) return NotAnObject(kMetadataKey);
    for (const auto& [key, value] : object) {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS) {
        return Error(ErrorCode::kCorrupt, "metadata '{}' is not a string", OneLine(key));
      }
      metadata_.emplace(key, text);
    }
    return Ok();
  }

  Status ReadTensor(std::string_view name, simdjson::dom::element element) {
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) return NotAnObject(name);
    TensorView tensor{.name = std::string(name)};
    bool has_dtype = false;
    bool has_shape = false;
    std::vector<int64_t> offsets;
    for (const auto& [key, value] : object) {
      if (key == "dtype") {
        std::string_view text;
        const bool is_text = value.get(text) == simdjson::SUCCESS;
        const std::optional<TensorDtype> dtype = is_text ? FindDtype(text) : std::nullopt;
        if (!dtype) {
          return Error(ErrorCode::kCorrupt, "tensor '{}' has an unknown dtype '{}'", OneLine(name),
                       OneLine(text));
        }
        tensor.dtype = *dtype;
        has_dtype = true;
      } else if (key == "shape") {
        STRATA_TRY(tensor.shape, ReadSizes(name, key, value));
        has_shape = true;
      } else if (key == "data_offsets") {
        STRATA_TRY(offsets, ReadSizes(name, key, value));
      } else {
        return Error(ErrorCode::kCorrupt, "tensor '{}' has an unknown field '{}'", OneLine(name),
                     OneLine(key));
      }
    }
    if (!has_dtype || !has_shape || offsets.size() != 2) {
      return Error(ErrorCode::kCorrupt, "tensor '{}' lacks dtype, shape or two data_offsets",
                   OneLine(name));
    }
    STRATA_TRY(tensor.bytes, Locate(tensor, static_cast<uint64_t>(offsets[0]),
                                    static_cast<uint64_t>(offsets[1])));
    tensors_.push_back(std::move(tensor));
    return Ok();
  }

  static Error NotAnObject(std::string_view name) {
    return Error(ErrorCode::kCorrupt, "entry '{}' is not a JSON object", OneLine(name));
  }

  static Result<std::vector<int64_t>> ReadSizes(std::string_view name, std::string_view key,
                                                simdjson::dom::element element) {
    const Error error(ErrorCode::kCorrupt, "{} of tensor '{}' is not a list of sizes", key,
                      OneLine(name));
    simdjson::dom::array array;
    if (element.get(array) != simdjson::SUCCESS) return error;
    std::vector<int64_t> sizes;
    for (const simdjson::dom::element item : array) {
      int64_t size = 0;
      const bool is_size = item.get(size) == simdjson::SUCCESS && size >= 0;
      if (!is_size || sizes.size() == kMaxRank) return error;
      sizes.push_back(size);
    }
    return sizes;
  }

  Result<std::span<const std::byte>> Locate(const TensorView& tensor, uint64_t begin,
                                            uint64_t end) const {
    if (begin > end || end > data_.size()) {
      return Error(ErrorCode::kCorrupt, "tensor '{}' lies at bytes {} to {} of {}",
                   OneLine(tensor.name), begin, end, data_.size());
    }
    if (CountBytes(tensor.dtype, tensor.shape) != end - begin) {
      return Error(ErrorCode::kCorrupt, "tensor '{}' is {} but has {} bytes", OneLine(tensor.name),
                   DescribeType(tensor.dtype, tensor.shape), end - begin);
    }
    return data_.subspan(begin, end - begin);
  }

  Status CheckDistinct() const {
    const auto same_name = std::ranges::adjacent_find(tensors_, {}, &TensorView::name);
    if (same_name != tensors_.end()) {
      return Error(ErrorCode::kCorrupt, "tensor '{}' is there twice", OneLine(same_name->name));
    }
    std::vector<const TensorView*> by_place;
    for (const TensorView& tensor : tensors_) {
      if (!tensor.bytes.empty()) by_place.push_back(&tensor);
    }
    std::ranges::sort(by_place, {}, [](const TensorView* t) { return t->bytes.data(); });
    for (size_t i = 1; i < by_place.size(); ++i) {
      const TensorView& before = *by_place[i - 1];
      if (before.bytes.data() + before.bytes.size() > by_place[i]->bytes.data()) {
        return Error(ErrorCode::kCorrupt, "tensors '{}' and '{}' share bytes", OneLine(before.name),
                     OneLine(by_place[i]->name));
      }
    }
    return Ok();
  }

  std::span<const std::byte> data_;
};

std::string FormatHeader(std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  if (!metadata.empty()) {
    json.Key(kMetadataKey).BeginObject();
    for (const auto& [key, value] : metadata)
      json.Field(key, value);
    json.EndObject();
  }
  int64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    json.Key(tensor.name).BeginObject().Field("dtype", Name(tensor.dtype));
    json.Key("shape").BeginArray();
    for (const int64_t size : tensor.shape)
      json.Int(size);
    json.EndArray().Key("data_offsets").BeginArray().Int(offset);
    offset += std::ssize(tensor.bytes);
    json.Int(offset).EndArray().EndObject();
  }
  json.EndObject();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT: bytes as chars
}

}  // namespace

std::string_view Name(TensorDtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}

size_t ByteSize(TensorDtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].bytes;
}

std::string DescribeType(TensorDtype dtype, std::span<const int64_t> shape) {
  return fmt::format("{} [{}]", Name(dtype), fmt::join(shape, ", "));
}

Result<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes, std::string path) {
  const auto corrupt = [&path](std::string_view what) {
    return Error(ErrorCode::kCorrupt, "not a safetensors file: {}: {}; make the file anew", path,
                 what);
  };
  if (bytes.size() < kLengthBytes) return corrupt("it is shorter than 8 bytes");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const size_t rest = bytes.size() - kLengthBytes;
  if (length > rest || length > kMaxHeaderBytes) {
    return corrupt(fmt::format("its header has {} bytes, the file {}", length, bytes.size()));
  }

  HeaderReader reader(bytes.subspan(kLengthBytes + length));
  if (const Status status = reader.Read(AsText(bytes.subspan(kLengthBytes, length))); !status) {
    return corrupt(status.error().message());
  }
  SafetensorsFile file;
  file.path_ = std::move(path);
  file.tensors_ = std::move(reader.tensors_);
  file.metadata_ = std::move(reader.metadata_);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  STRATA_TRY(MappedFile mapped, MappedFile::Open(path));
  STRATA_TRY(SafetensorsFile file, Parse(mapped.bytes(), path));
  file.mapped_ = std::move(mapped);
  return file;
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &TensorView::name);
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

Status AppendSafetensors(AtomicFile& file, std::vector<TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::ranges::sort(tensors, {}, &TensorView::name);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& tensor = tensors[i];
    STRATA_CHECK(CountBytes(tensor.dtype, tensor.shape) == tensor.bytes.size(), "{}", tensor.name);
    STRATA_CHECK(tensor.name != kMetadataKey && (i == 0 || tensors[i - 1].name != tensor.name),
                 "{}", tensor.name);
  }
  const std::string header = FormatHeader(tensors, metadata);
  const uint64_t length = header.size();

  STRATA_RETURN_IF_ERROR(file.Append(AsText(std::as_bytes(std::span(&length, 1)))));
  STRATA_RETURN_IF_ERROR(file.Append(header));
  for (const TensorView& tensor : tensors) {
    STRATA_RETURN_IF_ERROR(file.Append(AsText(tensor.bytes)));
  }
  return Ok();
}

Status WriteSafetensors(const std::string& path, std::vector<TensorView> tensors,
                        const std::map<std::string, std::string>& metadata) {
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  STRATA_RETURN_IF_ERROR(AppendSafetensors(file, std::move(tensors), metadata));
  return file.Commit();
}

}  // namespace strata
