#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/shapes.h"
#include "bench/turns.h"
#include "cli/core/flags.h"
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

  Status Create() override {
    if (trainer_ != nullptr) return Ok();
    STRATA_TRY(trainer_, Trainer::Create({.config = config_,
                                          .data = MakeTokenSource(TokenData::Synthetic(config_)),
                                          .passes = "dce,canonicalize,fuse",
                                          .threads = threads_}));
    return Ok();
  }
  Result<FirstSteps> Begin() override {
    constexpr int kSteps = 3;
    STRATA_RETURN_IF_ERROR(Create());
    FirstSteps steps;
    const MemoryMeter meter;
    STRATA_RETURN_IF_ERROR(trainer_->Compile());
    for (int step = 0; step < kSteps; ++step) {
      STRATA_TRY(const StepReport report, trainer_->Step());
      steps.losses.push_back(report.metrics.loss);
      planned_bytes = std::max(planned_bytes, trainer_->planned_bytes());
    }
    steps.peak_bytes = meter.peak_bytes();
    for (const std::vector<TensorView>& views :
         {trainer_->OptimizerTensors(), trainer_->Parameters()}) {
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
  const Trainer& trainer() const { return *trainer_; }

  std::vector<std::byte> tensors;  // gradients and parameters after the first steps

 private:
  TrainConfig config_;
  int threads_;
  std::unique_ptr<Trainer> trainer_;
};

const PolicyTraining* OursOf(const Contender& contender) {
  return dynamic_cast<const PolicyTraining*>(&contender);
}

void Print(const Contenders& contenders) {
  const auto& none = static_cast<const PolicyTraining&>(*contenders.front());
  fmt::print("  {:<28} {:>9} {:>7} {:>9} {:>7} {:>8} {:>17} {:>8} {:>17} {:>6}\n", "policy",
             "peak MB", "/ none", "planned", "error %", "cpu ms", "/ none", "wall ms", "/ none",
             "bits");
  for (const std::unique_ptr<Contender>& contender : contenders) {
    const PolicyTraining* const ours = OursOf(*contender);
    const double peak = static_cast<double>(contender->first.peak_bytes);
    const double planned = static_cast<double>(contender->planned_bytes);
    fmt::print("  {:<28} {:>9.2f} {:>7.3f} {:>9} {:>7} {:>8.2f} {:>17} {:>8.2f} {:>17} {:>6}\n",
               contender->name, peak / 1e6, peak / static_cast<double>(none.first.peak_bytes),
               ours == nullptr ? "" : fmt::format("{:.2f}", planned / 1e6),
               ours == nullptr ? "" : fmt::format("{:.2f}", 100 * (planned / peak - 1)),
               Median(contender->slices, &StepTime::cpu),
               RatioOf(*contender, none, &StepTime::cpu).Text(),
               Median(contender->slices, &StepTime::wall),
               RatioOf(*contender, none, &StepTime::wall).Text(),
               ours == nullptr                 ? ""
               : ours->tensors == none.tensors ? "equal"
                                               : "DIFFER");
  }
}

/// Time over peak, a letter for each: capitals are PyTorch's.
void Draw(const Contenders& contenders, double StepTime::* of) {
  constexpr int kWidth = 72, kHeight = 16;
  double most_time = 0, least_time = 1e300, most_peak = 0, least_peak = 1e300;
  for (const std::unique_ptr<Contender>& contender : contenders) {
    const double time = Median(contender->slices, of);
    const auto peak = static_cast<double>(contender->first.peak_bytes);
    most_time = std::max(most_time, time), least_time = std::min(least_time, time);
    most_peak = std::max(most_peak, peak), least_peak = std::min(least_peak, peak);
  }
  std::vector<std::string> rows(kHeight, std::string(kWidth, ' '));
  const auto at = [](double value, double least, double most, int cells) {
    const double share = most > least ? (value - least) / (most - least) : 0;
    return static_cast<size_t>(std::lround(share * (cells - 1)));
  };
  char ours = 'a', theirs = 'A';
  std::string legend;
  for (const std::unique_ptr<Contender>& contender : contenders) {
    const char letter = OursOf(*contender) != nullptr ? ours++ : theirs++;
    const size_t row = at(Median(contender->slices, of), least_time, most_time, kHeight);
    const size_t column =
        at(static_cast<double>(contender->first.peak_bytes), least_peak, most_peak, kWidth);
    char& cell = rows[kHeight - 1 - row][column];
    cell = cell == ' ' ? letter : '*';
    legend += fmt::format("{}{} {}", legend.empty() ? "  " : ", ", letter, contender->name);
  }
  fmt::print("\n  {:.2f} ms\n", most_time);
  for (const std::string& row : rows)
    fmt::print("  |{}\n", row.substr(0, row.find_last_not_of(' ') + 1));
  fmt::print("  +{}\n  {:.2f} ms; peak {:.2f} to {:.2f} MB; * several\n{}\n\n",
             std::string(kWidth, '-'), least_time, least_peak / 1e6, most_peak / 1e6, legend);
}

/// Ours of those that keep results in memory and need no more of it than `peak` bytes: the fastest.
const Contender* FastestWithin(const Contenders& contenders, int64_t peak, double StepTime::* of) {
  const Contender* best = nullptr;
  for (const std::unique_ptr<Contender>& contender : contenders) {
    if (OursOf(*contender) == nullptr || contender->first.peak_bytes > peak) continue;
    if (contender->name == "sac_and_offload") continue;  // the host is the same memory
    if (best == nullptr || Median(contender->slices, of) < Median(best->slices, of))
      best = contender.get();
  }
  return best;
}

/// At each of PyTorch's points: the time of Strata's fastest policy that needs no more memory.
void PrintFrontGates(const Contenders& contenders, double StepTime::* of) {
  for (const std::unique_ptr<Contender>& peer : contenders) {
    if (OursOf(*peer) != nullptr) continue;
    const Contender* const best = FastestWithin(contenders, peer->first.peak_bytes, of);
    if (best == nullptr) {
      fmt::print("  {:<52} no plan of Strata: missed\n",
                 fmt::format("within {:.2f} MB of {}",
                             static_cast<double>(peer->first.peak_bytes) / 1e6, peer->name));
      continue;
    }
    PrintGate(fmt::format("time, {} / {}", best->name, peer->name), RatioOf(*best, *peer, of), 1);
  }
}

/// PyTorch's ways to need less memory for activations; those of `names`, all if it is empty.
Result<std::vector<PeerRequest>> Peers(int threads, const std::vector<std::string>& names) {
  std::vector<PeerRequest> peers = {
      {.name = "eager", .threads = threads},
      {.name = "full", .threads = threads, .checkpoint = "full"},
      {.name = "op", .threads = threads, .checkpoint = "op"},
  };
  for (const double budget : {1.0, 0.75, 0.5, 0.25, 0.0}) {
    peers.push_back({.name = fmt::format("compiled {:g}", budget),
                     .threads = threads,
                     .memory_budget = budget});
  }
  for (const std::string& name : names) {
    if (std::ranges::find(peers, name, &PeerRequest::name) == peers.end())
      return Error("unknown peer '{}': strata bench memory: see its --help", name);
  }
  std::erase_if(peers, [&](const PeerRequest& peer) {
    return !names.empty() && std::ranges::find(names, peer.name) == names.end();
  });
  return peers;
}

struct MemoryBenchFlags {
  std::vector<std::string> shapes, peers;
  std::string python;
  int64_t threads = 1, rounds = 9;
};

class ShapeBench {
 public:
  ShapeBench(const TrainConfig& base, const MemoryBenchFlags& flags)
      : base_(base), flags_(flags), threads_(static_cast<int>(flags.threads)) {}

  Result<Contenders> Run() {
    for (const char* policy : {"none", "default", "eager", "min_cut", "full", "sac_and_offload"})
      STRATA_RETURN_IF_ERROR(Add(policy, policy, 0));
    STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
    Contenders peers;
    if (!flags_.python.empty()) {
      STRATA_TRY(peers, StartPeers(folder.path()));
    }
    for (const std::unique_ptr<Contender>& ours : contenders_) {
      STRATA_TRY(ours->first, ours->Begin());
    }
    const int64_t most = contenders_[0]->planned_bytes, full = contenders_[4]->planned_bytes;
    for (const int64_t share : {75, 50, 25, 0}) {
      STRATA_RETURN_IF_ERROR(AddBudget(fmt::format("budget, {} % above full", share),
                                       full + (most - full) * share / 100));
    }
    // Where PyTorch is, as far as any plan gets there.
    for (const std::unique_ptr<Contender>& peer : peers) {
      const int64_t bytes = peer->first.peak_bytes;
      if (bytes >= most) continue;
      const std::string name = fmt::format("budget of {}", peer->name);
      if (const Status added = AddBudget(name, bytes); !added)
        Warn(fmt::format("{}: {}", name, added.error().message()));
    }
    for (std::unique_ptr<Contender>& peer : peers)
      contenders_.push_back(std::move(peer));
    STRATA_RETURN_IF_ERROR(TakeTurns(contenders_, flags_.rounds, /*slice_ms=*/300));
    return std::move(contenders_);
  }

 private:
  Status Add(std::string name, std::string_view policy, int64_t bytes) {
    TrainConfig config = base_;
    config.compile.memory_policy = std::string(policy);
    config.compile.memory_budget_bytes = bytes;
    config.compile.memory_budget_offload = false;
    contenders_.push_back(
        std::make_unique<PolicyTraining>(std::move(name), std::move(config), threads_));
    return Ok();
  }

  Status AddBudget(std::string name, int64_t bytes) {
    STRATA_RETURN_IF_ERROR(Add(std::move(name), "budget", bytes));
    auto first = contenders_.back()->Begin();
    if (!first) {
      contenders_.pop_back();
      return std::move(first).error();
    }
    contenders_.back()->first = *std::move(first);
    return Ok();
  }

  /// They begin with Strata's parameters.
  Result<Contenders> StartPeers(const std::string& folder) {
    STRATA_RETURN_IF_ERROR(contenders_[0]->Create());
    const Trainer& trainer = OursOf(*contenders_[0])->trainer();
    Contenders peers;
    STRATA_TRY(const std::vector<PeerRequest> requests, Peers(threads_, flags_.peers));
    for (const PeerRequest& request : requests) {
      STRATA_TRY(auto peer, StartPeer(flags_.python, request, trainer, folder));
      auto first = peer->Begin();
      if (!first) {
        Warn(fmt::format("{} is left out: {}", peer->name, first.error().message()));
        continue;
      }
      peer->first = *std::move(first);
      peers.push_back(std::move(peer));
    }
    return peers;
  }

  const TrainConfig& base_;
  const MemoryBenchFlags& flags_;
  int threads_;
  Contenders contenders_;
};

Status MeasureShape(const BenchShape& shape, const MemoryBenchFlags& flags) {
  STRATA_TRY(const TrainConfig base, ConfigOf(shape, DeviceKind::kCpu));
  STRATA_TRY(const Contenders contenders, ShapeBench(base, flags).Run());
  // With several threads, those that wait for others burn processor time.
  double StepTime::* const of = flags.threads == 1 ? &StepTime::cpu : &StepTime::wall;
  fmt::print("{}: {} layers, dim {}, {} x {} tokens, threads {}; medians of {} rounds\n",
             shape.name, base.n_layers, base.dim, base.batch_size, base.seq_len, flags.threads,
             flags.rounds);
  Print(contenders);
  Draw(contenders, of);
  PrintFrontGates(contenders, of);
  std::fflush(stdout);  // the next shape takes minutes
  return Ok();
}

}  // namespace

