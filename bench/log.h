#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace strata::cli {

/// The logs of a folder and of those in it, by name; damaged ones (`malformed/`) left out.
Result<std::vector<std::string>> ReadLogsBelow(const std::string& folder);

/// Writes a log of at least `bytes` from copies of real ones, as one process of rank `rank` would:
/// each copy has frames of its own, so that compilations do not repeat.
Status WriteLargeLog(const std::string& path, int64_t bytes, int32_t rank,
                     const std::vector<std::string>& logs);

/// Writes the log of a training step of about `nodes` nodes that a trainer shows before and after
/// each of nine passes, of which two change something: 19 texts, 3 of them different.
Status WriteTrainerLog(const std::string& path, int nodes);

/// Writes a log of at least `bytes` of graphs of which none repeats another.
Status WriteDistinctLog(const std::string& path, int64_t bytes);

/// What a program took, as the system counts it.
struct ProgramCost {
  double cpu_s = 0;  ///< user and system
  double wall_s = 0;
  double peak_mb = 0;  ///< resident
  int status = 0;      ///< exit status; 127: it could not be started
};
/// Runs a program without input and output and waits for it.
ProgramCost RunProgram(const std::vector<std::string>& words);

}  // namespace strata::cli
