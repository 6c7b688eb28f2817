#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// Times of collectives that were measured, by their group, its ranks, and the bytes of the
/// operand:
///
///       Group    Group Size  Collective                1MB (ms)    2MB (ms)
///     -------  ------------  ----------------------  ----------  ----------
///           0             8  reduce_scatter_tensor       0.0866      0.1151
///
/// Source: the tables of AutoParallel's overlap simulator.
class CollectiveTable {
 public:
  /// Of the text of the file `file`. Errors, with `file:line:column`: a column that is not
  /// `N MB (ms)`, a line with other columns, a number that is not one, a line that is there twice.
  static Result<CollectiveTable> Parse(std::string_view text, std::string_view file);
  static Result<CollectiveTable> Load(const std::string& file);

  /// Between two sizes on the line through both, beyond the last on that through the last two,
  /// below the first as long as the first. None: the table has no such line. `ranks`: 0 where the
  /// collective does not state them.
  std::optional<double> Us(std::string_view group, int64_t ranks, std::string_view op,
                           double bytes) const;

 private:
  struct Key {
    std::string group, op;
    int64_t ranks = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, std::map<double, double>> lines_;  ///< µs by bytes
};

}  // namespace strata
