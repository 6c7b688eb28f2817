#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/divergence.h"
#include "diff/history/history_code.h"
#include "diff/ranks/rank_bisect.h"
#include "refs/histories.h"

namespace strata::cli {

Result<Exit> RunBisect(Args args) {
  std::string first, second;
  bool as_json = false;
  Flags flags("bisect",
              "finds the first pass at which two runs diverge, and how their generated code "
              "differs; exit status 1: they do");
  flags.Positional("A", &first, "a run: a trace or a log, with #run= or #rank= if it has several");
  flags.Positional("B", &second, "another run");
  flags.Switch("--json", &as_json, "print strata.bisect/1");
  flags.Example("strata bisect yesterday.strata today.strata");
  flags.Example("strata bisect 'run.strata#rank=0' 'run.strata#rank=3' --json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const History a, LoadHistory(first));
  STRATA_TRY(const History b, LoadHistory(second));
  STRATA_TRY(const std::optional<Divergence> divergence, FindRankDivergence(a, b));
  // Code of different ranks differs in what follows from the rank.
  std::vector<CodeDifference> code;
  if (a.rank == b.rank) {
    STRATA_TRY(code, DiffGeneratedCode(a, b));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", as_json ? DivergenceJson(divergence, code, a, b)
                                                : DivergenceText(divergence, code, a, b)));
  return divergence || !code.empty() ? Exit::kDifferences : Exit::kOk;
}

}  // namespace strata::cli
