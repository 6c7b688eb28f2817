#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/dotted_options.h"
#include "cli/core/flags.h"
#include "cli/core/stop_between_passes.h"
#include "ir/text/native_text.h"
#include "passes/core/pass_manager.h"
#include "refs/recording/recording.h"
#include "runtime/models/library_model.h"
#include "runtime/plan/device/device.h"
#include "runtime/trace/scope.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/trace_programs.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

struct TraceFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::optional<std::string> trace;
  std::optional<std::string> passes;
  double gpu = 0.0;
  int64_t world = 0;
  bool time = false;
};

/// A GPU of that compute capability, with the cuDNN of `./dev setup cuda`.
DeviceTraits Gpu(double capability) {
  return {.name = "cuda:0", .is_gpu = true, .capability = capability, .cudnn = 91900};
}

Result<bool> ParseFlags(Args args, TraceFlags& out) {
  Flags flags("trace", "traces the training of a model from shapes alone: no weights, any size");
  flags.Positional("CONFIG", &out.config, "configuration, TOML or JSON");
  flags.Repeated("--set", "KEY=VALUE", &out.overrides,
                 "override a field of the configuration: compile.symbolic_dims=batch_and_seq");
  flags.Option("--passes", "PIPELINE", &out.passes,
               "passes after the trace; \"\": none (default: compile.passes, else "
               "dce,canonicalize)");
  flags.Option("-o,--output", "T", &out.trace,
               "record the graphs and passes as a trace (default: print the graphs as text)");
  flags.Option("--gpu", "CAPABILITY", &out.gpu,
               "trace for a GPU of this compute capability (9.0: H100); no GPU is needed");
  flags.Option("--world", "N", &out.world,
               "ranks that the run would have (default: those of the degrees)");
  flags.Switch("--time", &out.time, "print the times of tracing and of the passes, on stderr");
  flags.Example("strata trace configs/llama3/405b.toml -o out/405b.strata --time");
  flags.Example("strata trace configs/llama3/8b.toml --world 64 -o out/8b.strata");
  flags.Example("strata trace config.toml --set compile.symbolic_dims=batch --passes dce");
  return flags.Parse(WithSetOptions(args));
}

class Stopwatch {
 public:
  /// `1.20 s (1.15 s of processor time)`.
  std::string Text() const {
    return fmt::format(
        "{:.2f} s ({:.2f} s of processor time)",
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(),
        static_cast<double>(std::clock() - clock_) / CLOCKS_PER_SEC);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::clock_t clock_ = std::clock();
};

std::string Sizes(const Module& module) {
  std::string text;
  for (const GraphId id : module.programs()) {
    const Graph& graph = module.graph(id);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", graph.name_text(),
                        graph.num_printed_nodes());
  }
  return text;
}

Result<Changed> TraceAndRun(const TraceFlags& flags, const TrainConfig& config,
                            PassManager& manager, Recording& recording, Module& module) {
  if (recording.trace() != nullptr) {
    manager.Watch(recording.watcher());
    manager.set_run_ref(recording.RunRef());
    module.ReserveStableIds(recording.trace()->next_stable_id());
  }
  Constants constants;
  if (config.model == ModelFamily::kProgram) {
    return Error("a program is traced already: {}: strata show prints it", config.model_path);
  }
  STRATA_RETURN_IF_ERROR(LoadModelLibrary(config));
  const Stopwatch tracing;
  STRATA_RETURN_IF_ERROR(TraceTraining(TrainSpec(config), module, constants));
  const std::string traced = tracing.Text();
  const std::string nodes = Sizes(module);
  const Stopwatch passing;
  auto passed = manager.Run(module);
  if (flags.time) {
    fmt::print(stderr, "traced in {}: nodes: {}; passes in {}\n", traced, nodes, passing.Text());
  }
  return passed;
}

}  // namespace

Result<Exit> RunTrace(Args args) {
  TraceFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  const auto world = flags.world > 0 ? std::optional(flags.world) : std::nullopt;
  STRATA_TRY(const TrainConfig config, LoadTrainConfig(flags.config, flags.overrides, world));
  if (config.device != DeviceKind::kCpu && flags.gpu == 0.0) {
    Warn("the graphs are those of the CPU: device: name the compute capability of a GPU by --gpu");
  }
  const TargetScope target(flags.gpu > 0.0 ? Gpu(flags.gpu) : DeviceTraits());
  PassManager manager;
  const std::string& from_config = config.compile.passes;
  const std::string pipeline =
      flags.passes.value_or(from_config.empty() ? std::string(kDefaultPasses) : from_config);
  if (!pipeline.empty()) {
    STRATA_TRY(auto passes, TrainingPasses(config, pipeline));
    for (auto& pass : passes)
      manager.Add(std::move(pass));
  }
  STRATA_TRY(std::string text, ReadFile(flags.config));
  const auto num_ranks = static_cast<int32_t>(config.parallelism.mesh.num_ranks());
  STRATA_TRY(Recording recording,
             Recording::Begin(flags.trace, {.kind = RunKind::kOpt,
                                            .world = num_ranks,
                                            .is_of_all_ranks = num_ranks > 1,
                                            .source = flags.config,
                                            .command = CommandLine("trace", args),
                                            .pipeline = manager.Text(),
                                            .config = std::move(text)}));
  std::optional<StopBetweenPasses> stop;
  if (flags.trace) manager.Watch(stop.emplace());
  Module module;
  const Result<Changed> passed = TraceAndRun(flags, config, manager, recording, module);
  const Status recorded =
      recording.End(passed ? Ok() : Status(passed.error()), stop && stop->request().came());
  if (!passed) return passed.error();
  STRATA_RETURN_IF_ERROR(recorded);
  if (!flags.trace) STRATA_RETURN_IF_ERROR(WriteFile("-", PrintText(module)));
  return Exit::kOk;
}

}  // namespace strata::cli
