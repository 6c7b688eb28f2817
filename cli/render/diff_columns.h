#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "diff/model/graph_diff.h"

namespace strata::cli {

struct DiffColumnsOptions {
  bool colours = false;
  size_t width = 120;  ///< of the whole, in columns of a terminal; at least 50 are used
  size_t context = 3;  ///< unchanged nodes around each change
  bool all = false;    ///< every node, and consequences as changes
};

/// Both graphs beside each other, each node next to what it became; what differs inside a line is
/// underlined, or marked by carets below it where there are no colours:
///
///     mm = aten.mm.default(x, w)             mm_1 = aten.mm.default(x, w)
///     detach = aten.detach.default(mm)     -
///     view = aten.view.default(a, [16])    ~ reshape = aten.reshape.default(a, [16])
///                 ^^^^^^^^^^^^                         ^^^^^^^^^^^^^^^
std::string DiffColumns(const GraphDiff& diff, std::string_view before_ref,
                        std::string_view after_ref, const DiffColumnsOptions& options);

}  // namespace strata::cli
