#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// The header line of a record, in its parts.
struct LogHeader {
  std::string_view prefix;  ///< from the level letter to the bracket and blank before the JSON
  std::string_view thread;
  std::string_view json;
};

/// Finds `V1120 18:32:38.396000 14073 torch/x.py:10] {…` in a line; what a log shipper puts before
/// the level is passed over. None for other lines.
std::optional<LogHeader> ReadHeader(std::string_view line);

}  // namespace strata
