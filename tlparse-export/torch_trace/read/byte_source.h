#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace strata {

/// Bytes that are read once, piece by piece.
class ByteSource {
 public:
  /// Size of the pieces, but for the last one.
  static constexpr size_t kPiece = size_t{1} << 20;

  virtual ~ByteSource() = default;
  /// The next piece; empty at the end. Valid until the next call.
  Result<std::string_view> Read() {
    if (!peeked_) return ReadPiece();
    return *std::exchange(peeked_, std::nullopt);
  }
  /// What the next call of Read gives.
  Result<std::string_view> Peek() {
    if (!peeked_) {
      STRATA_TRY(peeked_, ReadPiece());
    }
    return *peeked_;
  }
  /// Of the file below, before decompression.
  struct Position {
    int64_t read = 0;
    int64_t size = 0;  ///< 0: unknown
  };
  virtual Position position() const { return {}; }

 protected:
  virtual Result<std::string_view> ReadPiece() = 0;

 private:
  std::optional<std::string_view> peeked_;
};

/// The content of a file, `-` for standard input. Content that begins like gzip or zstd
/// is decompressed; consecutive compressed streams are one content.
/// Errors of this and of Read, with `path` in them: as ReadFile; damaged or cut data.
Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path);

/// Makes a source of bytes that are in memory. REQUIRES: they outlive it.
std::unique_ptr<ByteSource> SourceOf(std::string_view bytes);

/// `source`, decompressed if its content is.
Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> source,
                                                 std::string path);

}  // namespace strata
