#include "diff/ranks/ranks.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/ranks_report.h"
#include "refs/histories.h"

namespace strata::cli {
namespace {

/// Numbers runs in order, if several have the same rank.
void NumberRanks(std::vector<History>& histories) {
  std::set<int32_t> distinct;
  size_t all = 0;
  for (const History& history : histories) {
    for (int32_t k = 0; k < history.num_ranks; ++k, ++all)
      distinct.insert(history.rank + k);
  }
  if (distinct.size() == all) return;
  Warn("several runs have the same rank: they are numbered in the order of the command line");
  int32_t next = 0;
  for (History& history : histories)
    history.rank = std::exchange(next, next + history.num_ranks);
}

}  // namespace

Result<Exit> RunRanks(Args args) {
  std::vector<std::string> words;
  bool as_json = false;
  Flags flags("ranks", "compares the ranks of one program; exit status 1: they differ");
  flags.Positionals("T", &words, 1, "traces or logs, of one rank or many, or a folder of them");
  flags.Switch("--json", &as_json, "print strata.ranks/1");
  flags.Example("strata ranks logs/");
  flags.Example("strata ranks rank0.strata rank1.strata --json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  std::vector<History> histories;
  for (const std::string& word : words) {
    STRATA_TRY(std::vector<History> some, LoadHistories(word));
    std::ranges::move(some, std::back_inserter(histories));
  }
  NumberRanks(histories);
  STRATA_TRY(const RanksReport report, CompareRanks(histories));
  STRATA_RETURN_IF_ERROR(
      WriteFile("-", as_json ? RanksReportJson(report) : RanksReportText(report)));
  return report.Equal() ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
