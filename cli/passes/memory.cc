#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/passes/front.h"
#include "cli/render/memory/memory_front.h"
#include "cli/render/memory/memory_picture.h"
#include "cli/render/memory/memory_table.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

struct MemoryFlags {
  std::string ref;
  std::optional<std::string> before;
  int64_t top = 12;
  bool json = false;
  bool pareto = false;
  std::string picture;
  bool no_offload = false;
  std::string topology;
};

Result<bool> ParseFlags(Args args, MemoryFlags& out) {
  Flags flags("memory",
              "shows what a graph holds in memory at its peak, and what forward saves "
              "for backward, by value, module and line of code, as estimated from shapes");
  flags.Positional("REF", &out.ref, "a graph, T#graph=step");
  flags.Option("--before", "REF", &out.before, "also compare with this graph");
  flags.Option("--top", "N", &out.top, "number of rows of each table; 0: all");
  flags.Switch("--json", &out.json, "print strata.memory/1");
  flags.Switch("--pareto", &out.pareto,
               "show the plans of the pass budget: less memory for more time");
  flags.Option("--picture", "FILE", &out.picture, "with --pareto: also write an SVG picture");
  flags.Switch("--no-offload", &out.no_offload, "with --pareto: nothing is copied to the host");
  flags.Option("--topology", "NAME|FILE", &out.topology,
               "with --pareto: whose times are modelled; default: by the device of the graph");
  flags.Example("strata memory 't.strata#graph=step'");
  flags.Example(
      "strata memory 't.strata#pass=recompute:after' --before 't.strata#pass=recompute:before'");
  flags.Example("strata memory 't.strata#graph=step,pass=canonicalize:after' --pareto");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (go_on && !out.picture.empty() && !out.pareto)
    return Error("--picture requires --pareto: strata memory: there is no other picture");
  if (go_on && out.before && out.pareto)
    return Error("--pareto compares plans of one graph: --before {}: leave one of them out",
                 *out.before);
  return go_on;
}

}  // namespace

Result<Exit> RunMemory(Args args) {
  MemoryFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Snapshot snapshot, LoadRef(flags.ref));
  std::optional<Snapshot> before;
  if (flags.before) {
    STRATA_TRY(before, LoadRef(*flags.before));
  }
  const Graph* old = before ? &before->graph() : nullptr;
  std::optional<MemoryFront> front;
  if (flags.pareto) {
    STRATA_TRY(front,
               FrontOf(snapshot, flags.ref,
                       {.offload = !flags.no_offload, .topology = flags.topology, .times = {}}));
    if (!flags.picture.empty()) {
      STRATA_RETURN_IF_ERROR(WriteFile(flags.picture, FrontPicture(snapshot.graph(), *front)));
    }
  }
  std::string text;
  if (flags.json) {
    text = MemoryJson(snapshot.graph(), old, front ? &*front : nullptr);
  } else if (front) {
    text = FrontText(snapshot.graph(), *front);
  } else {
    const auto shown = static_cast<size_t>(std::max<int64_t>(flags.top, 0));
    if (old != nullptr) text = MemoryChangeText(*old, snapshot.graph(), shown) + "\n";
    text += MemoryText(snapshot.graph(), shown);
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli
