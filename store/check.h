#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace strata {

/// What `strata check` finds: damage by table and row. Empty: the trace is sound. Reads everything.
/// Errors: the file cannot be opened as a trace at all.
struct Finding {
  std::string table;  ///< of the file; empty: the file as a whole
  int64_t row = 0;    ///< 0: the table as a whole
  std::string what;
};
Result<std::vector<Finding>> CheckTrace(const std::string& path);

}  // namespace strata
