#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/source_error.h"
#include "ir/module.h"

namespace strata {
namespace fx {
class KnownLines;
}

/// FX text: what `torch.fx.GraphModule.print_readable` of PyTorch 2.3 … 2.14 writes into logs.
///
///     class <lambda>(torch.nn.Module):
///         def forward(self, arg0_1: "f32[6, 8][8, 1]cpu", arg1_1: "f32[8, 4][4, 1]cpu"):
///             # seq_nr: 3 # Annotation: {'module_fqn': 'wq'} File: model.py:7 in forward, code: …
///             mm: "f32[6, 4][4, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1);  arg0_1 = …
///             return [mm]
///
/// How texts and graphs correspond:
///  - `torch.ops.aten.mm.default` is the operator `aten.mm.default`; other functions keep their
///    names (`torch.relu`); `a + b` is `_operator.add`, `a[i]` `_operator.getitem`, `a.T`
///    `getattr(a, 'T')`.
///  - A node is named as the body names it. Its argument's name, when that differs, is the
///    placeholder's attribute `argument`; a default value is its args[0].
///  - `x = f(…)` followed by `a = x[0]`, `b = x[2]` and no other use of x is one node x with
///    results; a and b are names of elements. Other getitem lines are nodes of their own.
///  - Lines of a prologue, `n_boxed_arg_0 = […]` and `;  a = None` are not nodes. Neither is
///    `s0 = x.shape[1]`, which binds a symbol that arguments read (`s0*2`).
///  - Classes inside are bodies, named by path (`cond_0`, `outer/inner`). The get_attr node (or
///    call_module) that names one has the graph as its first argument.
///  - Comments give phase, module, sequence number and location; keys of no field are attributes,
///    those of `Annotation: {…}` under `custom.<key>`. Where no comment says `backward`, nodes that
///    depend on gradients of outputs (`tangents_1`) are of that phase.
///  - Attributes of the output node keep what belongs to the text as a whole: `class`, `signature`
///    (`compact`, `boxed`), `symbols` (`bound`: by such lines), `backward` (`key`, `prefix` or
///    `none`: how comments mark it), `descriptors`, and of a pytree prologue `arguments`, `flatten`
///    and `return`.
///  - Inside arguments, `Name(a, b)` is a call argument; a keyword in it is a call of `key=`.

/// What a recovering parser left out.
struct FxDiagnostic {
  size_t line = 0, column = 0;  ///< 1-based, in the text
  std::string what;
  std::string skipped;  ///< the text that is not in the graph, cut to one line
};

struct FxOptions {
  std::string_view file = "<fx>";    ///< for messages
  std::string_view graph_name = {};  ///< "": the name of the class
  bool strict = false;               ///< the first unread token is an error
  uint64_t first_stable_id = 1;      ///< see Module::ReserveStableIds
  TextPlace place = {};              ///< of the text in `file`, for messages
  /// Ids of nodes by the 0-based line of their statement, each given to one node; others get new
  /// ones. For writers of texts who know more than a text shows. REQUIRES: below first_stable_id.
  std::vector<StableId>* line_ids = nullptr;
  /// Lines of the texts that were read with it, so that others that share them are read faster.
  fx::KnownLines* known_lines = nullptr;
};

struct FxDocument {
  std::unique_ptr<Module> module;  ///< one program, graph 0, and its bodies; all marked foreign
  std::vector<FxDiagnostic> diagnostics = {};  ///< the first 100
  size_t num_diagnostics = 0;
  /// Names that the text frees (`;  a = None`) though they are used later or were freed before, and
  /// names that it does not free after their last use. The first 100; the graph is what was read.
  std::vector<FxDiagnostic> findings = {};
  size_t num_findings = 0;

  Graph& graph() { return module->graph(GraphId{0}); }
  const Graph& graph() const { return module->graph(GraphId{0}); }
};

/// Reads one graph. Text around it (an ExportedProgram's header and signature, `# graph id:`) is
/// passed over. Errors: no graph in the text; strict: `file:line:column: what`, the line, a caret.
Result<FxDocument> ParseFx(std::string_view text, const FxOptions& options = {});

/// True for text that holds an FX graph rather than a program that contains one: a class of
/// `torch.nn.Module` with a `forward`, or a bare `def forward`. Before it may stand imports, if
/// nothing else does and nothing follows; other texts with an import at top level are programs.
bool LooksLikeFxGraph(std::string_view text);

struct FxPrintOptions {
  bool comments = true;  ///< also descriptors of inputs and outputs
  bool frees = true;     ///< `;  a = b = None` after the last use
};

/// Prints a graph and its bodies as PyTorch 2.14 does with strides and devices. Text that ParseFx
/// read without diagnostics comes back byte for byte when it was in that form. Symbols that the
/// arguments of a graph of Strata's read are bound, so that Python can execute the text.
void PrintFx(const Graph& graph, const FxPrintOptions& options, std::string& out);
std::string PrintFx(const Graph& graph, const FxPrintOptions& options = {});
/// Whether PrintFx gives `text` and a line end. Ends at the first difference. `known_lines`: those
/// that have read this graph, and no other since.
bool PrintsAs(const Graph& graph, std::string_view text, fx::KnownLines* known_lines = nullptr);

/// Symbols in arguments that no value has as a size, so that no line of the text can bind them.
std::vector<std::string> UnboundSymbols(const Graph& graph);

}  // namespace strata
