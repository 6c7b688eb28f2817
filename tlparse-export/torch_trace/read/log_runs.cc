#include "tlparse-export/torch_trace/read/log_runs.h"

#include <algorithm>
#include <charconv>

namespace strata {

std::optional<int32_t> RankOfPath(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view kRank = "rank_";
  const size_t at = file.find(kRank);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = file.substr(at + kRank.size());
  int32_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc() || rank < 0) return std::nullopt;
  return rank;
}

size_t RunFinder::RunOf(std::optional<int32_t> rank, std::string_view thread) {
  if (!rank) return Unranked(thread);
  const auto known = std::ranges::find_if(
      runs_, [&](const Run& run) { return run.rank == *rank && !run.is_guess; });
  auto run = static_cast<size_t>(known - runs_.begin());
  if (known == runs_.end() && !runs_.empty() && runs_[0].is_guess && runs_[0].thread == thread) {
    runs_[0].rank = *rank;
    runs_[0].is_guess = false;
    run = 0;
  } else if (known == runs_.end()) {
    runs_.push_back({*rank, false, std::string(thread)});
  }
  run_of_thread_.try_emplace(std::string(thread), run);
  return run;
}

size_t RunFinder::Unranked(std::string_view thread) {
  if (const auto known = run_of_thread_.find(std::string(thread)); known != run_of_thread_.end()) {
    return known->second;
  }
  if (runs_.empty()) runs_.push_back({file_rank_.value_or(0), true, std::string(thread)});
  const auto named =
      std::ranges::find_if(runs_, [&](const Run& run) { return run.rank == file_rank_; });
  return named == runs_.end() ? 0 : static_cast<size_t>(named - runs_.begin());
}

}  // namespace strata
