#include "tlparse-export/torch_trace/export/export.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "refs/export_refs.h"
#include "refs/ref.h"
#include "refs/source_trace.h"
#include "runtime/train/programs/exported_model.h"

namespace strata::cli {
namespace {

void PrintSummary(const std::string& path, const ExportSummary& summary) {
  fmt::print(stderr, "{}: {} files, {} graphs, {} passes", path, summary.files, summary.graphs,
             summary.passes);
  if (summary.records > 0) fmt::print(stderr, ", {} records", summary.records);
  if (summary.wrapped > 0) {
    fmt::print(stderr, " ({} of them as artifacts, as tlparse would refuse them)", summary.wrapped);
  }
  fmt::print(stderr, "\n");
}

struct ExportFlags {
  std::string ref;
  std::optional<std::string> torch_trace, fx, hugging_face;
  std::string dtype = "float32";
};

Result<bool> ParseFlags(Args args, ExportFlags& target) {
  Flags flags("export",
              "writes runs as logs that tlparse reads, graphs as FX text, or a checkpoint for "
              "Hugging Face's libraries");
  flags.Positional(
      "FILE", &target.ref,
      "a trace, a log, a folder of logs, an FX text; #run=, #rank= or #graph= select a part; or a "
      "checkpoint, a folder step-N");
  flags.Option("--torch-trace", "DIR", &target.torch_trace,
               "write TORCH_TRACE logs, one per rank, into a new or empty folder");
  flags.Option("--fx", "DIR", &target.fx,
               "write one FX text per graph and index.json, into a new or empty folder");
  flags.Option("--hugging-face", "DIR", &target.hugging_face,
               "write a checkpoint's model with config.json into a new or empty folder");
  flags.Choice("--dtype", &target.dtype, {"float32", "bfloat16", "float16"},
               "type of the tensors of --hugging-face");
  flags.Example("strata export run.strata --torch-trace out/logs");
  flags.Example("strata export run.strata --fx out/graphs");
  flags.Example(
      "strata export 'run.strata#rank=0' --torch-trace out/rank0 && tlparse out/rank0/*.log -o "
      "out/tlparse");
  flags.Example("strata export outputs/checkpoint/step-500 --hugging-face out/model");
  return flags.Parse(args);
}

Status CheckFolders(const ExportFlags& flags) {
  if (flags.hugging_face && (flags.torch_trace || flags.fx)) {
    return Error(
        "a checkpoint has no graphs: strata export: give --hugging-face without --torch-trace and "
        "--fx");
  }
  if (!flags.torch_trace && !flags.fx && !flags.hugging_face) {
    return Error(
        "nothing to write: strata export: give --torch-trace DIR, --fx DIR or both, or "
        "--hugging-face DIR");
  }
  const auto normal = [](const std::string& path) {
    return std::filesystem::path(path).lexically_normal();
  };
  if (flags.torch_trace && flags.fx && normal(*flags.torch_trace) == normal(*flags.fx)) {
    return Error("one folder for two exports: {}: give each its own", *flags.fx);
  }
  return Ok();
}

Result<std::optional<AtomicFolder>> CreateFolder(const std::optional<std::string>& path) {
  if (!path) return std::optional<AtomicFolder>();
  STRATA_TRY(AtomicFolder folder, AtomicFolder::Create(*path));
  return std::optional<AtomicFolder>(std::move(folder));
}

ExportType TypeOf(std::string_view name) {
  if (name == "bfloat16") return ExportType::kBFloat16;
  return name == "float16" ? ExportType::kFloat16 : ExportType::kFloat32;
}

Result<Exit> ExportCheckpoint(const ExportFlags& flags) {
  STRATA_TRY(AtomicFolder folder, AtomicFolder::Create(*flags.hugging_face));
  STRATA_TRY(const std::vector<std::string> warnings,
             ExportHuggingFaceModel(flags.ref, TypeOf(flags.dtype), folder));
  STRATA_RETURN_IF_ERROR(folder.Commit());
  for (const std::string& warning : warnings)
    Warn(warning);
  return Exit::kOk;
}

}  // namespace

Result<Exit> RunExport(Args args) {
  ExportFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_RETURN_IF_ERROR(CheckFolders(flags));
  if (flags.hugging_face) return ExportCheckpoint(flags);
  // A bad folder is an error before a long import, not after it.
  STRATA_TRY(std::optional<AtomicFolder> logs, CreateFolder(flags.torch_trace));
  STRATA_TRY(std::optional<AtomicFolder> graphs, CreateFolder(flags.fx));

  STRATA_TRY(const Ref ref, ParseRef(flags.ref));
  STRATA_TRY(const SourceTrace source,
             SourceTrace::Open(ref.file, "strata export " + flags.ref, Warn));
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(source.path()));
  STRATA_TRY(const ExportSelection selection, SelectForExport(ref, *trace));
  ExportSummary log_summary, fx_summary;
  if (logs) {
    STRATA_RETURN_IF_ERROR(ExportTorchTrace(*trace, selection, *logs, log_summary));
  }
  if (graphs) {
    STRATA_RETURN_IF_ERROR(ExportFx(
        *trace, selection, RefsForExport(ref, *trace, source.is_imported()), *graphs, fx_summary));
  }
  if (logs) {
    STRATA_RETURN_IF_ERROR(logs->Commit());
    PrintSummary(*flags.torch_trace, log_summary);
  }
  if (graphs) {
    STRATA_RETURN_IF_ERROR(graphs->Commit());
    PrintSummary(*flags.fx, fx_summary);
  }
  return Exit::kOk;
}

}  // namespace strata::cli
