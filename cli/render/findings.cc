#include "cli/render/findings.h"

#include <fmt/format.h>

#include "base/unicode.h"

namespace strata::cli {

std::string FindingsText(std::string_view path, const std::vector<Finding>& findings,
                         const std::vector<std::string>& contradictions) {
  std::string out;
  for (const Finding& finding : findings) {
    out += path;
    if (!finding.table.empty()) out += fmt::format(": table {}", finding.table);
    if (finding.row != 0) out += fmt::format(", row {}", finding.row);
    out += fmt::format(": {}\n", Visible(finding.what));
  }
  for (const std::string& line : contradictions)
    out += Visible(line) + "\n";
  const size_t count = findings.size() + contradictions.size();
  return out + (count == 0 ? fmt::format("{}: sound\n", path)
                           : fmt::format("{}: {} finding{}\n", path, count, count == 1 ? "" : "s"));
}

}  // namespace strata::cli
