#include "store/artifact_parts.h"

#include "store/database/bytes.h"

namespace strata {

std::string EncodeParts(std::span<const int64_t> rows) {
  std::string bytes;
  ByteWriter out(bytes);
  out.Varint(rows.size());
  int64_t before = 0;
  for (const int64_t row : rows) {
    out.Signed(row - before);
    before = row;
  }
  return bytes;
}

std::optional<std::vector<int64_t>> DecodeParts(std::string_view bytes) {
  ByteReader in(bytes);
  std::vector<int64_t> rows(in.Count());
  uint64_t row = 0;
  for (int64_t& part : rows) {
    row += static_cast<uint64_t>(in.Signed());
    part = static_cast<int64_t>(row);
  }
  if (!in.AtEnd()) return std::nullopt;
  return rows;
}

}  // namespace strata
