#include "viewer/compare/rank_findings.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/ranks/ranks.h"
#include "refs/histories.h"

namespace strata::viewer {

std::string RangesText(const std::vector<int32_t>& numbers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    parts.push_back(end - i > 1 ? fmt::format("{}–{}", numbers[i], numbers[end - 1])
                                : fmt::format("{}", numbers[i]));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> FindCollectiveMismatches(const std::string& trace) {
  std::vector<std::string> lines;
  const Result<std::vector<History>> histories = LoadHistories(trace);
  if (!histories) return {"Collectives were not compared: " + histories.error().message()};
  std::set<int32_t> ranks;
  for (const History& history : *histories)
    ranks.insert(history.rank);
  if (ranks.size() != histories->size()) return {};
  const Result<RanksReport> report = CompareRanks(*histories);
  if (!report) return {"Collectives were not compared: " + report.error().message()};
  for (const GraphMismatch& found : report->collectives) {
    const CollectiveMismatch& m = found.mismatch;
    lines.push_back(fmt::format("{}, collective {} of group {}, rank{} {}: {}", found.graph,
                                m.index, m.group, m.ranks.size() == 1 ? "" : "s",
                                RangesText(m.ranks), m.what));
  }
  return lines;
}

}  // namespace strata::viewer
