#include "store/database/pack.h"

#include <zstd.h>

namespace strata {
namespace {

// DO NOT CHANGE: stored as the first byte of a blob.
constexpr char kRaw = 0;
constexpr char kZstd = 1;

constexpr size_t kWorthTrying = 64;
constexpr int kLevel = 3;

}  // namespace

struct Packer::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
};

Packer::Packer() : context_(std::make_unique<Context>()) {}

Packer::~Packer() {
  ZSTD_freeCCtx(context_->zstd);
}

std::string Packer::Pack(std::string_view bytes) {
  if (bytes.size() >= kWorthTrying) {
    std::string packed(1 + ZSTD_compressBound(bytes.size()), kZstd);
    const size_t size = ZSTD_compressCCtx(context_->zstd, packed.data() + 1, packed.size() - 1,
                                          bytes.data(), bytes.size(), kLevel);
    if (!ZSTD_isError(size) && size < bytes.size() - bytes.size() / 8) {
      packed.resize(1 + size);
      return packed;
    }
  }
  std::string raw(1, kRaw);
  raw.append(bytes);
  return raw;
}

std::optional<std::string> Unpack(std::string_view blob, size_t limit) {
  if (blob.empty()) return std::nullopt;
  const std::string_view payload = blob.substr(1);
  if (blob[0] == kRaw) {
    if (payload.size() > limit) return std::nullopt;
    return std::string(payload);
  }
  if (blob[0] != kZstd) return std::nullopt;
  const auto size = ZSTD_getFrameContentSize(payload.data(), payload.size());
  // Also catches both error values, which are the largest numbers.
  if (size > limit) return std::nullopt;
  std::string bytes(size, '\0');
  const size_t got = ZSTD_decompress(bytes.data(), bytes.size(), payload.data(), payload.size());
  if (ZSTD_isError(got) || got != size) return std::nullopt;
  return bytes;
}

}  // namespace strata
