#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/trace_list.h"
#include "refs/export_refs.h"
#include "refs/ref.h"
#include "refs/source_trace.h"
#include "store/trace_reader.h"

namespace strata::cli {

Result<Exit> RunLs(Args args) {
  std::string path;
  bool as_json = false;
  Flags flags("ls", "lists runs: graphs, passes and what was executed");
  flags.Positional("FILE", &path, "a trace, a log, a folder of logs, or an FX text");
  flags.Switch("--json", &as_json, "print strata.ls/1");
  flags.Example("strata ls out/demo.strata");
  flags.Example("strata ls out/demo.strata --json");
  flags.Example("strata ls logs/");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_RETURN_IF_ERROR(CheckWholeFile(path));
  STRATA_TRY(const SourceTrace source, SourceTrace::Open(path, "strata ls " + path, Warn));
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(source.path()));
  CompileEventsOfRuns events;
  for (const StoredRun& run : trace->runs()) {
    STRATA_TRY(std::vector<CompileEvent> some, ReadCompileEvents(*trace, run));
    if (!some.empty()) events[run.id] = std::move(some);
  }
  STRATA_TRY(const Ref ref, ParseRef(path));
  const RefOf ref_of = RefsForExport(ref, *trace, source.is_imported());
  STRATA_RETURN_IF_ERROR(
      WriteFile("-", as_json ? ListJson(*trace, events, ref_of) : ListText(*trace, events)));
  return Exit::kOk;
}

}  // namespace strata::cli
