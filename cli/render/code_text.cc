#include "cli/render/code_text.h"

#include <fmt/format.h>

#include "base/unicode.h"

namespace strata::cli {
namespace {

/// Of each record.
constexpr size_t kShownLines = 120;

std::string_view StatusOf(KernelDiff::Kind kind) {
  switch (kind) {
    case KernelDiff::Kind::kOnlyBefore:
      return "deleted";
    case KernelDiff::Kind::kOnlyAfter:
      return "inserted";
    case KernelDiff::Kind::kChanged:
      break;
  }
  return "changed";
}

void AppendLines(const CodeDifference& difference, bool all, std::string& out) {
  size_t left = all ? std::string::npos : kShownLines, hidden = 0;
  for (const KernelDiff& kernel : difference.kernels) {
    out += fmt::format("  {}\n", Visible(DescribeKernel(kernel)));
    // What only one side has is a whole kernel: its name and nodes say enough.
    if (!all && kernel.kind != KernelDiff::Kind::kChanged) continue;
    for (const std::string& line : kernel.lines) {
      if (left == 0) {
        ++hidden;
        continue;
      }
      --left;
      out += fmt::format("    {}\n", Visible(line));
    }
  }
  if (hidden > 0) out += fmt::format("    and {} more lines (--all shows them)\n", hidden);
}

}  // namespace

std::string CodeDifferencesText(const std::vector<CodeDifference>& differences, const History& a,
                                const History& b, const CodeTextOptions& options) {
  if (differences.empty()) return "";
  std::string out = fmt::format("generated code differs: {} record{}\n", differences.size(),
                                differences.size() == 1 ? "" : "s");
  for (const CodeDifference& difference : differences) {
    out += fmt::format("\n{}: {}\n", Visible(difference.label),
                       Visible(DescribeCode(difference, a, b)));
    AppendLines(difference, options.all, out);
  }
  return out;
}

void WriteCodeJson(JsonWriter& json, const std::vector<CodeDifference>& differences,
                   const History& a, const History& b) {
  json.Key("code").BeginArray();
  for (const CodeDifference& difference : differences) {
    json.Break(4).BeginObject().Field("record", difference.label).Key("only_in");
    const bool is_lone = difference.a < 0 || difference.b < 0;
    is_lone ? json.String(difference.b < 0 ? a.ref : b.ref) : json.Null();
    json.Key("kernels").BeginArray();
    for (const KernelDiff& kernel : difference.kernels) {
      json.Break(6).BeginObject().Key("name");
      kernel.name.empty() ? json.Null() : json.String(kernel.name);
      json.Field("status", StatusOf(kernel.kind)).Key("nodes").BeginArray();
      for (const std::string& node : kernel.nodes)
        json.String(node);
      json.EndArray().Field("deleted", kernel.deleted).Field("inserted", kernel.inserted);
      json.Key("lines").BeginArray();
      for (const std::string& line : kernel.lines)
        json.String(line);
      json.EndArray().EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace strata::cli
