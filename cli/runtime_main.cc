#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "cli/core/command.h"
#include "cli/passes/opt.h"
#include "cli/passes/place.h"
#include "cli/passes/place_trace.h"
#include "cli/prove/prove_values.h"
#include "runtime/aten/exceptions.h"
#include "runtime/aten/operator_library.h"
#include "runtime/aten/threads.h"

namespace strata::cli {

Result<Exit> BenchExperts(Args args);      // bench/experts.cc
Result<Exit> BenchFlex(Args args);         // bench/flex.cc
Result<Exit> BenchMemory(Args args);       // bench/memory.cc
Result<Exit> BenchParallel(Args args);     // bench/parallel.cc
Result<Exit> BenchPipeline(Args args);     // bench/pipeline.cc
Result<Exit> BenchPlace(Args args);        // bench/place.cc
Result<Exit> BenchRank(Args args);         // bench/bench_rank.cc
Result<Exit> BenchSimulate(Args args);     // bench/simulate.cc
Result<Exit> BenchTrain(Args args);        // bench/train.cc
Result<Exit> RunCompareValues(Args args);  // cli/prove/compare_values.cc
Result<Exit> RunRun(Args args);            // cli/train/run.cc
Result<Exit> RunTrace(Args args);          // cli/train/trace.cc
Result<Exit> RunCalibrate(Args args);      // bench/calibrate.cc
Result<Exit> RunTrain(Args args);          // cli/train/train.cc

namespace {

Result<Exit> RunProvedOpt(Args args) {
  return RunOptWith(args, [](const ProveFlags& flags) -> Result<Prover> {
    SetThreads(ChooseThreads(flags.threads));
    STRATA_RETURN_IF_ERROR(LoadOperators(flags.operators));
    NamedTensors inputs;
    if (flags.inputs) {
      STRATA_TRY(inputs, LoadTensors(*flags.inputs));
    }
    return Prover{.watcher = std::make_unique<ProvePasses>(flags.tolerance, std::move(inputs)),
                  .environment = {.threads = NumThreads()}};
  });
}

Result<Exit> RunTracedPlace(Args args) {
  return RunPlaceWith(args, {.trace = TraceForPlacement, .batch_size = BatchSizeOfConfig});
}

/// A command of which only plain exceptions come.
template <Result<Exit> (*kRun)(Args)>
Result<Exit> Plain(Args args) {
  try {
    return kRun(args);
  } catch (...) {
    RethrowPlainly();
  }
}

/// Ends the program without LibTorch's destructors, which remove its operators from the dispatcher
/// one by one: 340 million instructions. Sanitizers report when destructors have run.
[[noreturn]] void Leave(Exit status) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(status));
#else
  std::exit(static_cast<int>(status));
#endif
}

}  // namespace

}  // namespace strata::cli

// The commands that need LibTorch; `strata` starts this program for them.
int main(int argc, char** argv) {
  using strata::cli::Command;
  static constexpr std::array<Command, 16> kCommands = {{
      {"train", "train a model and record its graphs", strata::cli::Plain<strata::cli::RunTrain>},
      {"trace", "trace a training without weights", strata::cli::Plain<strata::cli::RunTrace>},
      {"run", "execute a recorded graph", strata::cli::Plain<strata::cli::RunRun>},
      {"compare-values", "compare the values of two graphs on the same inputs",
       strata::cli::Plain<strata::cli::RunCompareValues>},
      {"opt", "run passes on a graph", strata::cli::Plain<strata::cli::RunProvedOpt>},
      {"place", "find the placements of a step that cost the least",
       strata::cli::Plain<strata::cli::RunTracedPlace>},
      {"calibrate", "measure what ranks of this machine compute and communicate with",
       strata::cli::Plain<strata::cli::RunCalibrate>},
      {"bench-experts", "measure exchanges of tokens",
       strata::cli::Plain<strata::cli::BenchExperts>},
      {"bench-flex", "measure flex attention", strata::cli::Plain<strata::cli::BenchFlex>},
      {"bench-memory", "measure memory policies", strata::cli::Plain<strata::cli::BenchMemory>},
      {"bench-parallel", "measure training on several ranks",
       strata::cli::Plain<strata::cli::BenchParallel>},
      {"bench-pipeline", "measure training in a pipeline",
       strata::cli::Plain<strata::cli::BenchPipeline>},
      {"bench-place", "predict and measure layouts", strata::cli::Plain<strata::cli::BenchPlace>},
      {"bench-rank", "train on request of a benchmark", strata::cli::Plain<strata::cli::BenchRank>},
      {"bench-simulate", "estimate schedules of collectives",
       strata::cli::Plain<strata::cli::BenchSimulate>},
      {"bench-train", "measure training", strata::cli::Plain<strata::cli::BenchTrain>},
  }};
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);
  strata::CleanUpOnInterrupt();
  const std::vector<std::string> words(argv + 1, argv + argc);
  strata::cli::Leave(strata::cli::Main(words, kCommands));
}
