#include "cli/command.h"

namespace strata::cli {

// A command's file defines its function; this is the only other place that knows it.

namespace {

constexpr Command kCommands[] = {
    // name, what it does (one line, no full stop), function
};

}  // namespace

std::span<const Command> Commands() {
  return kCommands;
}

}  // namespace strata::cli
