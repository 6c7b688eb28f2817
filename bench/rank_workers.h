#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/turns.h"
#include "bench/worker.h"
#include "runtime/ranks/processes/gloo_links.h"

namespace strata::cli {

/// Ranks that are processes, or threads of one: each order goes to all of them. A step takes as
/// long as that of the slowest process.
class RankWorkers final : public Contender {
 public:
  /// `words`: the program of each process; what it prints goes to files `LOG.0.log`, ….
  RankWorkers(std::string contender, int64_t world, std::vector<std::string> words, std::string log)
      : Contender(std::move(contender)),
        ranks(world),
        words_(std::move(words)),
        log_(std::move(log)) {}

  const int64_t ranks;
  bool is_pytorch = false;

  /// `processes` of the ranks' program. Call once, before the others.
  Status Start(int64_t processes);
  /// Losses are those of the last process.
  Result<FirstSteps> Begin() override;
  Result<std::vector<StepTime>> Run(int64_t steps) override;
  void End() override { workers_.clear(); }

 private:
  std::vector<std::string> VariablesOf(int64_t rank, int64_t world) const;
  Status Send(const std::string& order);

  std::vector<std::string> words_;
  std::string log_;
  std::optional<ProcessStore> store_;  // before those that use it
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace strata::cli
