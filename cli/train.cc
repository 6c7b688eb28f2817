#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/recording.h"
#include "ir/file.h"
#include "runtime/train/trainer.h"

namespace strata::cli {
namespace {

struct TrainFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::optional<std::string> init, tokens, metrics, gradients, parameters, trace;
  std::string passes{kDefaultPasses};
  int64_t threads = 1;
};

Result<bool> ParseFlags(Args args, TrainFlags& out) {
  Flags flags("train", "trains a model, with every graph and pass recorded");
  flags.Positional("CONFIG", &out.config, "configuration, TOML or JSON");
  flags.Repeated("--set", "KEY=VALUE", &out.overrides,
                 "override a field of the configuration: optimizer.lr=0.01");
  flags.Option("--init", "FILE", &out.init, "initial parameters (default: drawn from the seed)");
  flags.Option("--tokens", "FILE", &out.tokens,
               "int64 'tokens' [steps, batch, seq+1] (default: synthetic)");
  flags.Option("--passes", "PIPELINE", &out.passes, "passes between trace and execution");
  flags.Option("--metrics", "FILE", &out.metrics,
               "write loss and gradient norm, a JSON line a step");
  flags.Option("--dump-grads", "FILE", &out.gradients,
               "write the gradients of the first step, before clipping");
  flags.Option("--save", "FILE", &out.parameters, "write the parameters after the last step");
  flags.Option("--trace", "FILE", &out.trace,
               "record graphs, passes and steps as a trace; readable while the run goes on");
  flags.Option("--threads", "N", &out.threads, "threads inside operators");
  flags.Example("strata train configs/demo_llama3.toml --trace out/demo.strata");
  flags.Example("strata train config.json --set steps=5 --set optimizer.lr=1e-4 --metrics m.jsonl");
  return flags.Parse(args);
}

/// A tensor's bytes, kept while the run goes on.
struct KeptTensors {
  std::vector<TensorView> views;
  std::vector<std::vector<std::byte>> bytes;

  void Keep(const std::vector<TensorView>& tensors) {
    for (const TensorView& tensor : tensors) {
      bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
      views.push_back(tensor);
      views.back().bytes = bytes.back();
    }
  }
};

/// The files that a run leaves. All are opened before the first step, so that no training is lost
/// to a bad path, and get their names together at the end.
class Outputs {
 public:
  Status Open(const TrainFlags& flags) {
    if (flags.metrics) {
      STRATA_TRY(metrics_, MetricsWriter::Create(*flags.metrics));
    }
    STRATA_RETURN_IF_ERROR(Open(flags.gradients, gradients_file_));
    return Open(flags.parameters, parameters_file_);
  }

  Status AfterStep(const StepReport& report, const Trainer& trainer) {
    if (metrics_) STRATA_RETURN_IF_ERROR(metrics_->Write(report.metrics));
    if (gradients_file_ && report.metrics.step == 1) gradients_.Keep(trainer.Gradients());
    return Ok();
  }

  Status Finish(const Trainer& trainer) {
    if (gradients_file_) {
      STRATA_RETURN_IF_ERROR(AppendSafetensors(*gradients_file_, gradients_.views));
    }
    if (parameters_file_) {
      STRATA_RETURN_IF_ERROR(AppendSafetensors(*parameters_file_, trainer.Parameters()));
    }
    if (metrics_) STRATA_RETURN_IF_ERROR(metrics_->Commit());
    if (gradients_file_) STRATA_RETURN_IF_ERROR(gradients_file_->Commit());
    if (parameters_file_) STRATA_RETURN_IF_ERROR(parameters_file_->Commit());
    return Ok();
  }

 private:
  static Status Open(const std::optional<std::string>& path, std::optional<AtomicFile>& file) {
    if (!path) return Ok();
    STRATA_TRY(file, AtomicFile::Create(*path));
    return Ok();
  }

