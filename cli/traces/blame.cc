#include "diff/history/blame.h"

#include <string>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/node_history.h"
#include "refs/find_node.h"
#include "refs/histories.h"
#include "refs/ref.h"

namespace strata::cli {

Result<Exit> RunBlame(Args args) {
  std::string where, node;
  bool as_json = false, follow = false;
  Flags flags("blame", "shows the history of a node across passes and graphs");
  flags.Positional("T", &where, "a trace or a log; a selector chooses the graph and the pass");
  flags.Positional("NODE", &node,
                   "a name, '#12' for a stable id, or a module path[:operator]; also GRAPH:NODE");
  flags.Switch("--follow", &follow, "also show the histories of its ancestors and replacements");
  flags.Switch("--json", &as_json, "print strata.blame/1");
  flags.Example("strata blame run.strata mm_3");
  flags.Example("strata blame 'run.strata#graph=step,pass=dce:before' detach_7 --follow");
  flags.Example("strata blame run.log layers.3.attention.wq:mm --json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const Ref ref, ParseRef(where));
  STRATA_TRY(const std::vector<History> histories, LoadHistories(where));
  STRATA_TRY(const HistoryNode target, FindHistoryNode(histories, ref, node));
  STRATA_TRY(const Blamer blamer, Blamer::Make(*target.history, target.graph));
  STRATA_TRY(const Blame blame, blamer.Follow(target.snapshot, target.name));
  std::vector<Blame> relatives;
  if (follow) {
    constexpr size_t kMaxRelatives = 32;
    STRATA_TRY(relatives, blamer.Relatives(target.snapshot, target.name, kMaxRelatives));
  }
  STRATA_RETURN_IF_ERROR(
      WriteFile("-", as_json ? BlameJson(blame, relatives) : BlameText(blame, relatives)));
  return Exit::kOk;
}

}  // namespace strata::cli
