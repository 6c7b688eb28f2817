#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/render/memory_table.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

struct MemoryFlags {
  std::string ref;
  std::optional<std::string> before;
  int64_t top = 12;
  bool json = false;
};

Result<bool> ParseFlags(Args args, MemoryFlags& out) {
  Flags flags("memory",
              "shows what a graph holds in memory at its peak, and what forward saves "
              "for backward, as estimated from shapes");
  flags.Positional("REF", &out.ref, "a graph, T#graph=step");
  flags.Option("--before", "REF", &out.before, "also compare with this graph");
  flags.Option("--top", "N", &out.top, "number of rows of each table; 0: all");
  flags.Switch("--json", &out.json, "print strata.memory/1");
  flags.Example("strata memory 't.strata#graph=step'");
  flags.Example(
      "strata memory 't.strata#pass=recompute:after' --before 't.strata#pass=recompute:before'");
  return flags.Parse(args);
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
  std::string text;
  if (flags.json) {
    text = MemoryJson(snapshot.graph(), old);
  } else {
    if (old != nullptr) text = MemoryChangeText(*old, snapshot.graph()) + "\n";
    text += MemoryText(snapshot.graph(), static_cast<size_t>(std::max<int64_t>(flags.top, 0)));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli
