#include <csignal>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "cli/core/command.h"

int main(int argc, char** argv) {
  // A closed pipe (`strata ls T | head`) ends the program quietly, even below a parent that ignores
  // the signal; a file size limit is an error that the writer reports.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);
  strata::CleanUpOnInterrupt();
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(strata::cli::Main(words, strata::cli::Commands()));
}
