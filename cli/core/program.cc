#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/unicode.h"
#include "cli/core/command.h"

namespace strata::cli {
namespace {

bool others_warn = false;

constexpr std::string_view kVersion = "strata " STRATA_VERSION "\n";

std::string Overview(std::span<const Command> commands) {
  size_t width = 0;
  for (const Command& command : commands)
    width = std::max(width, command.name.size());
  std::string text =
      "strata: inspect, diff and run the computation graphs of training programs\n"
      "\n"
      "usage: strata COMMAND [ARGUMENT…]\n"
      "\n";
  for (const Command& command : commands)
    text += fmt::format("  {:<{}}  {}\n", command.name, width, command.summary);
  text +=
      "\n"
      "strata COMMAND --help shows the options and examples of a command.\n"
      "A REF is FILE[#SELECTOR]. FILE is a trace, a log or the text of a graph. SELECTOR is a\n"
      "comma-separated list of run=, rank=, graph= and pass=N|NAME[:before|:after].\n";
  return text;
}

Error UnknownCommand(const std::string& word, std::span<const Command> commands) {
  std::vector<std::string> names;
  for (const Command& command : commands)
    names.emplace_back(command.name);
  return Error("unknown command '{}'{}: strata: see 'strata --help'", word,
               DidYouMean(word, names));
}

Result<Exit> Run(Args words, std::span<const Command> commands) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    STRATA_RETURN_IF_ERROR(WriteFile("-", Overview(commands)));
    return Exit::kOk;
  }
  if (words[0] == "--version") {
    STRATA_RETURN_IF_ERROR(WriteFile("-", kVersion));
    return Exit::kOk;
  }
  for (const Command& command : commands) {
    if (command.name == words[0]) return command.run(words.subspan(1));
  }
  return UnknownCommand(words[0], commands);
}

/// No command throws; the machine and the libraries below may.
Result<Exit> RunOrTell(Args words, std::span<const Command> commands) {
  const std::string verb = words.empty() ? "strata" : "strata " + words[0];
  try {
    return Run(words, commands);
  } catch (const std::bad_alloc&) {
    return Error("out of memory: {}: give it less, or a machine with more", verb);
  } catch (const std::exception& failure) {
    return Error(ErrorCode::kInternal, "{}: {}: please report it with the command",
                 OneLine(failure.what(), 400), verb);
  }
}

}  // namespace

std::string CommandLine(std::string_view verb, Args args) {
  std::string line = fmt::format("strata {}", verb);
  for (const std::string& word : args)
    line += " " + ShellWord(word);
  return line;
}

void LeaveWarningsToOthers() {
  others_warn = true;
}

void Warn(std::string_view text) {
  if (others_warn) return;
  const std::string line = fmt::format("strata: warning: {}\n", VisibleLines(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Exit Main(Args words, std::span<const Command> commands) {
  const Result<Exit> exit = RunOrTell(words, commands);
  if (exit) return *exit;
  const std::string line = fmt::format("strata: error: {}\n", VisibleLines(exit.error().message()));
  std::fwrite(line.data(), 1, line.size(), stderr);
  EndAsInterrupted();
  return Exit::kError;
}

}  // namespace strata::cli
