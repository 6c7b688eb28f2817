#include "diff/diff.h"

#include "cli/command.h"
#include "cli/diff_text.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/ref.h"
#include "diff/diff_json.h"
#include "diff/patch.h"
#include "diff/pins.h"
#include "ir/file.h"

namespace strata::cli {
Result<Exit> RunDiff(Args args) {
  std::string before_ref, after_ref, format = "text", pins, patch;
  bool all = false;
  DiffOptions options;
  LoadOptions load;
  Flags flags("diff", "compares two graphs node by node; exit status 1: they differ");
  flags.Positional("BEFORE", &before_ref, "a REF");
  flags.Positional("AFTER", &after_ref, "a REF");
  flags.Choice("--format", &format, {"text", "json"}, "how to print");
  flags.Option("--pins", "FILE", &pins, "pairs that are known, or known to be wrong: TOML");
  flags.Option("--patch", "FILE", &patch, "also write the edit script, for 'strata patch'");
  flags.Switch("--all", &all, "text: every repetition and every derived change");
  flags.Switch("--meta", &options.meta, "also names, locations, sequence numbers");
  flags.Switch("--lenient", &load.lenient, "go on with what can be read of a broken text");
  flags.Example("strata diff before.txt after.txt");
  flags.Example("strata diff 'run.strata#pass=dce:before' 'run.strata#pass=dce:after'");
  flags.Example("strata diff old.log new.log --format json > diff.json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const Snapshot before, LoadRef(before_ref, load));
  STRATA_TRY(const Snapshot after, LoadRef(after_ref, load));
  if (!pins.empty()) {
    STRATA_TRY(const std::string text, ReadFile(pins));
    STRATA_TRY(const Pins known, ParsePins(text, pins));
    for (const std::string& warning : UsePins(known, before.graph(), after.graph(), options))
      Warn(warning);
  }
  options.stable_ids = !before.origin.empty() && before.origin == after.origin &&
                       before.graph_name == after.graph_name;
  STRATA_TRY(const GraphDiff diff, Diff(before.graph(), after.graph(), options));
  const std::string text = format == "json"
                               ? DiffJson(diff, before_ref, after_ref)
                               : DiffText(diff, before_ref, after_ref, {ColoursOnStdout(), all});
  if (!patch.empty()) {
    STRATA_RETURN_IF_ERROR(WriteFile(patch, MakePatch(diff, {.metadata = options.meta})));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return diff.Equal() ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
