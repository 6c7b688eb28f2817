#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

namespace strata {

/// The kind of the artifact that holds it.
inline constexpr std::string_view kEnvironmentKind = "environment";

/// The machine's part of a run that executed graphs: with another environment, results may have
/// other bits.
struct Environment {
  int64_t threads = 0;  ///< inside operators
  int64_t steps = 0;    ///< of training that the run is to do; 0: it does not train
};

/// Stores it as an artifact of kind `environment`, named `environment.json`:
/// `{"threads":4,"steps":20}`, also as its attributes; without steps where there are none.
Status AddEnvironment(TraceWriter& trace, RunId run, const Environment& environment);

/// None: the run executed nothing, or is of a version that did not record it.
std::optional<Environment> EnvironmentOf(const StoredRun& run);

}  // namespace strata
