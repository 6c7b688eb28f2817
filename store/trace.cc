#include "store/trace.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "store/database/schema.h"

namespace strata {

std::string_view ToString(RunKind kind) {
  switch (kind) {
    case RunKind::kImport:
      return "import";
    case RunKind::kOpt:
      return "opt";
    case RunKind::kTrain:
      return "train";
  }
  return "";
}

std::string_view ToString(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kFinished:
      return "finished";
    case RunStatus::kFailed:
      return "failed";
    case RunStatus::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::string_view ToString(PassOutcome outcome) {
  switch (outcome) {
    case PassOutcome::kOk:
      return "ok";
    case PassOutcome::kUnchanged:
      return "unchanged";
    case PassOutcome::kFailed:
      return "failed";
  }
  return "";
}

bool HasRank(const RunInfo& run, int64_t rank) {
  return run.is_of_all_ranks ? 0 <= rank && rank < run.world : rank == run.rank;
}

std::string RanksText(const RunInfo& run) {
  return run.is_of_all_ranks ? fmt::format("ranks 0..{}", run.world - 1)
                             : fmt::format("rank {} of {}", run.rank, run.world);
}

const StoredGraph* StoredRun::FindGraph(std::string_view wanted) const {
  const auto found = std::ranges::find(graphs, wanted, &StoredGraph::name);
  return found == graphs.end() ? nullptr : &*found;
}

bool LooksLikeTrace(const std::string& path) {
  // https://www.sqlite.org/fileformat.html, 1.3: the header string, and the application id at 68.
  constexpr std::string_view kHeader("SQLite format 3\0", 16);
  constexpr size_t kIdOffset = 68;
  // What is read from a pipe to look at it is gone for its reader; and no trace comes through one.
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  char bytes[kIdOffset + 4];
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes, sizeof(bytes)) || !std::string_view(bytes, 16).starts_with(kHeader)) {
    return false;
  }
  uint32_t id = 0;
  for (size_t i = 0; i < 4; ++i)
    id = id << 8 | static_cast<uint8_t>(bytes[kIdOffset + i]);
  return id == static_cast<uint32_t>(kApplicationId);
}

}  // namespace strata
