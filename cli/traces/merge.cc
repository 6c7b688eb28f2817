#include "store/merge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "refs/ref.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

namespace strata::cli {
namespace {

/// Errors: two traces have runs of one rank.
Status CheckRanks(const std::vector<std::unique_ptr<TraceReader>>& traces) {
  std::map<int32_t, const TraceReader*> owners;
  for (const auto& trace : traces) {
    for (const StoredRun& run : trace->runs()) {
      const auto [owner, is_new] = owners.try_emplace(run.info.rank, trace.get());
      if (is_new || owner->second == trace.get()) continue;
      return Error(
          "two traces of rank {}: {} and {}: give one trace per rank, or number them with "
          "--renumber",
          run.info.rank, owner->second->path(), trace->path());
    }
  }
  return Ok();
}

}  // namespace

Result<Exit> RunMerge(Args args) {
  std::vector<std::string> paths;
  std::string output;
  bool renumber = false;
  Flags flags("merge", "joins traces of several ranks into one");
  flags.Positionals("T", &paths, 1,
                    "traces; for logs use 'strata import', which makes one trace of all");
  flags.Required("-o,--output", "T", &output, "the trace to write");
  flags.Switch("--renumber", &renumber, "number the ranks in the order of the traces");
  flags.Example("strata merge rank0.strata rank1.strata -o run.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  std::vector<std::unique_ptr<TraceReader>> traces;
  for (const std::string& path : paths) {
    STRATA_RETURN_IF_ERROR(CheckWholeFile(path));
    STRATA_TRY(std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
    traces.push_back(std::move(trace));
  }
  if (!renumber) STRATA_RETURN_IF_ERROR(CheckRanks(traces));
  int32_t world = static_cast<int32_t>(renumber ? traces.size() : 1);
  for (const auto& trace : traces) {
    for (const StoredRun& run : trace->runs())
      world = std::max({world, run.info.world, run.info.rank + 1});
  }
  STRATA_TRY(const std::unique_ptr<TraceWriter> merged,
             TraceWriter::Create(output, TraceWriter::Mode::kAside));
  for (size_t i = 0; i < traces.size(); ++i) {
    for (const StoredRun& run : traces[i]->runs()) {
      RunInfo info = run.info;
      if (renumber) {
        info.rank = static_cast<int32_t>(i);
        info.is_of_all_ranks = false;
      }
      info.world = world;
      STRATA_TRY(const RunId id, CopyRun(*traces[i], run, info, *merged));
      static_cast<void>(id);
    }
  }
  STRATA_RETURN_IF_ERROR(merged->Finish());
  return Exit::kOk;
}

}  // namespace strata::cli
