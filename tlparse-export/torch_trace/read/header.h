#pragma once
#include <cstdint>
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

/// Nanoseconds from the beginning of the year to the time in `LogHeader::prefix`; -1 when it has
/// none. A log knows neither the year nor the time zone: every year has a 29th of February.
int64_t TimeOf(std::string_view prefix);

}  // namespace strata
