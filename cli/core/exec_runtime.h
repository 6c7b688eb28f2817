#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/core/command.h"

namespace strata::cli {

/// Becomes `strata-runtime COMMAND ARGS…`, the program for what needs LibTorch; returns only when
/// there is none.
Error ExecRuntime(const std::string& command, Args args);

/// Runs the same in a process of its own and waits for its end. `log`: a file for what it writes.
/// Errors: there is no such program; it fails: what it wrote.
Status RunRuntime(const std::string& command, const std::vector<std::string>& args,
                  const std::string& log);

}  // namespace strata::cli
