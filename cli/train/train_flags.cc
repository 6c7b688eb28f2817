#include "cli/train/train_flags.h"

#include <utility>

#include <fmt/format.h>

#include "cli/core/dotted_options.h"
#include "cli/core/flags.h"

namespace strata::cli {

namespace {

/// What is recorded and proven of a run.
void AddRecordFlags(Flags& flags, TrainFlags& out) {
  flags.Option("--trace", "FILE", &out.trace,
               "record graphs, passes and steps as a trace, which is readable during the run");
  flags.Option(
      "--dump-inputs", "FILE", &out.inputs,
      "write the inputs of the graphs of the first step, for strata run and compare-values");
  flags.Option("--profile", "N", &out.profile,
               "record the time of each node in the last N steps, for strata profile");
  flags.Choice("--values", &out.values, {"none", "last"},
               "record minimum, maximum, mean and NaNs of each node in the last step");
  flags.Switch("--prove", &out.prove,
               "after each pass, run the graphs before and after it on the same inputs and compare "
               "the values of their nodes");
  flags.Tolerance("--prove-ulps", "--prove-tolerance", &out.tolerance);
  flags.Option(
      "--prove-inputs", "FILE", &out.prove_inputs,
      "safetensors file with the names of the inputs, from --dump-inputs of an earlier run "
      "(default: synthetic)");
  flags.Switch("--prove-exact", &out.prove_exact,
               "after each pass, prove in exact arithmetic that the graphs compute what they "
               "computed before, as strata prove does");
}

}  // namespace

Result<bool> ParseTrainFlags(Args args, TrainFlags& out) {
  std::optional<std::string> program, library;
  Flags flags("train", "trains a model and records every graph and pass");
  flags.Positional("CONFIG", &out.config, "configuration, TOML or JSON");
  flags.Repeated("--set", "KEY=VALUE", &out.overrides,
                 "override a field of the configuration: optimizer.lr=0.01; --optimizer.lr 0.01 "
                 "is the same");
  flags.Option("--program", "REF", &program,
               "train a step that another program traced, the joint graph of a log or a text, with "
               "parameters from --init; sets model = 'program'");
  flags.Option("--model", "FILE", &library,
               "train the model of a shared library (docs/own_models.md); sets model = 'library'");
  flags.Option("--init", "PATH", &out.init,
               "initial parameters: a safetensors file or a folder of them, named as torchtitan or "
               "as Hugging Face names them (default: random, from the seed)");
  flags.Option("--tokens", "FILE", &out.tokens,
               "int64 'tokens' [steps, batch, seq+1] (default: synthetic)");
  flags.Option("--passes", "PIPELINE", &out.passes,
               "passes between trace and execution (default: compile.passes, else "
               "dce,canonicalize,fuse)");
  flags.Option("--metrics", "FILE", &out.outputs.metrics,
               "write loss and gradient norm, one JSON line per step");
  flags.Option("--dump-grads", "FILE", &out.outputs.gradients,
               "write the gradients of the first step that this run does, before clipping");
  flags.Option("--save", "FILE", &out.outputs.parameters,
               "write the parameters after the last step");
  flags.Switch("--resume", &out.resume,
               "continue from the latest checkpoint, if one exists; requires checkpoint.enable");
  flags.Switch(
      "--overwrite", &out.overwrite,
      "replace checkpoints and metrics of another run; without it, such checkpoints are an "
      "error, and such metrics are kept as FILE.1");
  AddRecordFlags(flags, out);
  flags.Option("--nproc", "N", &out.num_processes,
               "start N processes, one for each rank (default: ranks are threads of one process)",
               1, 1024);
  flags.Threads(&out.threads);
  flags.Operators(&out.operators);
  flags.Option("--control", "PATH", &out.control,
               "create a socket there, over which strata attach stops and inspects this training");
  flags.Switch("--control-wait", &out.control_wait,
               "stop before the first pass, until a client of --control continues");
  flags.Example("strata train configs/demo_llama3.toml --trace out/demo.strata");
  flags.Example("strata train config.json --set steps=5 --set optimizer.lr=1e-4 --metrics m.jsonl");
  flags.Example("strata train config.toml --set checkpoint.enable=true --resume");
  flags.Example("strata train config.toml --program step.txt --init parameters.safetensors");
  flags.Example("strata train config.toml --model build/libmine.so");
  STRATA_TRY(const bool go_on, flags.Parse(WithSetOptions(args)));
  if (program && library) return Error("--program and --model are two models: give one of them");
  for (const auto& [path, model] : {std::pair(program, "program"), std::pair(library, "library")}) {
    if (!path) continue;
    out.overrides.push_back(fmt::format("model={}", model));
    out.overrides.push_back(fmt::format("model_path={}", *path));
  }
  return go_on;
}

std::vector<NamedPath> OutputsOf(const TrainFlags& flags) {
  std::vector<NamedPath> outputs;
  const auto add = [&](std::string name, const std::optional<std::string>& path) {
    if (path) outputs.push_back({std::move(name), *path});
  };
  add("--metrics", flags.outputs.metrics);
  add("--dump-grads", flags.outputs.gradients);
  add("--save", flags.outputs.parameters);
  add("--trace", flags.trace);
  add("--dump-inputs", flags.inputs);
  return outputs;
}

}  // namespace strata::cli
