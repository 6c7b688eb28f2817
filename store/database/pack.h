#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// Packs bytes for a blob: a codec byte, then the bytes, compressed with zstd where it pays.
/// Keeps its working memory from call to call.
class Packer {
 public:
  Packer();
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  ~Packer();
  std::string Pack(std::string_view bytes);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// What was packed; none when the blob is damaged or would unpack to more than `limit` bytes.
std::optional<std::string> Unpack(std::string_view blob, size_t limit);

}  // namespace strata
