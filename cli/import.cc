#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/import_files.h"

namespace strata::cli {

Result<Exit> RunImport(Args args) {
  std::vector<std::string> words;
  std::string output;
  bool strict = false;
  Flags flags("import", "reads logs that PyTorch wrote with TORCH_TRACE set, and FX texts");
  flags.Positionals("LOG", &words, 1, "a log, a folder of logs of several ranks, or an FX text; also .gz, .zst");
  flags.Required("-o,--output", "T", &output, "the trace to write");
  flags.Switch("--strict", &strict, "stop at the first thing that cannot be read");
  flags.Example("strata import dedicated_log_torch_trace_rank_0_x1.log -o run.strata");
  flags.Example("TORCH_TRACE=logs python train.py && strata import logs -o run.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  const std::string command = fmt::format("strata import {} -o {}{}", fmt::join(words, " "), output,
                                          strict ? " --strict" : "");
  STRATA_TRY(const ImportSummary summary, ImportFiles(words, output, strict, command));
  fmt::print(stderr, "{}: {} records, {} graphs in {} snapshots, {} passes ({} changed nothing)\n",
             output, summary.records, summary.graphs, summary.snapshots, summary.passes,
             summary.unchanged_passes);
  return Exit::kOk;
}

}  // namespace strata::cli
