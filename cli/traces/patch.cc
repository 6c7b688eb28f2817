#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "diff/patch/apply.h"
#include "diff/patch/parse.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

/// The result as FX text, which must read back as what the patch promises.
Result<std::string> FxText(const Graph& graph, const Patch& patch) {
  FxPrintOptions options;
  options.comments = patch.carries == Patch::Carries::kEverything;
  std::string text = PrintFx(graph, options);
  const Result<FxDocument> again = ParseFx(text, {.file = "result", .strict = true});
  if (again && FingerprintOf(again->graph()) == patch.after.fingerprint) return text;
  return Error(ErrorCode::kUnsupported,
               "FX text cannot say this graph: {}: take Strata's own with --format text",
               patch.file);
}

}  // namespace

Result<Exit> RunPatch(Args args) {
  std::string ref, path, format = "fx", output = "-";
  LoadOptions load{.warn = Warn};
  Flags flags("patch", "applies a patch: makes the after side of a diff from its before side");
  flags.Positional("REF", &ref, "the before side, or a graph with the same fingerprint");
  flags.Positional("PATCH", &path, "the output of 'strata diff --patch'; - is standard input");
  flags.Choice("--format", &format, {"fx", "text"}, "PyTorch's FX text, or native text");
  flags.Option("-o,--output", "FILE", &output,
               "where to write the graph (default: standard output)");
  flags.Switch("--lenient", &load.lenient, "recover from parse errors; keep what could be parsed");
  flags.Example("strata diff before.txt after.txt --patch change.patch");
  flags.Example("strata patch before.txt change.patch -o after.txt");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const std::string patch_text, ReadFile(path));
  STRATA_TRY(const Patch patch, ParsePatch(patch_text, path));
  STRATA_TRY(const Snapshot base, LoadRef(ref, load));
  Result<std::unique_ptr<Module>> result = ApplyPatch(base.graph(), patch);
  if (!result) return std::move(result).error();
  std::string text = PrintText(**result);
  if (format == "fx") {
    STRATA_TRY(text, FxText((*result)->graph({0}), patch));
  }
  STRATA_RETURN_IF_ERROR(WriteFile(output, text));
  return Exit::kOk;
}

}  // namespace strata::cli
