#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/folder.h"
#include "base/python_literal.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "cli/passes/emit_cpp.h"
#include "cli/passes/emit_ranks.h"
#include "embedded/strata_emit_assets.h"
#include "ir/fused_op.h"
#include "ir/fx/fx.h"
#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/core/written_memory.h"
#include "passes/flex/flex_node.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

/// What a program cannot do, in either language; one in C++ has no ranks.
Status CheckRunsOutside(const Graph& graph, bool has_ranks) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view op = graph.op(node);
    if (TraitsOf(op).collective && !has_ranks) {
      return Error(
          "{} is a collective, and a program in C++ has no other ranks: {}: emit it in Python, or "
          "a "
          "snapshot before the pass place",
          graph.name(node), graph.name_text());
    }
    if (op.starts_with("ao.")) {
      return Error(
          "{} calls {}, which PyTorch has in Python only: {}: emit a snapshot before the pass "
          "offload",
          graph.name(node), op, graph.name_text());
    }
  }
  return Ok();
}

bool HasPrims(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [&](NodeId node) { return graph.op(node).starts_with("prims."); });
}

/// LibTorch has no higher-order operators, and of those that Inductor's decompositions leave the
/// program brings what the executor has.
Status CheckRunsInLibTorch(const Graph& graph) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view op = graph.op(node);
    const bool is_flex = op == kBlockMaskOp || IsFlexOp(op);
    const bool is_prim = op.starts_with("prims.") && !HasCppPrim(op);
    if (!is_prim && !is_flex && !op.starts_with("higher_order.")) continue;
    return Error("{} calls {}, which PyTorch has in Python only: {}: take --lang python",
                 graph.name(node), is_flex ? "flex attention" : op, graph.name_text());
  }
  return Ok();
}

/// An operator of Strata as a function in Python. Nodes are named without an underscore in front.
struct OwnFunction {
  std::string_view op;
  std::string_view name;
  std::string_view definition;  ///< in graph.py; empty: ranks.py has it
};
constexpr OwnFunction kOwnFunctions[] = {{kFusedOp, "_run_body", R"(
def _run_body(body, *inputs, **_):
    return body(*inputs)
)"},
                                         {kBlockMaskOp, "_create_block_mask", R"(
def _create_block_mask(mask_mod, sizes, buffers, device):
    from torch.nn.attention.flex_attention import create_block_mask
    *scores, queries, keys = sizes
    mask = create_block_mask(
        lambda b, h, q, kv: mask_mod(b, h, q, kv, *buffers), *scores, device, (queries, keys))
    return mask.as_tuple()[2:10]  # counts and indices of blocks
)"},
                                         {kAxisIndexOp, "_ranks.axis_index", ""},
                                         {kAxisShardOp, "_ranks.axis_shard", ""}};

bool IsWrittenInPython(std::string_view op, bool has_ranks) {
  return std::ranges::any_of(kOwnFunctions, [&](const OwnFunction& own) {
    return own.op == op && (has_ranks || !own.definition.empty());
  });
}

