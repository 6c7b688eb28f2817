#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/core/command.h"
#include "ir/module.h"

namespace strata::cli {

/// Milliseconds of processor time of the median, fastest and slowest of several runs. Wall-clock
/// time on a shared machine measures the neighbours.
struct Timing {
  double median = 0, fastest = 0, slowest = 0;
};

/// Runs `work` once to warm up, then `runs` times. `prepare` runs before each, untimed.
Timing Measure(
    int runs, const std::function<void()>& work, const std::function<void()>& prepare = [] {});

/// Prints one aligned line: what, median, spread, and the limit if one is given (0: none).
void PrintTiming(std::string_view what, const Timing& timing, double limit_ms = 0);

/// A graph with the shape of a training step of about `nodes` nodes: blocks with module paths,
/// typed values, matrix products, views, tuples and a backward half. Same bytes for same `nodes`
/// and `seed`.
std::unique_ptr<Module> TransformerLikeGraph(int nodes, uint32_t seed = 1);

/// The step of one rank of about `nodes` nodes: layers of eight parameters, each gathered for a
/// product in forward and again in backward, with gradients that are reduced.
std::unique_ptr<Module> ShardedStepGraph(int nodes);

/// Compares graphs that are hard to match (equal chains, hubs, grids, …) of 10k nodes, ten times as
/// many and so on up to `most_nodes`, and prints processor time, its growth, elapsed time and the
/// peak memory. `only`: one kind of graphs; empty: all.
Status BenchDiffAdversarial(int64_t most_nodes, std::string_view only);

/// One thing that `strata bench WHAT` measures.
struct Benchmark {
  std::string_view name;
  std::string_view summary;
  Result<Exit> (*run)(Args args);
};

Result<Exit> BenchDiff(Args args);
Result<Exit> BenchImport(Args args);
Result<Exit> BenchIr(Args args);
Result<Exit> BenchPasses(Args args);
Result<Exit> BenchProve(Args args);
Result<Exit> BenchReport(Args args);
Result<Exit> BenchStore(Args args);
Result<Exit> BenchViewer(Args args);

// In strata-runtime.
Result<Exit> ExecBenchExperts(Args args);
Result<Exit> ExecBenchFlex(Args args);
Result<Exit> ExecBenchMemory(Args args);
Result<Exit> ExecBenchParallel(Args args);
Result<Exit> ExecBenchPipeline(Args args);
Result<Exit> ExecBenchPlace(Args args);
Result<Exit> ExecBenchSimulate(Args args);
Result<Exit> ExecBenchTrain(Args args);

}  // namespace strata::cli
