#pragma once
#include <cstdint>
#include <string>

#include "cli/core/command.h"

namespace strata::cli {

/// Starts `count` processes of this program with the same words, each with the variables by which
/// ProcessPlace::FromLauncher knows its rank, and waits for them. Interrupts go to all of them.
/// When one ends with an error, the others find that out; a process that still runs
/// `patience_seconds` after the last end, because it is stopped, is killed. Processes do not
/// outlive this one.
///
/// Returns Exit::kOk if all ended well. Errors: a process cannot be started; a process was killed
/// by a signal. What another error was, the process printed.
Result<Exit> LaunchRanks(const std::string& command, Args args, int64_t count,
                         int64_t patience_seconds);

}  // namespace strata::cli
