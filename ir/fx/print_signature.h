#pragma once
#include <string>

#include "ir/fx/fx.h"
#include "ir/fx/print_lines.h"
#include "ir/fx/print_value.h"

namespace strata::fx {

/// Prints the head of `forward`: its signature and the statements that name its inputs.
class SignaturePrinter : private IndentedLines {
 public:
  SignaturePrinter(const Graph& graph, const FxPrintOptions& options, ValuePrinter& values,
                   std::string& out)
      : IndentedLines(out), graph_(graph), options_(options), values_(values) {}

  /// `def` stands at `indent`. A signature that is expanded has a line for each input.
  void Print(size_t indent, bool is_expanded);
  /// `x = x_1`, inside the function, for an input whose name is not that of its argument.
  void PrintAlias(NodeId id);

 private:
  void PrintParameter(NodeId id);
  void PrintSignature(bool is_expanded);
  void PrintEndOfSignature();
  /// torch.fx _BoxedCodeGen: inputs come in a list, which is emptied so that they can be freed.
  void PrintBoxedSignature();
  void PrintDescriptor(NodeId id);
  /// torch.fx _PyTreeCodeGen: types on lines of their own, then the inputs from the arguments.
  void PrintPrologue(bool is_expanded);

  const Graph& graph_;
  const FxPrintOptions& options_;
  ValuePrinter& values_;
};

}  // namespace strata::fx
