#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// 128 bits that identify a graph by its content.
struct Fingerprint {
  uint64_t hi = 0, lo = 0;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

enum class FingerprintScope : uint8_t {
  /// What is computed: order, operators, arguments, types (dtype, sizes, strides, device,
  /// placements), bodies.
  /// Not names, ids, nor metadata. Survives a trip through FX text.
  kComputation,
  /// Also names, modules, phases, sequence numbers, streams, locations, aliases and attributes:
  /// everything but
  /// ids and lines. Equal exactly when the native texts are equal.
  kEverything,
};

/// Of a graph with the bodies it refers to. Linear; XXH3-128 over a canonical encoding.
Fingerprint FingerprintOf(const Graph& graph,
                          FingerprintScope scope = FingerprintScope::kComputation);

/// 32 lower-case hex digits.
std::string ToString(Fingerprint fingerprint);
std::optional<Fingerprint> FingerprintFromString(std::string_view text);

}  // namespace strata
