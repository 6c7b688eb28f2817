#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "cli/command.h"

namespace strata::cli {

Result<Exit> BenchTrain(Args args);  // cli/bench_train.cc
Result<Exit> RunTrain(Args args);    // cli/train.cc

}  // namespace strata::cli

// The commands that need LibTorch; `strata` starts this program for them.
int main(int argc, char** argv) {
  using strata::cli::Command;
  static constexpr std::array<Command, 2> kCommands = {{
      {"train", "train a model, with its graphs recorded", strata::cli::RunTrain},
      {"bench-train", "measure training", strata::cli::BenchTrain},
  }};
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(strata::cli::Main(words, kCommands));
}
