#pragma once
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace strata::fx {

/// Lines of a text, each indented as the block that it belongs to.
class IndentedLines {
 public:
  explicit IndentedLines(std::string& out) : out_(out) {}

 protected:
  /// Begins a line with `text`.
  void Line(std::string_view text) {
    out_.append(indent_, ' ');
    out_ += text;
  }

  std::string& out_;
  size_t indent_ = 0;
};

/// An attribute of the output: what the text said of the graph as a whole.
inline std::string_view OutputFact(const Graph& graph, std::string_view key) {
  return graph.output().valid() ? graph.attribute(graph.output(), key) : std::string_view{};
}

}  // namespace strata::fx
