#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/diff_eval/pairs.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  bool baselines = false, verbose = false;
  for (const std::string& arg : args) {
    baselines |= arg == "--baselines";
    verbose |= arg == "--verbose";
  }
  const strata::Status status = strata::bench::EvaluatePairs(args[0], baselines, verbose);
  if (!status) std::fprintf(stderr, "%s\n", status.error().message().c_str());
  return status ? 0 : 2;
}
