#pragma once
#include <span>
#include <string>
#include <string_view>

#include "ir/fx/print_value.h"
#include "ir/graph.h"

namespace strata::fx {

/// Prints what nodes compute: calls, operators and attributes.
class CallPrinter {
 public:
  CallPrinter(const Graph& graph, ValuePrinter& values, std::string& out)
      : graph_(graph), module_(graph.module()), values_(values), out_(out) {}

  /// `a += b;  iadd = a`: true when the statement before the assignment was printed.
  bool PrintInplace(NodeId id);
  /// The right side of the assignment of a node that `PrintInplace` does not print.
  void PrintRightSide(NodeId id);

 private:
  void PrintCallOf(std::string_view function, std::span<const Arg> args, NodeId id);
  /// Operators and attributes; false for calls that print as calls.
  bool PrintOperation(NodeId id);

  const Graph& graph_;
  const Module& module_;
  ValuePrinter& values_;
  std::string& out_;
};

}  // namespace strata::fx
