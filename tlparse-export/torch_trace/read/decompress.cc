#include "tlparse-export/torch_trace/read/decompress.h"

#include "tlparse-export/torch_trace/read/byte_source.h"

namespace strata {

Result<std::string> Decompress(std::string bytes, std::string_view path) {
  constexpr size_t kMaxBytes = size_t{64} << 30;
  if (!bytes.starts_with("\x1f\x8b") && !bytes.starts_with("\x28\xb5\x2f\xfd")) return bytes;
  STRATA_TRY(const auto source, Decompressed(SourceOf(bytes), std::string(path)));
  std::string out;
  while (true) {
    STRATA_TRY(const std::string_view piece, source->Read());
    if (piece.empty()) return out;
    out += piece;
    if (out.size() > kMaxBytes) {
      return Error(ErrorCode::kUnsupported, "too large: {}: more than {} GiB when decompressed",
                   path, kMaxBytes >> 30);
    }
  }
}

}  // namespace strata