/// Strata's own operators, and symbols that the text cannot bind, cannot run in PyTorch alone.
Status CheckRunsInPyTorch(const Graph& graph, bool has_ranks) {
  for (const NodeId node : graph.nodes()) {
    const std::string_view op = graph.op(node);
    if (op.starts_with("strata.") && !IsWrittenInPython(op, has_ranks)) {
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

/// Forgets how a text that was read names its class and takes its arguments: the program has one
/// form.
void TakeOwnForm(Graph& graph) {
  Rewriter rewriter(graph);
  for (const std::string_view key :
       {"class", "signature", "arguments", "flatten", "return", "return_type"})
    rewriter.SetAttribute(graph.output(), key, "");
  for (const NodeId node : graph.placeholders())
    rewriter.SetAttribute(node, "argument", "");
}

/// The text of a module that calls functions instead of Strata's operators, after those functions.
std::string WithOwnFunctions(std::string text) {
  std::string definitions;
  for (const OwnFunction& own : kOwnFunctions) {
    const std::string call = fmt::format("torch.ops.{}(", own.op);
    const std::string replacement = fmt::format("{}(", own.name);
    size_t at = text.find(call);
    if (at != std::string::npos && !own.definition.empty())
      definitions += fmt::format("{}\n", own.definition);
    for (; at != std::string::npos; at = text.find(call, at))
      text.replace(at, call.size(), replacement);
  }
  return fmt::format("{}\n{}", definitions, text);
}

/// The attributes that are tensors, of the graph and of its bodies: `subgraph_0._tensor_constant0`.
void AddConstantPaths(const Graph& graph, std::string_view prefix, std::set<std::string>& paths) {
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kGetAttr) continue;
    std::string path = fmt::format("{}{}", prefix, graph.op(node));
    if (const auto body = BodyNamedBy(graph, Arg(graph.result(node)))) {
      AddConstantPaths(graph.module().graph(*body), path + ".", paths);
    } else {
      paths.insert(std::move(path));
    }
  }
}

/// graph.py: the names of inputs and outputs, what its ranks are, and the module.
Result<std::string> GraphPy(const Graph& graph, std::string_view ref) {
  std::string ranks, import_ranks;
  if (IsOfSeveralRanks(graph)) {
    STRATA_TRY(ranks, RanksPy(graph));
    ranks += '\n';
    import_ranks = "\nimport ranks as _ranks  # nodes are named without an underscore\n";
  }
  std::string inputs, written, constants, outputs;
  const std::set<ValueId> memory = WrittenMemory(graph);
  for (const NodeId node : graph.placeholders()) {
    const std::string line = fmt::format("    {},\n", Literal(InputName(graph, node)));
    inputs += line;
    if (memory.contains(graph.result(node))) written += line;
  }
  std::set<std::string> paths;
  AddConstantPaths(graph, "", paths);
  for (const std::string& path : paths)
    constants += fmt::format("    {},\n", Literal(path));
  for (const Arg& arg : graph.args(graph.output())) {
    for (const Arg& output : arg.is_span() ? graph.elements(arg) : std::span(&arg, 1)) {
      outputs += output.is_value()
                     ? fmt::format("    {},\n", Literal(graph.unique_value_name(output.value())))
                     : "    None,\n";
    }
  }
  return fmt::format(
      "# The graph {}, written by strata emit. run.py runs it.\n\n"
      "from math import inf, nan\n\n"
      "import torch\n"
      "{}from torch import device\n{}\n"
      "Max, Min = max, min\n\n\n"
      "def Mod(a, b):\n"
      "    return a % b\n\n\n"
      "INPUTS = [\n{}]\n\nWRITTEN = [  # inputs that the graph may write to\n{}]\n\nCONSTANTS = "
      "[\n{}]\n\nOUTPUTS = [\n{}]\n\n{}{}",
      Literal(ref),
      HasPrims(graph) ? "import torch._inductor.inductor_prims  # more of torch.ops.prims\n" : "",
      import_ranks, inputs, written, constants, outputs, ranks, WithOwnFunctions(PrintFx(graph)));
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
  flags.Example("torchrun --nproc-per-node 4 step/run.py inputs.safetensors outputs.safetensors");
  flags.Example("strata emit 'run.strata#graph=step' --lang cpp -o step");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (folder.empty()) return Error("-o is missing: say where the program goes, as in -o step");

  STRATA_TRY(const Snapshot snapshot, LoadRef(ref, load));
  const bool has_ranks = language == "python" && IsOfSeveralRanks(snapshot.graph());
  STRATA_RETURN_IF_ERROR(CheckRunsOutside(snapshot.graph(), has_ranks));
  STRATA_TRY(AtomicFolder program, AtomicFolder::Create(folder));
  if (language == "cpp") {
    STRATA_RETURN_IF_ERROR(CheckRunsInLibTorch(snapshot.graph()));
    STRATA_RETURN_IF_ERROR(WriteCppProgram(snapshot.graph(), ref, program));
    STRATA_RETURN_IF_ERROR(program.Commit());
    return Exit::kOk;
  }
  STRATA_RETURN_IF_ERROR(CheckRunsInPyTorch(snapshot.graph(), has_ranks));
  TakeOwnForm(snapshot.module->graph(snapshot.graph_id));
  STRATA_TRY(const std::string graph, GraphPy(snapshot.graph(), ref));
  STRATA_RETURN_IF_ERROR(program.Write("graph.py", graph));
  STRATA_RETURN_IF_ERROR(program.Write("run.py", assets::kRunPy));
  if (has_ranks) STRATA_RETURN_IF_ERROR(program.Write("ranks.py", assets::kRanksPy));
  STRATA_RETURN_IF_ERROR(program.Commit());
  return Exit::kOk;
}

}  // namespace strata::cli
