#include "bench/rank_workers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace strata::cli {

Status RankWorkers::Start(int64_t processes) {
  if (processes > 1) {
    STRATA_TRY(ProcessStore store, ProcessStore::Open());
    store_.emplace(std::move(store));
  }
  for (int64_t rank = 0; rank < processes; ++rank) {
    Worker::Command command{.words = words_, .log = fmt::format("{}.{}.log", log_, rank)};
    if (store_) command.variables = VariablesOf(rank, processes);
    STRATA_TRY(workers_.emplace_back(), Worker::Start(std::move(command)));
  }
  return Ok();
}

Result<FirstSteps> RankWorkers::Begin() {
  STRATA_RETURN_IF_ERROR(Send("begin"));
  FirstSteps all;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    STRATA_TRY(const FirstSteps one, worker->ReceiveFirstSteps());
    all.first_wall = std::max(all.first_wall, one.first_wall);
    all.first_cpu += one.first_cpu;
    all.peak_bytes = std::max(all.peak_bytes, one.peak_bytes);
    all.losses = one.losses;
  }
  return all;
}

Result<std::vector<StepTime>> RankWorkers::Run(int64_t steps) {
  STRATA_RETURN_IF_ERROR(Send(fmt::format("run {}", steps)));
  std::vector<StepTime> all(static_cast<size_t>(steps));
  for (const std::unique_ptr<Worker>& worker : workers_) {
    STRATA_TRY(const std::vector<StepTime> one, worker->ReceiveTimes());
    for (size_t i = 0; i < std::min(all.size(), one.size()); ++i) {
      all[i].cpu += one[i].cpu;
      all[i].wall = std::max(all[i].wall, one[i].wall);
    }
  }
  return all;
}

std::vector<std::string> RankWorkers::VariablesOf(int64_t rank, int64_t world) const {
  return {fmt::format("RANK={}", rank),
          fmt::format("LOCAL_RANK={}", rank),
          fmt::format("WORLD_SIZE={}", world),
          fmt::format("LOCAL_WORLD_SIZE={}", world),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", store_->port()),
          "TORCHELASTIC_USE_AGENT_STORE=True",
          "TORCHELASTIC_RESTART_COUNT=0"};
}

Status RankWorkers::Send(const std::string& order) {
  for (const std::unique_ptr<Worker>& worker : workers_)
    STRATA_RETURN_IF_ERROR(worker->Send(order));
  return Ok();
}

}  // namespace strata::cli
