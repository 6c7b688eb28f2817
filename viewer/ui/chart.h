#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// A line over steps or nodes, with words at both ends and marks on it.
struct Chart {
  using Points = std::vector<std::pair<double, double>>;  ///< ascending in x

  struct Mark {
    double x = 0, y = 0;
    std::string words;
    bool quiet = false;
  };

  std::string label;  ///< what it shows, for the UI tree
  Points points;
  Points before;           ///< drawn dashed; empty: none
  bool from_zero = false;  ///< the axis begins at 0, and the area below the line is filled
  std::function<std::string(double)> unit;
  std::string left, right;  ///< words below the ends of the axis
  std::vector<Mark> marks;
  /// What the point under the pointer is; empty: its value alone.
  std::function<std::string(size_t)> words;
};

/// Draws a chart as the element `name`. Returns the index of the point that was clicked; -1: none.
int DrawChart(Ui& ui, std::string_view name, const Area& area, const Chart& chart);

}  // namespace strata::viewer
