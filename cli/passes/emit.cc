#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/folder.h"
#include "base/python_literal.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/passes/emit_cpp.h"
#include "embedded/strata_emit_assets.h"
#include "ir/fx/fx.h"
#include "passes/flex/flex_node.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

/// Strata's own operators, and symbols that the text cannot bind, cannot run in PyTorch alone.
Status CheckRunsInPyTorch(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    const std::string_view op = graph.op(node);
    if (op == kBlockMaskOp) {
      return Error(
          "{} computes a block mask, which PyTorch does outside of graphs: {}: emit a graph of a "
          "training with attn_type = 'sdpa'",
          graph.name(node), graph.name_text());
    }
    if (op.starts_with("strata.")) {
      return Error(
          "{} calls {}, which PyTorch does not have: {}: emit a snapshot before the pass "
          "that made it",
          graph.name(node), op, graph.name_text());
    }
  }
  if (const std::vector<std::string> unbound = UnboundSymbols(graph); !unbound.empty()) {
    return Error(ErrorCode::kUnsupported,
                 "no value has the size {}: {}: only graphs whose symbols are sizes are emitted",
                 unbound.front(), graph.name_text());
  }
  return Ok();
}

/// The name under which training writes an input.
std::string_view InputName(const Graph& graph, NodeId node) {
  const std::string_view name = graph.attribute(node, "fqn");
  return name.empty() ? graph.name(node) : name;
}

std::string Literal(std::string_view text) {
  std::string literal;
  AppendQuoted(text, literal);
  return literal;
}

/// graph.py: the names of inputs and outputs, and the module.
std::string GraphPy(const Graph& graph, std::string_view ref) {
  std::string inputs, outputs;
  for (const NodeId node : graph.placeholders())
    inputs += fmt::format("    {},\n", Literal(InputName(graph, node)));
  for (const ValueId value : graph.operands(graph.output()))
    outputs += fmt::format("    {},\n", Literal(graph.value_name(value)));
  return fmt::format(
      "# The graph {}, written by strata emit. run.py runs it.\n\n"
      "from math import inf, nan\n\n"
      "import torch\n"
      "from torch import device\n\n"
      "Max, Min = max, min\n\n\n"
      "def Mod(a, b):\n"
      "    return a % b\n\n\n"
      "INPUTS = [\n{}]\n\nOUTPUTS = [\n{}]\n\n\n{}",
      Literal(ref), inputs, outputs, PrintFx(graph));
}

}  // namespace

Result<Exit> RunEmit(Args args) {
  std::string ref, folder, language = "python";
  LoadOptions load{.warn = Warn};
  Flags flags("emit",
              "writes a graph as a Python or C++ program that runs in PyTorch, without Strata");
  flags.Positional("REF", &ref, "a trace, a log or the text of a graph; see 'strata --help'");
  flags.Option("-o,--output", "DIR", &folder,
               "the folder of the program: a new one, or an empty one");
  flags.Choice("--lang", &language, {"python", "cpp"},
               "the language of the program: Python for PyTorch, or C++ for LibTorch, with a "
               "CMakeLists.txt");
  flags.Example("strata emit 'run.strata#graph=step,pass=fuse:before' -o step");
  flags.Example("python step/run.py inputs.safetensors outputs.safetensors");
  flags.Example("strata emit 'run.strata#graph=step' --lang cpp -o step");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (folder.empty()) return Error("-o is missing: say where the program goes, as in -o step");

  STRATA_TRY(const Snapshot snapshot, LoadRef(ref, load));
  STRATA_TRY(AtomicFolder program, AtomicFolder::Create(folder));
  if (language == "cpp") {
    STRATA_RETURN_IF_ERROR(WriteCppProgram(snapshot.graph(), ref, program));
    STRATA_RETURN_IF_ERROR(program.Commit());
    return Exit::kOk;
  }
  STRATA_RETURN_IF_ERROR(CheckRunsInPyTorch(snapshot.graph()));
  STRATA_RETURN_IF_ERROR(program.Write("graph.py", GraphPy(snapshot.graph(), ref)));
  STRATA_RETURN_IF_ERROR(program.Write("run.py", assets::kRunPy));
  STRATA_RETURN_IF_ERROR(program.Commit());
  return Exit::kOk;
}

}  // namespace strata::cli
