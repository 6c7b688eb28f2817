#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/progress.h"
#include "cli/core/stop_between_passes.h"
#include "cli/prove/prove_exact.h"
#include "cli/prove/prove_values.h"
#include "cli/train/launch.h"
#include "cli/train/train_control.h"
#include "cli/train/train_flags.h"
#include "cli/train/train_inputs.h"
#include "cli/train/train_outputs.h"
#include "cli/train/train_profiles.h"
#include "cli/train/train_table.h"
#include "cli/train/train_trace.h"
#include "refs/recording/recording.h"
#include "refs/ref.h"
#include "runtime/aten/operator_library.h"
#include "runtime/aten/threads.h"
#include "runtime/codegen/kernel_library.h"
#include "runtime/ranks/processes/process_place.h"
#include "runtime/train/data/packing.h"
#include "runtime/train/files/hugging_face_config.h"
#include "runtime/train/programs/joint_program.h"
#include "runtime/train/programs/schedule.h"
#include "runtime/train/resume.h"
#include "runtime/train/trainer.h"
#include "store/environment.h"

namespace strata::cli {
namespace {

Result<std::unique_ptr<DataSource>> OpenData(const TrainFlags& flags, const TrainConfig& config) {
  if (!flags.tokens) return OpenDataSource(config);
  STRATA_TRY(TokenData tokens, TokenData::Load(*flags.tokens, config));
  return MakeTokenSource(std::move(tokens));
}

/// The pipeline of the flag or the configuration, else one that makes kernels where something can
/// compile them.
std::string ChoosePasses(const std::optional<std::string>& given, const TrainConfig& config) {
  if (given) return *given;
  if (!config.compile.passes.empty()) return config.compile.passes;
  if (config.device == DeviceKind::kCuda || !config.compile.enable_passes)
    return std::string(kFusingPasses);
  const auto compiler = FindCompiler();
  if (compiler) return std::string(kFusingPasses);
  Warn(
      fmt::format("no kernels are made, operators run one by one: {}", compiler.error().message()));
  return std::string(kDefaultPasses);
}

Result<std::unique_ptr<Trainer>> MakeTrainer(const TrainFlags& flags, const TrainConfig& config) {
  TrainSetup setup{.config = config,
                   .data = nullptr,
                   .passes = ChoosePasses(flags.passes, config),
                   .threads = ChooseThreads(flags.threads),
                   .process = flags.place};
  if (config.model == ModelFamily::kProgram) {
    STRATA_TRY(const Snapshot program, LoadRef(config.model_path));
    STRATA_TRY(setup.program, JointProgram::Make(*program.module, program.graph_id, config));
    for (const std::string& warning : setup.program->warnings())
      Warn(fmt::format("{}: {}", config.model_path, warning));
  }
  STRATA_TRY(setup.data, OpenData(flags, config));
  if (config.validator.enable) {
    STRATA_TRY(setup.validation, OpenValidationData(config));
  }
  const std::string& from_config = config.checkpoint.initial_load_path;
  if (flags.init || !from_config.empty()) {
    STRATA_TRY(setup.init, OpenInitialTensors(flags.init.value_or(from_config)));
  }
  return Trainer::Create(std::move(setup));
}

/// The configuration as it stands in its file; what flags change of it stands in the command.
Result<RunInfo> DescribeRun(const TrainFlags& flags, Args args, const Trainer& trainer) {
  STRATA_TRY(std::string config, ReadFile(flags.config));
  const auto world = static_cast<int32_t>(trainer.config().parallelism.mesh.num_ranks());
  return RunInfo{.kind = RunKind::kTrain,
                 .world = world,
                 .is_of_all_ranks = world > 1,
                 .source = flags.config,
                 .command = CommandLine("train", args),
                 .pipeline = trainer.pipeline(),
                 .config = std::move(config)};
}

Status Compile(Trainer& trainer, const TrainFlags& flags, Recording& recording,
               StopBetweenPasses& stop, TrainControl& control) {
  CompileWatch watch;
  watch.watchers.push_back(&stop);
  if (control.watcher() != nullptr) watch.watchers.push_back(control.watcher());
  NamedTensors given;
  if (flags.prove_inputs) {
    STRATA_TRY(given, LoadTensors(*flags.prove_inputs));
  }
  ProvePasses prover(flags.tolerance, std::move(given));
  RecordPasses record(recording);
  if (recording.trace() != nullptr) {
    watch.watchers.push_back(&record);
    watch.first_stable_id = recording.trace()->next_stable_id();
    watch.run_ref = recording.RunRef();
  }
  watch.needs_passes = flags.prove || flags.prove_exact;
  if (flags.prove && flags.is_first()) watch.watchers.push_back(&prover);
  ProveExactly exact(recording);
  if (flags.prove_exact && flags.is_first()) watch.watchers.push_back(&exact);
  STRATA_RETURN_IF_ERROR(trainer.Compile(watch));
  for (const std::string& warning : trainer.warnings())
    Warn(warning);
  return Ok();
}

bool IsProfiled(const TrainFlags& flags, const TrainConfig& config, int64_t step) {
  return step > config.steps - flags.profile || config.profiler.IsProfiled(step);
}

/// What the data lose: said when it begins, and at the end.
class DataWarning {
 public:
  void Tell(const Trainer& trainer, bool is_end) {
    if (!told_.empty() && !is_end) return;
    std::string text = trainer.DataWarning();
    if (text.empty() || text == told_) return;
    Warn(text);
    told_ = std::move(text);
  }

