#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/rank_workers.h"
#include "bench/turns.h"

namespace strata::cli {

/// Trainings on several ranks, ours and PyTorch's, of one model, initial values and tokens, that
/// take turns.
class RankContest {
 public:
  /// `folder` outlives it: logs and what peers read go there.
  explicit RankContest(std::string folder) : folder_(std::move(folder)) {}

  /// Starts `ranks` that are `processes`, or threads of one.
  Status AddOurs(const std::string& name, const std::vector<std::string>& settings, int64_t ranks,
                 int64_t processes);
  /// Starts a script of bench/peers, in a process for each of `ranks`. `file`: what belongs to it
  /// in the folder, unique there.
  Status AddPyTorch(const std::string& name, const std::vector<std::string>& settings,
                    int64_t ranks, const std::string& python, const std::string& script,
                    const std::string& file);

  /// Measures all of them.
  Status TakeTurns(int64_t rounds);
  /// A table with a row for each, under `heading`, whose losses are beside those of the first.
  void Print(std::string_view heading) const;
  /// Compares `ours` with `peer`, of which `both` are the names.
  static void PrintGates(std::string_view both, const RankWorkers& ours, const RankWorkers& peer,
                         double most_time);

  /// In the order in which they were added.
  const std::vector<const RankWorkers*>& all() const { return all_; }

 private:
  Status Start(std::unique_ptr<RankWorkers> ranks, int64_t processes);

  std::string folder_;
  Contenders contenders_;
  std::vector<const RankWorkers*> all_;
};

}  // namespace strata::cli
