#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace strata {

/// The number behind `rank_` in a file's name.
std::optional<int32_t> RankOfPath(std::string_view path);

/// Finds the run that a record belongs to while a log is read. Each rank is a run. A record that
/// does not say its rank belongs to the rank of its process; as long as nothing is known of that,
/// to the rank in the file's name, else to the first one of the log, else to rank 0. A process may
/// learn its rank late: then what it wrote before is that rank's too.
class RunFinder {
 public:
  explicit RunFinder(std::string_view path) : file_rank_(RankOfPath(path)) {}

  /// Index of the run, at most `size()` before the call: then it is new.
  size_t RunOf(std::optional<int32_t> rank, std::string_view thread);
  size_t size() const { return runs_.size(); }
  /// As far as it is known.
  int32_t rank(size_t run) const { return runs_[run].rank; }

 private:
  struct Run {
    int32_t rank = 0;
    bool is_guess = false;
    std::string thread;  ///< that began it
  };
  size_t Unranked(std::string_view thread);

  std::optional<int32_t> file_rank_;
  std::vector<Run> runs_;
  std::unordered_map<std::string, size_t> run_of_thread_;
};

}  // namespace strata
