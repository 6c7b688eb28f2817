#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "diff/graph/listing.h"
#include "diff/graph/symbols.h"

namespace strata {

/// A property of a type as it is printed. Equal when the hashes are: sizes may be written in
/// several ways.
struct TypeProperty {
  std::string text;
  uint64_t hash = 0;
  friend bool operator==(const TypeProperty& a, const TypeProperty& b) { return a.hash == b.hash; }
};

/// The properties of an entity's value as FX annotations spell them; none: unknown. A symbolic
/// integer has dtype "Sym" and its expression as shape; an opaque type is its dtype. `symbols`:
/// what the other side calls the symbols of this one.
struct TypeText {
  std::optional<TypeProperty> dtype, shape, strides, device, placement;
};
TypeText TypeTextOf(const Listing& listing, EntityId id, const SymbolNames& symbols = {});

/// True when the property is known on both sides and differs.
inline bool Differ(const std::optional<TypeProperty>& a, const std::optional<TypeProperty>& b) {
  return a && b && !(*a == *b);
}

}  // namespace strata