  std::optional<MetricsWriter> metrics_;
  std::optional<AtomicFile> gradients_file_, parameters_file_;
  KeptTensors gradients_;
};

Result<std::unique_ptr<Trainer>> MakeTrainer(const TrainFlags& flags) {
  STRATA_TRY(const TrainConfig config, LoadTrainConfig(flags.config, flags.overrides));
  if (flags.threads < 1) return Error("--threads must be at least 1: strata train: give a number");
  TrainSetup setup{.config = config,
                   .tokens = TokenData::Synthetic(config),
                   .passes = flags.passes,
                   .threads = static_cast<int>(flags.threads)};
  if (flags.tokens) {
    STRATA_TRY(setup.tokens, TokenData::Load(*flags.tokens, config));
  }
  if (flags.init) {
    STRATA_TRY(setup.init, SafetensorsFile::Open(*flags.init));
  }
  return Trainer::Create(std::move(setup));
}

/// The configuration as it stands in its file; what flags change of it stands in the command.
Result<RunInfo> DescribeRun(const TrainFlags& flags, Args args) {
  STRATA_TRY(std::string config, ReadFile(flags.config));
  return RunInfo{.kind = RunKind::kTrain,
                 .source = flags.config,
                 .command = CommandLine("train", args),
                 .pipeline = flags.passes,
                 .config = std::move(config)};
}

Status Record(Recording& recording, const StepReport& report) {
  if (recording.trace() == nullptr) return Ok();
  std::vector<TraceWriter::Executed> executed;
  for (const StepReport::Executed& plan : report.executed)
    executed.push_back({.graph = plan.graph, .fingerprint = plan.fingerprint});
  return recording.trace()->RecordStep(recording.run(),
                                       {.step = report.metrics.step,
                                        .loss = report.metrics.loss,
                                        .grad_norm = report.metrics.grad_norm,
                                        .wall_ns = report.wall.count()},
                                       executed);
}

Status Compile(Trainer& trainer, Recording& recording) {
  CompileWatch watch;
  if (recording.trace() != nullptr) {
    watch.watchers.push_back(&recording.watcher());
    watch.first_stable_id = recording.trace()->next_stable_id();
    watch.run_ref = recording.RunRef();
  }
  return trainer.Compile(watch);
}

Status TrainAll(Trainer& trainer, Outputs& outputs, Recording& recording) {
  STRATA_TRY(AtomicFile table, AtomicFile::Create("-"));
  STRATA_RETURN_IF_ERROR(table.Append("step       loss  grad_norm\n"));
  Progress progress("training");
  while (trainer.steps_done() < trainer.config().steps) {
    progress.Update(trainer.steps_done(), trainer.config().steps);
    STRATA_TRY(const StepReport report, trainer.Step());
    STRATA_RETURN_IF_ERROR(Record(recording, report));
    STRATA_RETURN_IF_ERROR(outputs.AfterStep(report, trainer));
    progress.Clear();
    STRATA_RETURN_IF_ERROR(
        table.Append(fmt::format("{:>4} {:>10.6f} {:>10.6f}\n", report.metrics.step,
                                 report.metrics.loss, report.metrics.grad_norm)));
  }
  return table.Commit();
}

Status CompileAndTrain(Trainer& trainer, Outputs& outputs, Recording& recording) {
  STRATA_RETURN_IF_ERROR(Compile(trainer, recording));
  return TrainAll(trainer, outputs, recording);
}

}  // namespace

Result<Exit> RunTrain(Args args) {
  TrainFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const std::unique_ptr<Trainer> trainer, MakeTrainer(flags));
  STRATA_TRY(const RunInfo run, DescribeRun(flags, args));
  Outputs outputs;
  STRATA_RETURN_IF_ERROR(outputs.Open(flags));
  STRATA_TRY(Recording recording, Recording::Begin(flags.trace, run));
  const Status trained = CompileAndTrain(*trainer, outputs, recording);
  const Status recorded = recording.End(trained.has_value());
  STRATA_RETURN_IF_ERROR(trained);
  STRATA_RETURN_IF_ERROR(recorded);
  STRATA_RETURN_IF_ERROR(outputs.Finish(*trainer));
  return Exit::kOk;
}

}  // namespace strata::cli
