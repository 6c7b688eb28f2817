#pragma once
#include <string>

#include "cli/core/command.h"

namespace strata::cli {

/// Becomes `strata-runtime COMMAND ARGS…`, the program for what needs LibTorch; returns only when
/// there is none.
Error ExecRuntime(const std::string& command, Args args);

}  // namespace strata::cli
