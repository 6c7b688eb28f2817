#include "store/check.h"

#include <string>
#include <vector>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/render/findings.h"
#include "refs/check_provenance.h"
#include "refs/ref.h"
#include "store/trace.h"

namespace strata::cli {

Result<Exit> RunCheck(Args args) {
  std::string path;
  bool provenance = false;
  Flags flags("check", "verifies the checksums of everything in a trace");
  flags.Positional("T", &path, "a trace");
  flags.Switch("--provenance", &provenance,
               "also check recorded provenance against graph structure");
  flags.Example("strata check out/demo.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_RETURN_IF_ERROR(CheckWholeFile(path));
  STRATA_TRY(const std::vector<Finding> findings, CheckTrace(path));
  std::vector<std::string> contradictions;
  if (provenance && findings.empty()) {
    STRATA_TRY(contradictions, CheckProvenance(path));
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", FindingsText(path, findings, contradictions)));
  return findings.empty() && contradictions.empty() ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
