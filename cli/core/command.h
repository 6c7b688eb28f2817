#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata::cli {

/// What the program's exit status says.
enum class Exit : int {
  kOk = 0,
  kDifferences = 1,  ///< the command worked and found differences
  kError = 2,        ///< an Error was printed
};

/// The words after the command's name.
using Args = std::span<const std::string>;

/// One verb of the program. Data goes to stdout (`WriteFile("-", …)`), everything else to stderr.
/// A returned Error is printed as `strata: error: <message>` and ends with Exit::kError.
struct Command {
  std::string_view name;
  std::string_view summary;  ///< one line of `strata --help`
  Result<Exit> (*run)(Args args);
};

/// All verbs, in the order of `strata --help`. To add one: a file `cli/<folder>/<name>.cc`, a
/// declaration and a line in cli/commands.cc.
std::span<const Command> Commands();

/// The whole program: `words` are the arguments after the program's name. Prints errors.
Exit Main(Args words, std::span<const Command> commands);

/// `strata VERB ARGS…` as shell text: words are quoted where needed.
std::string CommandLine(std::string_view verb, Args args);

/// `strata: warning: <text>` on stderr.
void Warn(std::string_view text);
/// From here on `Warn` prints nothing: another process of the same command prints the same.
void LeaveWarningsToOthers();

}  // namespace strata::cli
