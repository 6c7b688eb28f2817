#include "bench/rank_contest.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "bench/peers.h"
#include "bench/shapes.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

double PeakMegabytesOf(const RankWorkers& ranks) {
  return static_cast<double>(ranks.first.peak_bytes) / 1e6;
}

/// The largest difference of a loss.
double LossDifference(const RankWorkers& a, const RankWorkers& b) {
  double largest = 0;
  for (size_t i = 0; i < a.first.losses.size(); ++i)
    largest = std::max(largest, std::abs(a.first.losses[i] - b.first.losses[i]));
  return largest;
}

}  // namespace

Status RankContest::Start(std::unique_ptr<RankWorkers> ranks, int64_t processes) {
  STRATA_RETURN_IF_ERROR(ranks->Start(processes));
  all_.push_back(ranks.get());
  contenders_.push_back(std::move(ranks));
  return Ok();
}

Status RankContest::AddOurs(const std::string& name, const std::vector<std::string>& settings,
                            int64_t ranks, int64_t processes) {
  std::vector<std::string> words = {"/proc/self/exe", "bench-rank"};
  words.insert(words.end(), settings.begin(), settings.end());
  return Start(std::make_unique<RankWorkers>(name, ranks, std::move(words), folder_ + "/" + name),
               processes);
}

Status RankContest::AddPyTorch(const std::string& name, const std::vector<std::string>& settings,
                               int64_t ranks, const std::string& python, const std::string& script,
                               const std::string& file) {
  STRATA_TRY(const TrainConfig config, ConfigOf(settings));
  STRATA_TRY(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(
          {.config = config, .data = MakeTokenSource(TokenData::Synthetic(config)), .threads = 1}));
  STRATA_TRY(std::vector<std::string> words,
             PeerCommand(python, {.name = file, .script = script}, *trainer, folder_));
  auto peer = std::make_unique<RankWorkers>(name, ranks, std::move(words), folder_ + "/" + name);
  peer->is_pytorch = true;
  return Start(std::move(peer), ranks);
}

Status RankContest::TakeTurns(int64_t rounds) {
  for (const std::unique_ptr<Contender>& contender : contenders_) {
    STRATA_TRY(contender->first, contender->Begin());
  }
  return cli::TakeTurns(contenders_, rounds, /*slice_ms=*/500);
}

void RankContest::Print(std::string_view heading) const {
  size_t width = heading.size();
  for (const RankWorkers* ranks : all_)
    width = std::max(width, ranks->name.size());
  fmt::print("  {:<{}} {:>9} {:>9} {:>15} {:>8} {:>7}\n", heading, width, "wall ms", "cpu ms",
             "peak MB a rank", "first s", "loss ±");
  for (const RankWorkers* ranks : all_) {
    fmt::print("  {:<{}} {:>9.2f} {:>9.2f} {:>15.1f} {:>8.2f} {:>7.0e}\n", ranks->name, width,
               Median(ranks->slices, &StepTime::wall), Median(ranks->slices, &StepTime::cpu),
               PeakMegabytesOf(*ranks), ranks->first.first_wall,
               LossDifference(*ranks, *all_.front()));
  }
}

void RankContest::PrintGates(std::string_view both, const RankWorkers& ours,
                             const RankWorkers& peer, double most_time) {
  PrintGate(fmt::format("step time, {}", both), RatioOf(ours, peer, &StepTime::wall), most_time);
  PrintGate(fmt::format("peak memory, {}", both), PeakMegabytesOf(ours) / PeakMegabytesOf(peer), 1);
}

}  // namespace strata::cli
