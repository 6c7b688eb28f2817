#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/rank_contest.h"
#include "bench/shapes.h"
#include "cli/core/flags.h"
#include "passes/pipeline/schedule/schedule.h"

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

Status MeasureIn(const BenchShape& shape, const PipelineFlags& flags) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  RankContest contest(folder.path());
  for (const std::string& schedule : flags.schedules) {
    STRATA_TRY(const std::vector<std::string> settings, SettingsIn(schedule, shape, flags));
    STRATA_RETURN_IF_ERROR(contest.AddOurs(schedule, settings, flags.ranks, flags.ranks));
    if (flags.python.empty()) continue;
    STRATA_RETURN_IF_ERROR(contest.AddPyTorch("PyTorch " + schedule, settings, flags.ranks,
                                              flags.python, "pipeline_peers.py",
                                              "pipeline_" + schedule));
  }
  STRATA_RETURN_IF_ERROR(contest.TakeTurns(flags.rounds));
  fmt::print(
      "{}, {} ranks that are processes over Gloo, {} microbatches of {}, a thread each; medians of "
      "{} rounds\n",
      shape.name, flags.ranks, flags.microbatches, flags.batch / flags.microbatches, flags.rounds);
  contest.Print("schedule");
  for (const RankWorkers* peer : contest.all()) {
    if (!peer->is_pytorch) continue;
    for (const RankWorkers* ours : contest.all()) {
      if (peer->name == "PyTorch " + ours->name)
        RankContest::PrintGates(ours->name + " / PyTorch", *ours, *peer, 1.0);
    }
  }
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