 private:
  std::string told_;
};

/// The end of a training before its last step, which an interrupt or a client asked for.
Error StoppedError(std::string_view why, const Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  return Error("{}: after step {} of {}: {}", why, trainer.steps_done(), config.steps,
               config.checkpoint.enable && !config.checkpoint.load_only
                   ? "continue with --resume"
                   : "trace and metrics hold the steps done, checkpoints continue with --resume");
}

Status TrainAll(Trainer& trainer, const TrainFlags& flags, TrainOutputs& outputs,
                Recording& recording, const StopRequest& stop, bool& was_stopped,
                TrainControl& control) {
  const TrainConfig& config = trainer.config();
  STRATA_TRY(TrainTable table, TrainTable::Create());
  Progress progress("training");
  DataWarning data_warning;
  std::string detail;
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    if (flags.is_first()) progress.Update(trainer.steps_done(), config.steps, detail);
    STRATA_TRY(const bool has_next, trainer.HasNext());
    if (!has_next) break;
    STRATA_TRY(was_stopped, trainer.IsTrueInAnyProcess(stop.came(), "agreement to go on"));
    if (was_stopped) return StoppedError("interrupted", trainer);
    const bool look_at_values = flags.values == "last" && trainer.steps_done() + 1 == config.steps;
    const bool is_profiled = IsProfiled(flags, config, trainer.steps_done() + 1);
    if (is_profiled || look_at_values) trainer.ProfileNext(look_at_values);
    STRATA_TRY(std::optional<StepReport> stepped, control.Step(trainer));
    if (!stepped) {
      was_stopped = true;
      return StoppedError("stopped by a client of --control", trainer);
    }
    StepReport& report = *stepped;
    if (trainer.IsValidationStep()) {
      STRATA_RETURN_IF_ERROR(trainer.Validate(report));
    }
    STRATA_RETURN_IF_ERROR(ContinueWithoutTrace(recording, RecordStep(recording, report)));
    STRATA_RETURN_IF_ERROR(
        ContinueWithoutTrace(recording, RecordActions(recording, trainer, start)));
    STRATA_RETURN_IF_ERROR(ContinueWithoutTrace(recording, control.Record(recording)));
    STRATA_RETURN_IF_ERROR(outputs.AfterStep(report, trainer));
    if (outputs.last_checkpoint() == report.metrics.step) control.AfterCheckpoint(trainer);
    data_warning.Tell(trainer, /*is_end=*/false);
    if (!flags.is_first()) continue;
    if (TrainTable::IsDue(report.metrics.step, config)) progress.Clear();
    STRATA_RETURN_IF_ERROR(table.Add(report, trainer));
    detail = table.Progress(trainer);
  }
  progress.Clear();
  data_warning.Tell(trainer, /*is_end=*/true);
  if (trainer.steps_done() < config.steps) {
    Warn(fmt::format("the data end after step {} of {}: let them repeat, or train fewer steps",
                     trainer.steps_done(), config.steps));
    if (flags.profile > 0 || flags.values == "last") {
      Warn(
          "--profile and --values look at the last of the steps: those that were not done are "
          "missing");
    }
  }
  return table.Finish();
}

Status CompileAndTrain(Trainer& trainer, const TrainFlags& flags, TrainOutputs& outputs,
                       Recording& recording, StopBetweenPasses& stop, bool& was_stopped,
                       TrainControl& control) {
  STRATA_RETURN_IF_ERROR(Compile(trainer, flags, recording, stop, control));
  if (flags.inputs) trainer.KeepInputs();
  if (flags.outputs.gradients) trainer.KeepGradients();
  const int64_t first_step = trainer.steps_done() + 1;
  STRATA_RETURN_IF_ERROR(
      TrainAll(trainer, flags, outputs, recording, stop.request(), was_stopped, control));
  const bool has_values = flags.values == "last";
  const auto is_profiled = [&](int64_t step) {
    return (has_values && step == trainer.config().steps) ||
           IsProfiled(flags, trainer.config(), step);
  };
  STRATA_RETURN_IF_ERROR(ContinueWithoutTrace(
      recording, RecordProfiles(recording, trainer, first_step, has_values, is_profiled)));
  STRATA_RETURN_IF_ERROR(ContinueWithoutTrace(recording, RecordKernels(recording, trainer)));
  return flags.inputs ? trainer.SaveInputs(*flags.inputs) : Ok();
}

/// Prints or saves the configuration, as `debug` requests.
Status TellConfig(const TrainFlags& flags, const TrainConfig& config) {
  if (!config.print_config && config.save_config_file.empty()) return Ok();
  STRATA_TRY(const std::string text, MergedConfig(flags.config, flags.overrides));
  if (config.print_config) fmt::print(stderr, "{}", text);
  if (config.save_config_file.empty()) return Ok();
  std::error_code ignored;  // writing the file reports it
  std::filesystem::create_directories(config.dump_folder, ignored);
  const std::string path = fmt::format("{}/{}", config.dump_folder, config.save_config_file);
  // A saved configuration that is trained again saves itself.
  if (const auto saved = ReadFile(path); saved && *saved == text) return Ok();
  STRATA_RETURN_IF_ERROR(CheckOutputs(std::vector<NamedPath>{{"debug.save_config_file", path}},
                                      TrainInputs(flags.config, config, flags.init, flags.tokens)));
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  STRATA_RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

/// What the configuration will not do as one might expect.
void WarnAhead(const TrainConfig& config) {
  for (const std::string& warning : ScheduleWarnings(config))
    Warn(warning);
  if (!config.checkpoint.enable || !config.checkpoint.last_save_in_hf) return;
  for (const std::string& warning : LimitsOfHuggingFace(config).warnings)
    Warn(warning);
}

/// The end of a run whose last step is in a checkpoint.
Result<Exit> TellFinished(const TrainFlags& flags, const Checkpoint& last) {
  for (const auto* path : {&flags.outputs.gradients, &flags.inputs}) {
    if (!*path || std::filesystem::exists(**path)) continue;
    return Error("no step is left to write this from: {}: {} has all {} steps; train more steps",
                 **path, last.model.path(), last.info.step);
  }
  STRATA_RETURN_IF_ERROR(
      WriteMissingOutputs(last, flags.outputs.metrics, flags.outputs.parameters));
  fmt::print(stderr, "strata: nothing to do: {}: all {} steps are done\n", last.model.path(),
             last.info.step);
  return Exit::kOk;
}

/// How long a rank may take to find out that another is gone, and to report it.
int64_t PatienceSeconds(const TrainConfig& config) {
  return config.parallelism.train_timeout_seconds + 10;
}

/// Trains, records and writes what the flags ask for.
Result<Exit> TrainAndRecord(Trainer& trainer, const TrainFlags& flags, Args args) {
  STRATA_TRY(const RunInfo run, DescribeRun(flags, args, trainer));
  // Created early: a bad path fails before the training.
  if (flags.inputs) {
    if (const auto file = AtomicFile::Create(*flags.inputs); !file) return file.error();
  }
  TrainOutputs outputs;
  STRATA_RETURN_IF_ERROR(outputs.Open(flags.outputs, trainer, flags.overwrite));
  STRATA_TRY(Recording recording,
             Recording::Begin(flags.is_first() ? flags.trace : std::nullopt, run));
  STRATA_RETURN_IF_ERROR(
      recording.AddEnvironment({.threads = NumThreads(), .steps = trainer.config().steps}));
  StopBetweenPasses stop = flags.is_first() ? StopBetweenPasses() : StopBetweenPasses("");
  TrainControl control;
  if (flags.control) {
    STRATA_RETURN_IF_ERROR(
        control.Open(*flags.control, flags.control_wait, stop.request(), outputs));
  }
  bool was_stopped = false;
  const Status trained =
      CompileAndTrain(trainer, flags, outputs, recording, stop, was_stopped, control);
  const bool was_interrupted = was_stopped || stop.request().came() || control.ends();
  const Status recorded = recording.End(trained, was_interrupted);
  if (!trained && was_interrupted) {
    STRATA_RETURN_IF_ERROR(outputs.FinishInterrupted(trainer));
    if (!flags.is_first()) return Exit::kError;  // the first process reports it
  } else if (!trained) {
    outputs.FinishFailed(trainer);
  }
  STRATA_RETURN_IF_ERROR(trained);
  STRATA_RETURN_IF_ERROR(ContinueWithoutTrace(recording, recorded));
  STRATA_RETURN_IF_ERROR(outputs.Finish(trainer));
  STRATA_RETURN_IF_ERROR(trainer.Finish());
  return Exit::kOk;
}

/// The command in a process that trains.
Result<Exit> TrainHere(const TrainFlags& flags, Args args) {
  if ((flags.profile > 0 || flags.values != "none") && !flags.trace) {
    return Error("nothing to record into: strata train: give --trace with --profile and --values");
  }
  if (flags.control_wait && !flags.control)
    return Error("no client could continue the training: --control-wait: give --control PATH");
  STRATA_TRY(const TrainConfig config,
             LoadTrainConfig(flags.config, flags.overrides, flags.world()));
  if (config.profiler.enable_profiling && !flags.trace) {
    return Error("nothing to record into: profiler.enable_profiling: give --trace");
  }
  STRATA_RETURN_IF_ERROR(
      CheckOutputs(OutputsOf(flags), TrainInputs(flags.config, config, flags.init, flags.tokens)));
  WarnAhead(config);
  if (flags.is_first()) STRATA_RETURN_IF_ERROR(TellConfig(flags, config));
  if (flags.prove && config.device == DeviceKind::kCuda) {
    return Error("--prove supports CPU graphs only: device = 'cuda': take device = 'cpu'");
  }
  if (flags.place && flags.control) {
    return Error("--control supports ranks that are threads only: leave --nproc out");
  }
  if (flags.place && flags.inputs) {
    return Error("--dump-inputs supports ranks that are threads only: leave --nproc out");
  }
  if (config.parallelism.mesh != config.parallelism.stage_mesh && flags.inputs) {
    return Error(
        "--dump-inputs does not support pipelines: parallelism.pipeline_parallel_degree: take 1");
  }
  STRATA_TRY(const RunStart start,
             FindRunStart(config, {.resume = flags.resume, .overwrite = flags.overwrite}));
  for (const std::string& warning : start.warnings)
    Warn(warning);
  if (start.is_finished) {
    return flags.is_first() ? TellFinished(flags, *start.checkpoint) : Exit::kOk;
  }
  STRATA_TRY(const std::unique_ptr<Trainer> trainer, MakeTrainer(flags, config));
  if (start.checkpoint) {
    STRATA_TRY(const std::vector<std::string> differences, trainer->Restore(*start.checkpoint));
    for (const std::string& difference : differences)
      Warn(difference);
  }
  Result<Exit> exit = TrainAndRecord(*trainer, flags, args);
  if (!exit) trainer->ReportFailure(exit.error());
  return exit;
}

}  // namespace

Result<Exit> RunTrain(Args args) {
  TrainFlags flags;
  STRATA_TRY(const bool go_on, ParseTrainFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(flags.place, ProcessPlace::FromLauncher());
  if (flags.num_processes > 1 && !flags.place) {
    // What is wrong with the configuration is reported once.
    STRATA_TRY(const TrainConfig config,
               LoadTrainConfig(flags.config, flags.overrides, flags.num_processes));
    return LaunchRanks("train", args, flags.num_processes, PatienceSeconds(config));
  }
  if (flags.place && flags.num_processes > 0 && flags.num_processes != flags.place->world) {
    return Error(
        "the launcher started another number of processes: --nproc {}: WORLD_SIZE is {}; "
        "leave --nproc out",
        flags.num_processes, flags.place->world);
  }
  if (!flags.is_first()) LeaveWarningsToOthers();
  STRATA_RETURN_IF_ERROR(LoadOperators(flags.operators));
  Result<Exit> exit = TrainHere(flags, args);
  if (!exit && flags.place) {
    return std::move(exit).error().In(fmt::format("rank {}", flags.place->rank));
  }
  return exit;
}

}  // namespace strata::cli
