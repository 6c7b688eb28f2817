#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "ir/file.h"
#include "store/trace.h"

namespace strata::cli {

Result<Exit> RunCheck(Args args) {
  std::string path;
  Flags flags("check", "reads everything in a trace and compares it with its checksums");
  flags.Positional("T", &path, "a trace");
  flags.Example("strata check out/demo.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const std::vector<Finding> findings, CheckTrace(path));
  std::string out;
  for (const Finding& finding : findings) {
    out += path;
    if (!finding.table.empty()) out += fmt::format(": table {}", finding.table);
    if (finding.row != 0) out += fmt::format(", row {}", finding.row);
    out += fmt::format(": {}\n", finding.what);
  }
  out += findings.empty() ? fmt::format("{}: sound\n", path)
                          : fmt::format("{}: {} finding{}\n", path, findings.size(),
                                        findings.size() == 1 ? "" : "s");
  STRATA_RETURN_IF_ERROR(WriteFile("-", out));
  return findings.empty() ? Exit::kOk : Exit::kDifferences;
}

}  // namespace strata::cli
