#include "store/births.h"

#include "store/database/bytes.h"
#include "store/snapshot_format.h"

namespace strata {

std::string EncodeBirths(std::span<const Provenance> births) {
  std::string bytes;
  ByteWriter out(bytes);
  out.Varint(births.size());
  uint64_t before = 0;
  for (const Provenance& birth : births) {
    const auto node = static_cast<uint64_t>(birth.node);
    out.Signed(static_cast<int64_t>(node - before));
    before = node;
    out.Byte(static_cast<uint8_t>(birth.origin));
    out.Varint(birth.from.size());
    for (StableId ancestor : birth.from)
      out.Signed(static_cast<int64_t>(node - static_cast<uint64_t>(ancestor)));
  }
  return bytes;
}

std::optional<std::vector<Provenance>> DecodeBirths(std::string_view bytes) {
  ByteReader in(bytes);
  std::vector<Provenance> births;
  uint64_t node = 0;
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    Provenance birth;
    node += static_cast<uint64_t>(in.Signed());
    birth.node = StableId{node};
    const uint8_t origin = in.Byte();
    if (origin > static_cast<uint8_t>(snapshot_format::kLastOrigin)) in.Fail();
    birth.origin = static_cast<Origin>(origin);
    for (size_t ancestors = in.Count(); ancestors > 0 && in.ok(); --ancestors)
      birth.from.push_back(StableId{node - static_cast<uint64_t>(in.Signed())});
    births.push_back(std::move(birth));
  }
  if (!in.AtEnd()) return std::nullopt;
  return births;
}

}  // namespace strata
