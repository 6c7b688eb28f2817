#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench.h"
#include "bench/shapes.h"
#include "bench/turns.h"
#include "cli/flags.h"
#include "runtime/aten/threads.h"
#include "runtime/exec/step/memory_meter.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

/// A training under one policy.
class PolicyTraining final : public Contender {
 public:
  PolicyTraining(std::string name, TrainConfig config, int threads)
      : Contender(std::move(name)), config_(std::move(config)), threads_(threads) {}

  Result<FirstSteps> Begin() override {
    constexpr int kSteps = 3;
    STRATA_TRY(trainer_, Trainer::Create({.config = config_,
                                          .data = MakeTokenSource(TokenData::Synthetic(config_)),
                                          .passes = "dce,canonicalize,fuse",
                                          .threads = threads_}));
    FirstSteps steps;
    const MemoryMeter meter;
    STRATA_RETURN_IF_ERROR(trainer_->Compile());
    for (int step = 0; step < kSteps; ++step) {
      STRATA_TRY(const StepReport report, trainer_->Step());
      steps.losses.push_back(report.metrics.loss);
      planned_bytes = std::max(planned_bytes, trainer_->planned_bytes());
    }
    steps.peak_bytes = meter.peak_bytes();
    for (const std::vector<TensorView>& views : {trainer_->Gradients(), trainer_->Parameters()}) {
      for (const TensorView& view : views)
        tensors.insert(tensors.end(), view.bytes.begin(), view.bytes.end());
    }
    return steps;
  }

  Result<std::vector<StepTime>> Run(int64_t steps) override {
    std::vector<StepTime> times;
    for (int64_t i = 0; i < steps; ++i) {
      const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), wall = Now(CLOCK_MONOTONIC);
      if (auto report = trainer_->Step(); !report) return std::move(report).error();
      times.push_back(
          {.cpu = Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, .wall = Now(CLOCK_MONOTONIC) - wall});
    }
    return times;
  }
  void End() override { trainer_.reset(); }

  std::vector<std::byte> tensors;  // gradients and parameters after the first steps

 private:
  TrainConfig config_;
  int threads_;
  std::unique_ptr<Trainer> trainer_;
};

void Print(const Contenders& contenders) {
  const auto tensors_of = [](const Contender& contender) -> const std::vector<std::byte>& {
    return static_cast<const PolicyTraining&>(contender).tensors;
  };
  const Contender& none = *contenders.front();
  fmt::print("  {:<22} {:>9} {:>7} {:>9} {:>7} {:>8} {:>17} {:>8} {:>17} {:>6}\n", "policy",
             "peak MB", "/ none", "planned", "error %", "cpu ms", "/ none", "wall ms", "/ none",
             "bits");
  for (const std::unique_ptr<Contender>& contender : contenders) {
    const double peak = static_cast<double>(contender->first.peak_bytes);
    const double planned = static_cast<double>(contender->planned_bytes);
    fmt::print(
        "  {:<22} {:>9.2f} {:>7.3f} {:>9.2f} {:>7.2f} {:>8.2f} {:>17} {:>8.2f} {:>17} {:>6}\n",
        contender->name, peak / 1e6, peak / static_cast<double>(none.first.peak_bytes),
        planned / 1e6, 100 * (planned / peak - 1), Median(contender->slices, &StepTime::cpu),
        RatioOf(*contender, none, &StepTime::cpu).Text(),
        Median(contender->slices, &StepTime::wall),
        RatioOf(*contender, none, &StepTime::wall).Text(),
        tensors_of(*contender) == tensors_of(none) ? "equal" : "DIFFER");
  }
}

Status MeasureShape(const BenchShape& shape, int threads, int64_t rounds) {
  STRATA_TRY(const TrainConfig base, ConfigOf(shape, DeviceKind::kCpu));
  Contenders contenders;
  const auto add = [&](std::string name, std::string_view policy, int64_t bytes) -> Status {
    TrainConfig config = base;
    config.compile.memory_policy = std::string(policy);
    config.compile.memory_budget_bytes = bytes;
    contenders.push_back(
        std::make_unique<PolicyTraining>(std::move(name), std::move(config), threads));
    STRATA_TRY(contenders.back()->first, contenders.back()->Begin());
    return Ok();
  };
  for (const char* policy : {"none", "default", "eager", "min_cut", "full", "sac_and_offload"}) {
    STRATA_RETURN_IF_ERROR(add(policy, policy, 0));
  }
  const int64_t most = contenders[0]->planned_bytes, full = contenders[4]->planned_bytes;
  for (const int64_t share : {75, 50, 25, 0}) {
    STRATA_RETURN_IF_ERROR(add(fmt::format("budget, {} % above full", share), "budget",
                               full + (most - full) * share / 100));
  }
  STRATA_RETURN_IF_ERROR(TakeTurns(contenders, rounds, /*slice_ms=*/300));
  fmt::print("{}: {} layers, dim {}, {} x {} tokens, threads {}; medians of {} rounds\n",
             shape.name, base.n_layers, base.dim, base.batch_size, base.seq_len, threads, rounds);
  Print(contenders);
  std::fflush(stdout);  // the next shape takes minutes
  return Ok();
}

}  // namespace

Result<Exit> BenchMemory(Args args) {
  std::vector<std::string> shapes;
  int64_t threads = 1, rounds = 9;
  Flags flags("bench memory",
              "measures a training step under each memory policy: peak, what the plan says of it, "
              "time in turns, and whether the bits are those without a policy");
  flags.Repeated("--shape", "NAME", &shapes, "as of strata bench train (default: debugmodel)");
  flags.Option("--threads", "N", &threads, "threads inside operators (default: 1)", 1, kMaxThreads);
  flags.Option("--rounds", "N", &rounds, "turns of each");
  flags.Example("strata bench memory --shape debugmodel");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (shapes.empty()) shapes = {"debugmodel"};
  for (const std::string& name : shapes) {
    const auto shape = std::ranges::find(BenchShapes(), name, &BenchShape::name);
    if (shape == BenchShapes().end() || shape->needs_gpu)
      return Error("unknown shape '{}': strata bench memory: see strata bench train --help", name);
    STRATA_RETURN_IF_ERROR(MeasureShape(*shape, static_cast<int>(threads), rounds));
  }
  Warn("PyTorch with activation checkpointing is not measured: its rows are missing");
  return Exit::kOk;
}

}  // namespace strata::cli
