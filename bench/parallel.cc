#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/rank_contest.h"
#include "bench/shapes.h"
#include "cli/core/flags.h"

namespace strata::cli {
namespace {

struct ParallelFlags {
  std::vector<std::string> shapes;
  std::string python;
  int64_t batch = 4, rounds = 15;
};

/// The shape on `ranks` that shard parameters and share the batch.
Result<std::vector<std::string>> SettingsOn(const BenchShape& shape, int64_t ranks, int64_t batch) {
  if (batch % ranks != 0) {
    return Error("the ranks' parts of a batch are equal: --batch {}: take a multiple of {}", batch,
                 ranks);
  }
  std::vector<std::string> settings = SettingsOf(shape, DeviceKind::kCpu);
  settings.push_back(fmt::format("parallelism.data_parallel_shard_degree={}", ranks));
  settings.push_back(fmt::format("batch_size={}", batch / ranks));
  return settings;
}

Status AddOurs(RankContest& contest, const BenchShape& shape, int64_t ranks, bool are_processes,
               int64_t batch) {
  STRATA_TRY(const std::vector<std::string> settings, SettingsOn(shape, ranks, batch));
  return contest.AddOurs(fmt::format("{} {}", ranks, are_processes ? "processes" : "threads"),
                         settings, ranks, are_processes ? ranks : 1);
}

Status AddPyTorch(RankContest& contest, const BenchShape& shape, int64_t ranks,
                  const ParallelFlags& flags) {
  STRATA_TRY(const std::vector<std::string> settings, SettingsOn(shape, ranks, flags.batch));
  return contest.AddPyTorch(fmt::format("PyTorch {} processes", ranks), settings, ranks,
                            flags.python, "parallel_peers.py", fmt::format("fsdp{}", ranks));
}

Status MeasureShape(const BenchShape& shape, const ParallelFlags& flags) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  RankContest contest(folder.path());
  for (const auto& [ranks, are_processes] :
       {std::pair(2, false), std::pair(4, false), std::pair(2, true)})
    STRATA_RETURN_IF_ERROR(AddOurs(contest, shape, ranks, are_processes, flags.batch));
  for (const int64_t ranks : {2, 4}) {
    if (flags.python.empty()) break;
    STRATA_RETURN_IF_ERROR(AddPyTorch(contest, shape, ranks, flags));
  }
  STRATA_RETURN_IF_ERROR(contest.TakeTurns(flags.rounds));
  fmt::print("{}, a batch of {} on all ranks, a thread each; medians of {} rounds\n", shape.name,
             flags.batch, flags.rounds);
  contest.Print("ranks");
  for (const RankWorkers* peer : contest.all()) {
    if (!peer->is_pytorch) continue;
    for (const RankWorkers* ours : contest.all()) {
      if (ours->is_pytorch || ours->ranks != peer->ranks) continue;
      RankContest::PrintGates(fmt::format("{} / {}", ours->name, peer->name), *ours, *peer, 0.8);
    }
  }
  std::fflush(stdout);  // the next shape takes minutes
  return Ok();
}

}  // namespace

Result<Exit> BenchParallel(Args args) {
  ParallelFlags options;
  Flags flags("bench parallel",
              "measures a training step on 2 and 4 ranks that shard parameters: threads of a "
              "process, processes over Gloo, and PyTorch processes with FSDP2 over Gloo, with the "
              "same model, initial values and tokens. All take turns; ratios are medians over "
              "rounds of wall time, with quartiles. Peaks are of resident memory in a step, less "
              "that before the model was made");
  flags.Repeated("--shape", "NAME", &options.shapes,
                 "of strata bench train (default: debugmodel, 36m)");
  flags.Option("--python", "FILE", &options.python,
               "interpreter with PyTorch (default: .venv-bench/bin/python where it is)");
  flags.Option("--batch", "N", &options.batch, "sequences of all ranks (default: 4)", 4);
  flags.Option("--rounds", "N", &options.rounds, "turns of each (default: 15)", 1);
  flags.Example("strata bench parallel");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (options.shapes.empty()) options.shapes = {"debugmodel", "36m"};
  STRATA_TRY(const std::vector<const BenchShape*> shapes, FindShapes(options.shapes));
  if (options.python.empty()) options.python = FindPeerPython();
  for (const BenchShape* shape : shapes)
    STRATA_RETURN_IF_ERROR(MeasureShape(*shape, options));
  return Exit::kOk;
}

}  // namespace strata::cli
