#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/recorder.h"
#include "cli/ref.h"
#include "ir/file.h"
#include "ir/native_text.h"
#include "ir/text.h"
#include "passes/core/instrumentations.h"
#include "passes/core/pass_manager.h"
#include "passes/passes.h"

namespace strata::cli {
namespace {

struct OptFlags {
  std::string ref, passes;
  std::optional<std::string> trace, print_on_change, reproducer;
  bool list = false, time = false;
};

Result<bool> ParseFlags(Args args, OptFlags& out) {
  Flags flags("opt", "runs passes on a graph; prints what they leave, or records every pass");
  flags.OptionalPositional("REF", &out.ref, "the graph; of a text with several, all are worked on");
  flags.Option("--passes", "PIPELINE", &out.passes, "\"dce,canonicalize\": see docs/passes.md");
  flags.Option("-o,--output", "T", &out.trace,
               "record the graph before and after each pass as a trace");
  flags.Switch("--list", &out.list, "list the passes and their options");
  flags.Option("--print-on-change", "RE", &out.print_on_change,
               "print graphs before and after passes of that name that change them, on stderr");
  flags.Switch("--time", &out.time, "print what each pass took and did, on stderr");
  flags.Option("--reproducer", "FILE", &out.reproducer,
               "if a pass fails, write the graph that the passes began with");
  flags.Example("strata opt step.txt --passes dce,canonicalize");
  flags.Example("strata opt 'run.strata#graph=step' --passes canonicalize -o out/opt.strata");
  flags.Example("strata opt --list");
  return flags.Parse(args);
}

std::string CommandLine(Args args) {
  std::string line = "strata opt";
  for (const std::string& word : args)
    line += " " + ShellWord(word);
  return line;
}

void PrintAside(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// The trace that a run is recorded into; nothing when there is none to write.
class Recording {
 public:
  static Result<Recording> Begin(const OptFlags& flags, Args args, PassManager& manager) {
    Recording recording;
    if (!flags.trace) return recording;
    STRATA_TRY(const Ref ref, ParseRef(flags.ref));
    if (std::error_code ignored; std::filesystem::equivalent(ref.file, *flags.trace, ignored)) {
      return Error("output is the input: {}: give another name", *flags.trace);
    }
    STRATA_TRY(recording.trace_, TraceWriter::Create(*flags.trace));
    STRATA_TRY(const RunId run, recording.trace_->BeginRun({.kind = RunKind::kOpt,
                                                            .source = flags.ref,
                                                            .command = CommandLine(args),
                                                            .pipeline = manager.Text(),
                                                            .config = {}}));
    recording.recorder_ = std::make_unique<Recorder>(*recording.trace_, run);
    recording.watcher_ = std::make_unique<RecordSnapshots>(*recording.recorder_);
    manager.Watch(*recording.watcher_);
    manager.set_run_ref(fmt::format("{}#run={}", *flags.trace, static_cast<int64_t>(run)));
    return recording;
  }

  /// A trace of a failed pass is kept, one that could not be written is not.
  Status End(bool passed) {
    if (!trace_) return Ok();
    const std::string path = trace_->path();
    Status ended =
        trace_->EndRun(recorder_->run(), passed ? RunStatus::kFinished : RunStatus::kFailed);
    if (ended) ended = trace_->Finish();
    if (!ended) {
      trace_.reset();
      std::error_code ignored;
      for (const char* suffix : {"", "-wal", "-shm"})
        std::filesystem::remove(path + suffix, ignored);
    }
    return ended;
  }

 private:
  std::unique_ptr<TraceWriter> trace_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<RecordSnapshots> watcher_;
};

Result<PassManager> MakeManager(const OptFlags& flags) {
  if (flags.ref.empty()) {
    return Error("no REF: strata opt: name a graph, or list the passes with --list");
  }
  if (flags.passes.empty()) {
    return Error("no passes: strata opt: give --passes \"dce,canonicalize\"; --list shows all");
  }
  PassManager manager({.input_ref = flags.reproducer.value_or(flags.ref)});
  STRATA_TRY(auto passes, ParsePipeline(flags.passes, AllPasses()));
  for (auto& pass : passes)
    manager.Add(std::move(pass));
  return manager;
}

}  // namespace

Result<Exit> RunOpt(Args args) {
  OptFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  if (flags.list) {
    STRATA_RETURN_IF_ERROR(WriteFile("-", DescribePasses(AllPasses())));
    return Exit::kOk;
  }

  STRATA_TRY(PassManager manager, MakeManager(flags));
  std::optional<PrintOnChange> print;
  if (flags.print_on_change) {
    STRATA_TRY(print, PrintOnChange::Create(*flags.print_on_change, PrintAside));
    manager.Watch(*print);
  }
  TimePasses times;
  if (flags.time) manager.Watch(times);
  Reproducer reproducer(flags.reproducer.value_or(""));
  if (flags.reproducer) manager.Watch(reproducer);

  STRATA_TRY(const Snapshot input, LoadRef(flags.ref, {.whole_text = true}));
  STRATA_TRY(Recording recording, Recording::Begin(flags, args, manager));
  const Result<Changed> passed = manager.Run(*input.module);
  if (flags.time) PrintAside(times.Table());
  const Status recorded = recording.End(passed.has_value());
  if (!passed) return passed.error();
  STRATA_RETURN_IF_ERROR(recorded);
  if (!flags.trace) STRATA_RETURN_IF_ERROR(WriteFile("-", PrintText(*input.module)));
  return Exit::kOk;
}

}  // namespace strata::cli
