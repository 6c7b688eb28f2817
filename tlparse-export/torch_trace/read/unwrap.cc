#include "tlparse-export/torch_trace/read/unwrap.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "tlparse-export/torch_trace/read/graph_listing.h"

namespace strata {
namespace {

constexpr size_t kLeastWidth = 40;

/// Characters of UTF-8.
size_t WidthOf(std::string_view line) {
  return static_cast<size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

/// Whether a text begins as PyTorch's loggers do: `V1122 18:32:38`.
bool BeginsWithTime(std::string_view text) {
  constexpr std::string_view kLevels = "VDIWEC", kTime = "0000 00:00:00";
  if (text.size() <= kTime.size() || kLevels.find(text[0]) == std::string_view::npos) return false;
  for (size_t i = 0; i < kTime.size(); ++i) {
    const bool fits = kTime[i] == '0' ? IsDigit(text[i + 1]) : text[i + 1] == kTime[i];
    if (!fits) return false;
  }
  return true;
}

/// Whether a line is the first one of a message. Launchers, containers and collectors of logs mark
/// it: `[rank0]:V1122 …`, `0: V1122 …`, `2026-11-29T16:15:32Z V1122 …`.
bool HasPrefix(std::string_view line) {
  constexpr size_t kLongestMark = 100;
  for (size_t i = 0; i < std::min(line.size(), kLongestMark); ++i) {
    const bool begins = i == 0 || line[i - 1] == ' ' || line[i - 1] == ':';
    if (begins && BeginsWithTime(line.substr(i))) return true;
  }
  return false;
}

/// Whether a line is one of its own in a text without prefixes.
bool BeginsAlone(std::string_view line) {
  constexpr std::array<std::string_view, 7> kBegins = {
      "    ", " ===== ", "TRACED GRAPH", "class ", "def forward(", "graph():", "```"};
  return line.empty() || IsTableRow(line) ||
         std::ranges::any_of(kBegins, [&](const auto begin) { return line.starts_with(begin); });
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("> ")) line.remove_prefix(2);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string Unwrapped(std::string text) {
  const std::vector<std::string_view> lines = LinesOf(text);
  std::vector<size_t> widths(lines.size());
  std::ranges::transform(lines, widths.begin(), WidthOf);
  const size_t width = widths.empty() ? 0 : std::ranges::max(widths);
  if (width < kLeastWidth) return text;
  const auto goes_on = [&](size_t i, bool has_prefix) {
    const bool is_title = lines[i].starts_with(" ===== ") && lines[i].ends_with(" =====");
    if (widths[i] != width || i + 1 == lines.size() || is_title) return false;
    return !HasPrefix(lines[i + 1]) && (has_prefix || !BeginsAlone(lines[i + 1]));
  };
  // A line of a log may be followed by another output of the program: one such line shows nothing.
  size_t evidence = 0;
  bool has_prefix = false, is_new = true;
  std::string joined;
  for (size_t i = 0; i < lines.size(); ++i) {
    joined += lines[i];
    if (is_new) has_prefix = HasPrefix(lines[i]);
    is_new = !goes_on(i, has_prefix);
    if (is_new) {
      joined += '\n';
    } else {
      evidence += has_prefix ? 1 : 2;
    }
  }
  return evidence < 2 ? std::move(text) : std::move(joined);
}

}  // namespace strata
