#include "bench/bench.h"

#include <algorithm>
#include <ctime>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/suggest.h"
#include "base/text.h"

namespace strata::cli {
namespace {

// To add one: a file bench/<name>.cc, a declaration in bench/bench.h and a line here.
constexpr Benchmark kBenchmarks[] = {
    {"ir", "build, print, parse, verify and fingerprint graphs of 10k and 100k nodes", BenchIr},
    {"import", "import logs of up to 1 GB and of a trainer, compared with tlparse", BenchImport},
    {"passes", "run cleanup passes with all checks on graphs of 100k nodes", BenchPasses},
    {"prove", "edit lowered graphs of traces: which edits strata prove finds, and where",
     BenchProve},
    {"store", "record and load traces of graphs of 20k and 100k nodes", BenchStore},
    {"viewer", "write a trace of a large graph, for the measurements of strata-view", BenchViewer},
    {"report", "make scenes of passes over graphs of 10k and 100k nodes", BenchReport},
    {"diff", "compare graphs of 10k and 100k nodes, one percent edited", BenchDiff},
    {"memory", "run steps of a training under each memory policy: peak, time and bits",
     ExecBenchMemory},
    {"train",
     "trace and compile a training of 12 layers; run steps as graphs, eagerly and in PyTorch",
     ExecBenchTrain},
    {"parallel", "run steps on several ranks, and in PyTorch with FSDP2 over Gloo",
     ExecBenchParallel},
    {"pipeline", "run steps of a pipeline, and in PyTorch with the same schedules over Gloo",
     ExecBenchPipeline},
    {"place", "predict and measure steps of many layouts on 2 and 4 ranks, and rank them",
     ExecBenchPlace},
    {"simulate", "estimate steps before and after each way to schedule collectives",
     ExecBenchSimulate},
    {"experts", "measure and estimate how much of the exchanges of tokens chunks hide",
     ExecBenchExperts},
    {"flex", "run flex attention with a causal and a document mask, and PyTorch's, compiled",
     ExecBenchFlex},
};

std::string BenchmarkList() {
  std::string out =
      "strata bench WHAT: measures the speed of Strata; prints medians of processor time, with the "
      "fastest and the slowest run\n\n";
  for (const Benchmark& benchmark : kBenchmarks) {
    out += fmt::format("  {:<9} {}\n", benchmark.name, benchmark.summary);
  }
  out += "\nexample:\n  strata bench ir\n";
  return out;
}

}  // namespace

Timing Measure(int runs, const std::function<void()>& work, const std::function<void()>& prepare) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  std::vector<double> times;
  for (int run = -1; run < runs; ++run) {
    prepare();
    const double begin = now();
    work();
    if (run >= 0) times.push_back(now() - begin);
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], times.front(), times.back()};
}

void PrintTiming(std::string_view what, const Timing& timing, double limit_ms) {
  std::string line = fmt::format("{:<36} {:>9.2f} ms   {:.2f} … {:.2f}", what, timing.median,
                                 timing.fastest, timing.slowest);
  if (limit_ms > 0) {
    line +=
        fmt::format("   limit {:g} ms: {}", limit_ms, timing.median <= limit_ms ? "met" : "missed");
  }
  fmt::print("{}\n", line);
}

Result<Exit> RunBench(Args args) {
  if (args.empty()) return Error("missing argument WHAT: strata bench: see 'strata bench --help'");
  if (args[0] == "--help" || args[0] == "-h") {
    STRATA_RETURN_IF_ERROR(WriteFile("-", BenchmarkList()));
    return Exit::kOk;
  }
  std::vector<std::string> names;
  for (const Benchmark& benchmark : kBenchmarks) {
    if (benchmark.name == args[0]) return benchmark.run(args.subspan(1));
    names.emplace_back(benchmark.name);
  }
  return Error("unknown benchmark '{}': {}: one of {}", args[0],
               "strata bench" + DidYouMean(args[0], names), Enumerate(names, names.size()));
}

}  // namespace strata::cli
