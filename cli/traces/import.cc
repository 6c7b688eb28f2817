#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "refs/import_files.h"
#include "refs/ref.h"
#include "store/trace_reader.h"
#include "tlparse-export/torch_trace/export/compile_events.h"

namespace strata::cli {

Result<Exit> RunImport(Args args) {
  std::vector<std::string> words;
  std::string output;
  ImportOptions options;
  bool follow = false;
  int64_t threads = 0;
  double idle = 0;
  Flags flags("import", "reads logs that PyTorch wrote with TORCH_TRACE set, and FX texts");
  flags.Positionals("LOG", &words, 1,
                    "a log, a folder of logs of several ranks, an FX text, a folder that tlparse "
                    "wrote, exchange files of Python; also .gz, .zst; '-': standard input");
  flags.Required("-o,--output", "T", &output, "the trace to write");
  flags.Switch("--strict", &options.strict, "stop at the first error");
  flags.Switch(
      "--follow", &follow,
      "continue to read while the logs grow, until Ctrl-C; the trace is readable meanwhile");
  flags.Option("--idle", "SECONDS", &idle,
               "with --follow: stop after SECONDS without new data; 0: never");
  flags.Option("--threads", "N", &threads,
               "reader threads (0: one per rank, at most 4); does not affect the output");
  flags.Example("strata import dedicated_log_torch_trace_rank_0_x1.log -o run.strata");
  flags.Example("TORCH_TRACE=logs python train.py && strata import logs -o run.strata");
  flags.Example("strata import logs --follow --idle 600 -o run.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (idle > 0 && !follow) return Error("--idle without --follow: strata import: add --follow");
  if (follow && std::ranges::find(words, "-") != words.end()) {
    return Error("cannot follow: standard input: give a file or a folder");
  }
  for (const std::string& word : words)
    STRATA_RETURN_IF_ERROR(CheckWholeFile(word));
  options.threads = static_cast<int>(threads);
  options.command = fmt::format("strata import {} -o {}{}{}", fmt::join(words, " "), output,
                                options.strict ? " --strict" : "", follow ? " --follow" : "");
  std::optional<double> idle_s;
  if (idle > 0) idle_s = idle;
  STRATA_TRY(const ImportSummary summary, follow ? FollowFiles(words, output, options, idle_s, Warn)
                                                 : ImportFiles(words, output, options, Warn));
  fmt::print(stderr, "{}: {} records, {} graphs in {} snapshots, {} passes ({} changed nothing)\n",
             output, summary.records, summary.graphs, summary.snapshots, summary.passes,
             summary.unchanged_passes);
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(output));
  std::vector<CompileEvent> events;
  for (const StoredRun& run : trace->runs()) {
    STRATA_TRY(std::vector<CompileEvent> some, ReadCompileEvents(*trace, run));
    std::ranges::move(some, std::back_inserter(events));
  }
  if (const std::string text = CompileEventsText(events); !text.empty())
    fmt::print(stderr, "{}: {}: 'strata ls' lists them\n", output, text);
  return Exit::kOk;
}

}  // namespace strata::cli
