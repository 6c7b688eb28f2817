#include "diff/diff.h"

#include <optional>

#include "cli/command.h"
#include "cli/diff_text.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/ref.h"
#include "diff/diff_json.h"
#include "diff/patch.h"
#include "diff/pins.h"
#include "diff/policy.h"
#include "ir/file.h"
#include "tlparse-export/review/markdown.h"

namespace strata::cli {

Result<Exit> RunDiff(Args args) {
  std::string before_ref, after_ref, format = "text", pins, patch, policy_file, colour = "auto";
  bool all = false, json = false;
  ReviewOptions review;
  DiffOptions options;
  LoadOptions load;
  Flags flags("diff", "compares two graphs node by node; exit status 1: they differ");
  flags.Positional("BEFORE", &before_ref, "a REF");
  flags.Positional("AFTER", &after_ref, "a REF");
  flags.Choice("--format", &format, {"text", "json", "md"}, "how to print");
  flags.Switch("--json", &json, "the same as --format json");
  flags.Option("--policy", "FILE", &policy_file,
               "what the change may be (docs/policy.md); exit status 0 when it is");
  flags.Option("--pins", "FILE", &pins, "pairs that are known, or known to be wrong: TOML");
  flags.Option("--patch", "FILE", &patch, "also write the edit script, for 'strata patch'");
  flags.Switch("--all", &all, "text: every repetition and every derived change");
  flags.Option("--link", "URL", &review.link, "md: where the whole report is");
  flags.Option("--image", "URL", &review.image, "md: a picture to show");
  flags.Choice("--color", &colour, {"auto", "always", "never"},
               "text: colours; auto: on a terminal, unless NO_COLOR is set");
  flags.Switch("--meta", &options.meta, "also names, locations, sequence numbers");
  flags.Switch("--lenient", &load.lenient, "go on with what can be read of a broken text");
  flags.Example("strata diff before.txt after.txt");
  flags.Example("strata diff 'run.strata#pass=dce:before' 'run.strata#pass=dce:after'");
  flags.Example("strata diff old.log new.log --format json > diff.json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  // A policy that cannot be read is told of before the work begins.
  std::optional<Policy> policy;
  if (!policy_file.empty()) {
    STRATA_TRY(const std::string text, ReadFile(policy_file));
    STRATA_TRY(policy, ParsePolicy(text, policy_file));
  }
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
  std::optional<PolicyVerdict> verdict;
  if (policy) verdict = CheckPolicy(*policy, diff);
  const PolicyVerdict* const shown_verdict = verdict ? &*verdict : nullptr;
  std::string text;
  if (format == "json" || json) {
    text = DiffJson(diff, before_ref, after_ref, shown_verdict);
  } else if (format == "md") {
    review.before_ref = before_ref;
    review.after_ref = after_ref;
    review.verdict = shown_verdict;
    STRATA_TRY(text, ReviewMarkdown(diff, review));
  } else {
    const bool colours = colour == "always" || (colour == "auto" && ColoursOnStdout());
    text = DiffText(diff, before_ref, after_ref,
                    {.colours = colours, .verdict = shown_verdict, .all = all});
  }
  if (!patch.empty()) {
    STRATA_RETURN_IF_ERROR(WriteFile(patch, MakePatch(diff, {.metadata = options.meta})));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  if (verdict) return verdict->allowed() ? Exit::kOk : Exit::kDifferences;
  return diff.Equal() ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
