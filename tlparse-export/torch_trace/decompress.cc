#include "tlparse-export/torch_trace/decompress.h"

#include <memory>
#include <zlib.h>

#include <zstd.h>

namespace strata {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 30;
constexpr size_t kStep = size_t{1} << 20;

Error Damaged(std::string_view path) {
  return Error(ErrorCode::kCorrupt, "damaged: {}: the compressed data is cut or changed", path);
}
Error TooLarge(std::string_view path) {
  return Error(ErrorCode::kUnsupported, "too large: {}: more than {} GiB when decompressed", path,
               kMaxBytes >> 30);
}

Result<std::string> Gunzip(std::string_view bytes, std::string_view path) {
  z_stream stream{};
  // 16: a gzip header is expected.
  STRATA_CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string out;
  while (true) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      const size_t part = std::min(bytes.size(), kStep);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(part);
      bytes.remove_prefix(part);
    }
    const size_t used = out.size();
    if (used > kMaxBytes) return TooLarge(path);
    out.resize(used + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(kStep);
    const int status = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && bytes.empty()) return out;
      if (inflateReset(&stream) != Z_OK) return Damaged(path);
    } else if (status != Z_OK) {
      return Damaged(path);
    }
  }
}

Result<std::string> Unzstd(std::string_view bytes, std::string_view path) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::string out;
  while (true) {
    const size_t used = out.size();
    if (used > kMaxBytes) return TooLarge(path);
    out.resize(used + kStep);
    ZSTD_outBuffer buffer{out.data() + used, kStep, 0};
    const size_t left = ZSTD_decompressStream(context.get(), &buffer, &in);
    out.resize(used + buffer.pos);
    if (ZSTD_isError(left)) return Damaged(path);
    if (in.pos < in.size) continue;
    if (left == 0) return out;
    // All was read: unless more output waits, the rest is missing.
    if (buffer.pos < kStep) return Damaged(path);
  }
}

}  // namespace

Result<std::string> Decompress(std::string bytes, std::string_view path) {
  if (bytes.starts_with("\x1f\x8b")) return Gunzip(bytes, path);
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return Unzstd(bytes, path);
  return bytes;
}

}  // namespace strata
