#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "bench/shapes.h"
#include "bench/turns.h"
#include "cli/core/command.h"
#include "runtime/ranks/processes/process_place.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

/// Bytes of a line of /proc/self/status: `VmRSS`, `VmHWM`; 0: there is no such line.
int64_t MemoryOf(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return 1024 * std::stoll(line.substr(line.find(':') + 1));
  }
  return 0;
}

/// From here on VmHWM is that of what follows.
void ResetPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

/// The ranks of this process.
class Ranks {
 public:
  static Result<Ranks> Make(Args settings) {
    STRATA_TRY(std::optional<ProcessPlace> place, ProcessPlace::FromLauncher());
    Ranks ranks;
    ranks.before_ = MemoryOf("VmRSS");
    STRATA_TRY(const TrainConfig config, ConfigOf({settings.begin(), settings.end()}));
    const int64_t world = config.parallelism.mesh.num_ranks();
    ranks.count_ = place ? 1 : world;
    STRATA_TRY(ranks.trainer_,
               Trainer::Create({.config = config,
                                .data = MakeTokenSource(TokenData::Synthetic(config)),
                                .passes = std::string(kFusingPasses),
                                .threads = static_cast<int>(world),
                                .process = place}));
    return ranks;
  }

  Result<FirstSteps> Begin() {
    FirstSteps first;
    const double wall = Now(CLOCK_MONOTONIC), cpu = Now(CLOCK_PROCESS_CPUTIME_ID);
    STRATA_RETURN_IF_ERROR(trainer_->Compile());
    for (int step = 0; step < 3; ++step) {
      STRATA_TRY(const StepReport report, trainer_->Step());
      first.losses.push_back(report.metrics.loss);
      if (step > 0) continue;
      first.first_wall = (Now(CLOCK_MONOTONIC) - wall) / 1e3;
      first.first_cpu = (Now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3;
    }
    ResetPeak();
    STRATA_TRY(const StepReport report, trainer_->Step());
    first.peak_bytes = (MemoryOf("VmHWM") - before_) / count_;
    return first;
  }

  Result<std::vector<StepTime>> Run(int64_t steps) {
    std::vector<StepTime> times;
    for (int64_t i = 0; i < steps; ++i) {
      const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), wall = Now(CLOCK_MONOTONIC);
      STRATA_TRY(const StepReport report, trainer_->Step());
      times.push_back(
          {.cpu = Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, .wall = Now(CLOCK_MONOTONIC) - wall});
    }
    return times;
  }

 private:
  std::unique_ptr<Trainer> trainer_;
  int64_t before_ = 0;  // bytes of memory without a model
  int64_t count_ = 1;   // ranks
};

std::string Text(const FirstSteps& first) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject()
      .Field("first_wall_s", first.first_wall)
      .Field("first_cpu_s", first.first_cpu)
      .Field("peak_bytes", first.peak_bytes)
      .Key("losses")
      .BeginArray();
  for (const double loss : first.losses)
    json.Double(loss);
  json.EndArray().EndObject();
  return line;
}

std::string Text(const std::vector<StepTime>& times) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject().Key("times_ms").BeginArray();
  for (const StepTime& time : times) {
    json.BeginArray();
    json.Double(time.cpu);
    json.Double(time.wall);
    json.EndArray();
  }
  json.EndArray().EndObject();
  return line;
}

}  // namespace

/// A Worker (bench/worker.h) that trains what `settings` say, as the rank that its variables name,
/// or as all ranks.
Result<Exit> BenchRank(Args settings) {
  STRATA_TRY(Ranks ranks, Ranks::Make(settings));
  for (std::string order; std::getline(std::cin, order);) {
    std::string answer;
    if (order == "begin") {
      STRATA_TRY(const FirstSteps first, ranks.Begin());
      answer = Text(first);
    } else {
      STRATA_TRY(const auto times, ranks.Run(std::stoll(order.substr(order.find(' ') + 1))));
      answer = Text(times);
    }
    std::cout << answer << std::endl;
  }
  return Exit::kOk;
}

}  // namespace strata::cli
