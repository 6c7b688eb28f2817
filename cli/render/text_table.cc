#include "cli/render/text_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/unicode.h"

namespace strata::cli {

std::string BinarySize(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  auto number = static_cast<double>(bytes);
  for (; std::abs(number) >= 1024 && unit + 1 < kUnits.size(); ++unit)
    number /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", number, kUnits[unit]);
}

std::string TextTable::Text(const std::set<size_t>& right) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - DisplayWidth(row[i]), ' ');
      line += " " + (right.contains(i) ? blanks + row[i] : row[i] + blanks) + " ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string MoreRows(size_t shown, size_t all) {
  return shown < all ? fmt::format("  … {} more\n", all - shown) : "";
}

}  // namespace strata::cli
