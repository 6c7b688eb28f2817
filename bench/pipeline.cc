#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
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
#include "passes/pipeline/schedule/schedule.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

struct PipelineFlags {
  std::vector<std::string> shapes, schedules;
  std::string python;
  int64_t ranks = 2, batch = 8, microbatches = 4, rounds = 15;
};

/// The shape in a pipeline: `microbatches` of a batch, one stage for each rank, or two.
Result<std::vector<std::string>> SettingsIn(std::string_view schedule, const BenchShape& shape,
                                            const PipelineFlags& flags) {
  if (flags.batch % flags.microbatches != 0) {
    return Error("microbatches are of equal size: --batch {}: take a multiple of {}", flags.batch,
                 flags.microbatches);
  }
  std::vector<std::string> settings = SettingsOf(shape, DeviceKind::kCpu);
  settings.push_back(fmt::format("batch_size={}", flags.batch));
  for (const auto& [key, value] :
       {std::pair("degree", fmt::format("{}", flags.ranks)),
        {"schedule", std::string(schedule)},
        {"microbatch_size", fmt::format("{}", flags.batch / flags.microbatches)}})
    settings.push_back(fmt::format("parallelism.pipeline_parallel_{}={}", key, value));
  return settings;
}

Result<std::unique_ptr<RankWorkers>> OursIn(std::string_view schedule, const BenchShape& shape,
                                            const PipelineFlags& flags, const std::string& folder) {
  std::vector<std::string> words = {"/proc/self/exe", "bench-rank"};
  STRATA_TRY(const std::vector<std::string> settings, SettingsIn(schedule, shape, flags));
  words.insert(words.end(), settings.begin(), settings.end());
  const std::string name(schedule);
  auto contender =
      std::make_unique<RankWorkers>(name, flags.ranks, std::move(words), folder + "/" + name);
  STRATA_RETURN_IF_ERROR(contender->Start(flags.ranks));
  return contender;
}

Result<std::unique_ptr<RankWorkers>> PyTorchIn(std::string_view schedule, const BenchShape& shape,
                                               const PipelineFlags& flags,
                                               const std::string& folder) {
  STRATA_TRY(const std::vector<std::string> settings, SettingsIn(schedule, shape, flags));
  STRATA_TRY(const TrainConfig config, ConfigOf(settings));
  STRATA_TRY(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(
          {.config = config, .data = MakeTokenSource(TokenData::Synthetic(config)), .threads = 1}));
  const std::string name = fmt::format("PyTorch {}", schedule);
  STRATA_TRY(
      std::vector<std::string> words,
      PeerCommand(flags.python,
                  {.name = fmt::format("pipeline_{}", schedule), .script = "pipeline_peers.py"},
                  *trainer, folder));
  auto contender =
      std::make_unique<RankWorkers>(name, flags.ranks, std::move(words), folder + "/" + name);
  contender->is_pytorch = true;
  STRATA_RETURN_IF_ERROR(contender->Start(flags.ranks));
  return contender;
}

double MegabytesOf(const RankWorkers& ranks) {
  return static_cast<double>(ranks.first.peak_bytes) / 1e6;
}

void PrintPipelines(const std::vector<const RankWorkers*>& all) {
  fmt::print("  {:<32} {:>9} {:>9} {:>15} {:>8} {:>7}\n", "schedule", "wall ms", "cpu ms",
             "peak MB a rank", "first s", "loss ±");
  for (const RankWorkers* ranks : all) {
    double difference = 0;
    for (size_t i = 0; i < ranks->first.losses.size(); ++i) {
      difference =
          std::max(difference, std::abs(ranks->first.losses[i] - all.front()->first.losses[i]));
    }
    fmt::print("  {:<32} {:>9.2f} {:>9.2f} {:>15.1f} {:>8.2f} {:>7.0e}\n", ranks->name,
               Median(ranks->slices, &StepTime::wall), Median(ranks->slices, &StepTime::cpu),
               MegabytesOf(*ranks), ranks->first.first_wall, difference);
  }
  for (const RankWorkers* peer : all) {
    if (!peer->is_pytorch) continue;
    for (const RankWorkers* ours : all) {
      if (ours->is_pytorch || !peer->name.ends_with(" " + ours->name)) continue;
      PrintGate("step time, " + ours->name + " / PyTorch", RatioOf(*ours, *peer, &StepTime::wall),
                1.0);
      PrintGate("peak memory, " + ours->name + " / PyTorch",
                MegabytesOf(*ours) / MegabytesOf(*peer), 1);
    }
  }
}

