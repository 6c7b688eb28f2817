#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace strata::cli {

/// "1.50 MiB".
std::string BinarySize(int64_t bytes);

/// Rows of cells, indented by two blanks.
class TextTable {
 public:
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// Columns are as wide as they must be; those of `right` are aligned to the right.
  std::string Text(const std::set<size_t>& right) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// The line below a table that shows some of its rows; nothing where it shows all.
std::string MoreRows(size_t shown, size_t all);

}  // namespace strata::cli
