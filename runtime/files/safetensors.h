#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace strata {

/// Element types of the format, spelled there `F32`, `BF16`, ….
enum class TensorDtype : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};

/// `F32` for kF32.
std::string_view Name(TensorDtype dtype);
size_t ByteSize(TensorDtype dtype);

/// A named tensor whose bytes lie elsewhere: little-endian, row-major, without gaps. Not
/// necessarily aligned to the element size.
struct TensorView {
  std::string name;
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<int64_t> shape = {};
  std::span<const std::byte> bytes = {};
};

/// `F32 [32, 64]`, for messages.
std::string DescribeType(TensorDtype dtype, std::span<const int64_t> shape);

/// A safetensors file, opened without a copy of its data. Format: 8 bytes header length, a JSON
/// header, the data; https://github.com/huggingface/safetensors.
///
/// Nothing in the file is trusted: names are unique, every tensor's bytes lie inside the file, fit
/// its shape and dtype, and belong to no other tensor. Otherwise kCorrupt, with the tensor named.
class SafetensorsFile {
 public:
  /// Maps the file; the views live as long as this object. REQUIRES: no process truncates the file
  /// meanwhile.
  static Result<SafetensorsFile> Open(const std::string& path);

  /// Reads a file's bytes in memory, which must outlive this object. `path` is their name in
  /// errors.
  static Result<SafetensorsFile> Parse(std::span<const std::byte> bytes, std::string path);

  /// Sorted by name.
  std::span<const TensorView> tensors() const { return tensors_; }
  /// Null if there is none of this name.
  const TensorView* Find(std::string_view name) const;
  /// `__metadata__`.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

 private:
  SafetensorsFile() = default;

  std::string path_;
  std::optional<MappedFile> mapped_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// The bytes of a whole file, without a commit. Tensors are stored in the order of their names; the
/// data start at a multiple of 8 bytes, so equal tensors give equal files. REQUIRES: distinct
/// names, none `__metadata__`; bytes fit shape and dtype.
Status AppendSafetensors(AtomicFile& file, std::vector<TensorView> tensors,
                         const std::map<std::string, std::string>& metadata = {});

/// Writes aside and renames.
Status WriteSafetensors(const std::string& path, std::vector<TensorView> tensors,
                        const std::map<std::string, std::string>& metadata = {});

}  // namespace strata