Status MeasureIn(const BenchShape& shape, const PipelineFlags& flags) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  Contenders contenders;
  std::vector<const RankWorkers*> all;
  const auto add = [&](std::unique_ptr<RankWorkers> ranks) {
    all.push_back(ranks.get());
    contenders.push_back(std::move(ranks));
  };
  for (const std::string& schedule : flags.schedules) {
    STRATA_TRY(auto ours, OursIn(schedule, shape, flags, folder.path()));
    add(std::move(ours));
    if (flags.python.empty()) continue;
    STRATA_TRY(auto peer, PyTorchIn(schedule, shape, flags, folder.path()));
    add(std::move(peer));
  }
  for (const std::unique_ptr<Contender>& contender : contenders) {
    STRATA_TRY(contender->first, contender->Begin());
  }
  STRATA_RETURN_IF_ERROR(TakeTurns(contenders, flags.rounds, /*slice_ms=*/500));
  fmt::print(
      "{}, {} ranks that are processes over Gloo, {} microbatches of {}, a thread each; medians of "
      "{} rounds\n",
      shape.name, flags.ranks, flags.microbatches, flags.batch / flags.microbatches, flags.rounds);
  PrintPipelines(all);
  std::fflush(stdout);  // the next shape takes minutes
  return Ok();
}

}  // namespace

Result<Exit> BenchPipeline(Args args) {
  PipelineFlags options;
  Flags flags("bench pipeline",
              "measures a training step in a pipeline whose ranks are processes over Gloo, and in "
              "PyTorch with the same schedule of torch.distributed.pipelining over Gloo, with the "
              "same stages, initial values and tokens. All take turns; ratios are medians over "
              "rounds of wall time, with quartiles. Peaks are of resident memory in a step, less "
              "that before the model was made");
  flags.Repeated("--shape", "NAME", &options.shapes,
                 "of strata bench train (default: debugmodel, 36m)");
  flags.Repeated(
      "--schedule", "NAME", &options.schedules,
      "of strata schedule (default: GPipe, 1F1B, Interleaved1F1B, InterleavedZeroBubble)");
  flags.Option("--python", "FILE", &options.python,
               "interpreter with PyTorch (default: .venv-bench/bin/python where it is)");
  flags.Option("--ranks", "P", &options.ranks, "ranks of the pipeline (default: 2)", 2);
  flags.Option("--batch", "N", &options.batch, "sequences of a step (default: 8)", 1);
  flags.Option("--microbatches", "M", &options.microbatches, "of a step (default: 4)", 1);
  flags.Option("--rounds", "N", &options.rounds, "turns of each (default: 15)", 1);
  flags.Example("strata bench pipeline --schedule 1F1B");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (options.shapes.empty()) options.shapes = {"debugmodel", "36m"};
  if (options.schedules.empty())
    options.schedules = {"GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble"};
  for (std::string& schedule : options.schedules) {
    STRATA_TRY(const ScheduleKind kind, FindScheduleKind(schedule));
    schedule = kind.name;
  }
  STRATA_TRY(const std::vector<const BenchShape*> shapes, FindShapes(options.shapes));
  if (options.python.empty()) options.python = FindPeerPython();
  for (const BenchShape* shape : shapes)
    STRATA_RETURN_IF_ERROR(MeasureIn(*shape, options));
  return Exit::kOk;
}

}  // namespace strata::cli
