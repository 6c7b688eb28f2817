#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace strata {

/// Provenance records of a pass as bytes: for each its node, origin and ancestors, as differences.
std::string EncodeBirths(std::span<const Provenance> births);
/// None when the bytes are damaged.
std::optional<std::vector<Provenance>> DecodeBirths(std::string_view bytes);

}  // namespace strata
