#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/rank_workers.h"
#include "bench/shapes.h"
#include "bench/turns.h"
#include "cli/core/flags.h"
#include "runtime/train/trainer.h"

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

Result<std::unique_ptr<RankWorkers>> Ours(const BenchShape& shape, int64_t ranks,
                                          bool are_processes, const ParallelFlags& flags,
                                          const std::string& folder) {
  std::vector<std::string> words = {"/proc/self/exe", "bench-rank"};
  STRATA_TRY(const std::vector<std::string> settings, SettingsOn(shape, ranks, flags.batch));
  words.insert(words.end(), settings.begin(), settings.end());
  const std::string name = fmt::format("{} {}", ranks, are_processes ? "processes" : "threads");
  auto contender =
      std::make_unique<RankWorkers>(name, ranks, std::move(words), folder + "/" + name);
  STRATA_RETURN_IF_ERROR(contender->Start(are_processes ? ranks : 1));
  return contender;
}

Result<std::unique_ptr<RankWorkers>> PyTorch(const BenchShape& shape, int64_t ranks,
                                             const ParallelFlags& flags,
                                             const std::string& folder) {
  STRATA_TRY(const std::vector<std::string> settings, SettingsOn(shape, ranks, flags.batch));
  STRATA_TRY(const TrainConfig config, ConfigOf(settings));
  STRATA_TRY(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(
          {.config = config, .data = MakeTokenSource(TokenData::Synthetic(config)), .threads = 1}));
  const std::string name = fmt::format("PyTorch {} processes", ranks);
  STRATA_TRY(std::vector<std::string> words,
             PeerCommand(flags.python,
                         {.name = fmt::format("fsdp{}", ranks), .script = "parallel_peers.py"},
                         *trainer, folder));
  auto contender =
      std::make_unique<RankWorkers>(name, ranks, std::move(words), folder + "/" + name);
  contender->is_pytorch = true;
  STRATA_RETURN_IF_ERROR(contender->Start(ranks));
  return contender;
}

double Megabytes(const RankWorkers& ranks) {
  return static_cast<double>(ranks.first.peak_bytes) / 1e6;
}

void Print(const std::vector<const RankWorkers*>& all) {
  fmt::print("  {:<20} {:>9} {:>9} {:>15} {:>8} {:>7}\n", "ranks", "wall ms", "cpu ms",
             "peak MB a rank", "first s", "loss ±");
  for (const RankWorkers* ranks : all) {
    double difference = 0;
    for (size_t i = 0; i < ranks->first.losses.size(); ++i) {
      difference =
          std::max(difference, std::abs(ranks->first.losses[i] - all.front()->first.losses[i]));
    }
    fmt::print("  {:<20} {:>9.2f} {:>9.2f} {:>15.1f} {:>8.2f} {:>7.0e}\n", ranks->name,
               Median(ranks->slices, &StepTime::wall), Median(ranks->slices, &StepTime::cpu),
               Megabytes(*ranks), ranks->first.first_wall, difference);
  }
  for (const RankWorkers* peer : all) {
    if (!peer->is_pytorch) continue;
    for (const RankWorkers* ours : all) {
      if (ours->is_pytorch || ours->ranks != peer->ranks) continue;
      const std::string both = fmt::format("{} / {}", ours->name, peer->name);
      PrintGate("step time, " + both, RatioOf(*ours, *peer, &StepTime::wall), 0.8);
      PrintGate("peak memory, " + both, Megabytes(*ours) / Megabytes(*peer), 1);
    }
  }
}

Status MeasureShape(const BenchShape& shape, const ParallelFlags& flags) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  Contenders contenders;
  std::vector<const RankWorkers*> all;
  const auto add = [&](std::unique_ptr<RankWorkers> ranks) {
    all.push_back(ranks.get());
    contenders.push_back(std::move(ranks));
  };
  struct Layout {
    int64_t ranks;
    bool are_processes;
  };
  for (const auto [ranks, are_processes] : {Layout{2, false}, Layout{4, false}, Layout{2, true}}) {
    STRATA_TRY(auto ours, Ours(shape, ranks, are_processes, flags, folder.path()));
    add(std::move(ours));
  }
  for (const int64_t ranks : {2, 4}) {
    if (flags.python.empty()) break;
    STRATA_TRY(auto peer, PyTorch(shape, ranks, flags, folder.path()));
    add(std::move(peer));
  }
  for (const std::unique_ptr<Contender>& contender : contenders) {
    STRATA_TRY(contender->first, contender->Begin());
  }
  STRATA_RETURN_IF_ERROR(TakeTurns(contenders, flags.rounds, /*slice_ms=*/500));
  fmt::print("{}, a batch of {} on all ranks, a thread each; medians of {} rounds\n", shape.name,
             flags.batch, flags.rounds);
  Print(all);
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
