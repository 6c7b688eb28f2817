#include "cli/passes/opt.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/exec_runtime.h"
#include "cli/core/flags.h"
#include "cli/core/stop_between_passes.h"
#include "cli/prove/prove_exact.h"
#include "ir/text/native_text.h"
#include "passes/core/instrumentations.h"
#include "passes/core/pass_manager.h"
#include "passes/passes.h"
#include "refs/recording/recording.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

struct OptFlags {
  std::string ref, passes;
  std::optional<std::string> trace, print_on_change, reproducer;
  bool list = false, time = false, prove = false, prove_exact = false;
  ProveFlags proof;
};

Result<bool> ParseFlags(Args args, OptFlags& out) {
  Flags flags("opt", "runs passes on a graph; prints the result, or records every pass");
  flags.OptionalPositional("REF", &out.ref, "the graph; passes run on all graphs of a text");
  flags.Option("--passes", "PIPELINE", &out.passes, "\"dce,canonicalize\": see docs/passes.md");
  flags.Option("-o,--output", "T", &out.trace,
               "record the graph before and after each pass as a trace");
  flags.Switch("--list", &out.list, "list the passes and their options");
  flags.Option(
      "--print-on-change", "RE", &out.print_on_change,
      "print the graph before and after each pass that matches RE and changes it, on stderr");
  flags.Switch("--time", &out.time, "print the time and the effect of each pass, on stderr");
  flags.Switch("--prove", &out.prove,
               "after each pass, run the graphs before and after it on the same inputs and compare "
               "the values of their nodes");
  flags.Tolerance("--prove-ulps", "--prove-tolerance", &out.proof.tolerance);
  flags.Option("--prove-inputs", "FILE", &out.proof.inputs,
               "safetensors file with the names of the inputs, from train --dump-inputs (default: "
               "synthetic)");
  flags.Switch("--prove-exact", &out.prove_exact,
               "after each pass, prove in exact arithmetic that the graphs compute what they "
               "computed before, as strata prove does");
  flags.Threads(&out.proof.threads);
  flags.Operators(&out.proof.operators);
  flags.Option("--reproducer", "FILE", &out.reproducer, "if a pass fails, write the input graph");
  flags.Example("strata opt step.txt --passes dce,canonicalize");
  flags.Example("strata opt 'run.strata#graph=step' --passes canonicalize -o out/opt.strata");
  flags.Example("strata opt step.txt --passes dce,canonicalize --prove");
  flags.Example("strata opt step.txt --passes dce,canonicalize --prove-exact");
  flags.Example("strata opt --list");
  return flags.Parse(args);
}

void PrintAside(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Result<Recording> BeginRecording(const OptFlags& flags, Args args, PassManager& manager) {
  if (flags.trace) {
    STRATA_TRY(const Ref ref, ParseRef(flags.ref));
    if (std::error_code ignored; std::filesystem::equivalent(ref.file, *flags.trace, ignored)) {
      return Error("output is the input: {}: give another name", *flags.trace);
    }
  }
  STRATA_TRY(Recording recording,
             Recording::Begin(flags.trace, {.kind = RunKind::kOpt,
                                            .source = flags.ref,
                                            .command = CommandLine("opt", args),
                                            .pipeline = manager.Text(),
                                            .config = {}}));
  if (recording.trace() != nullptr) {
    manager.Watch(recording.watcher());
    manager.set_run_ref(recording.RunRef());
  }
  return recording;
}

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
  return RunOptWith(args, nullptr);
}

Result<Exit> RunOptWith(Args args, MakeProver make_prover) {
  OptFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  if (flags.list) {
    STRATA_RETURN_IF_ERROR(WriteFile("-", DescribePasses(AllPasses())));
    return Exit::kOk;
  }

  if (flags.prove && make_prover == nullptr) return ExecRuntime("opt", args);

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
  STRATA_TRY(Recording recording, BeginRecording(flags, args, manager));
  std::optional<StopBetweenPasses> stop;
  if (flags.trace) manager.Watch(stop.emplace());
  Prover prover;
  if (flags.prove) {
    STRATA_TRY(prover, make_prover(flags.proof));
    STRATA_RETURN_IF_ERROR(recording.AddEnvironment(prover.environment));
    manager.Watch(*prover.watcher);
  }
  ProveExactly exact(recording);
  if (flags.prove_exact) manager.Watch(exact);
  const Result<Changed> passed = manager.Run(*input.module);
  if (flags.time) PrintAside(times.Table());
  const Status recorded =
      recording.End(passed ? Ok() : Status(passed.error()), stop && stop->request().came());
  if (!passed) return passed.error();
  STRATA_RETURN_IF_ERROR(recorded);
  if (!flags.trace) STRATA_RETURN_IF_ERROR(WriteFile("-", PrintText(*input.module)));
  return Exit::kOk;
}

}  // namespace strata::cli