Result<Exit> BenchMemory(Args args) {
  MemoryBenchFlags options;
  Flags flags("bench memory",
              "measures a training step under each memory policy, and PyTorch with activation "
              "checkpointing or compiled with a memory budget: peak, what the plan says of it, "
              "time in turns, and whether the bits are those without a policy");
  flags.Repeated("--shape", "NAME", &options.shapes,
                 "as of strata bench train (default: debugmodel)");
  flags.Option("--python", "FILE", &options.python,
               "interpreter with PyTorch (default: .venv-bench/bin/python where it is)");
  flags.Repeated("--peer", "NAME", &options.peers,
                 "eager, full, op, 'compiled 1', 'compiled 0.75', 'compiled 0.5', 'compiled 0.25', "
                 "'compiled 0' (default: all, which large shapes may not find memory for)");
  flags.Option("--threads", "N", &options.threads, "threads inside operators (default: 1)", 1,
               kMaxThreads);
  flags.Option("--rounds", "N", &options.rounds, "turns of each");
  flags.Example("strata bench memory --shape debugmodel");
  flags.Example("strata bench memory --shape 36m --peer eager --peer 'compiled 0.5'");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (options.shapes.empty()) options.shapes = {"debugmodel"};
  if (options.python.empty()) options.python = FindPeerPython();
  for (const std::string& name : options.shapes) {
    const auto shape = std::ranges::find(BenchShapes(), name, &BenchShape::name);
    if (shape == BenchShapes().end() || shape->needs_gpu)
      return Error("unknown shape '{}': strata bench memory: see strata bench train --help", name);
    STRATA_RETURN_IF_ERROR(MeasureShape(*shape, options));
  }
  return Exit::kOk;
}

}  // namespace strata::cli
