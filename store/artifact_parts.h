#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The rows of artifact data that are the content of an artifact, one after the other.
std::string EncodeParts(std::span<const int64_t> rows);
/// None for bytes that list no rows.
std::optional<std::vector<int64_t>> DecodeParts(std::string_view bytes);

}  // namespace strata
