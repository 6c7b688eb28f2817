#include "diff/diff.h"

#include <string>

#include <fmt/format.h>

#include "bench/bench.h"
#include "cli/core/flags.h"
#include "diff/match/matcher.h"
#include "diff/match/synonyms.h"
#include "diff/output/diff_json.h"
#include "ir/rewriter.h"

namespace strata::cli {
namespace {

/// Edits every hundredth call: in turn another operator, a removed unary node, an inserted one.
void EditOnePercent(Module& module) {
  Graph& graph = module.graph(GraphId{0});
  Rewriter rewriter(graph);
  int calls = 0;
  for (NodeId id : graph.nodes().Snapshot()) {
    if (graph.node(id).kind != NodeKind::kCall || ++calls % 100 != 0) continue;
    const std::vector<ValueId> operands = graph.operands(id);
    switch (calls / 100 % 3) {
      case 0:
        rewriter.SetOp(id, "aten.sigmoid.default");
        break;
      case 1:
        if (operands.size() != 1) break;
        rewriter.ReplaceUses(graph.result(id), operands[0]);
        rewriter.Erase(id);
        break;
      default: {
        rewriter.SetCursorBefore(id);
        const NodeId copy = rewriter.Create("aten.clone.default", {Arg(operands[0])}, From{id});
        for (uint32_t i = 0; i < graph.node(id).num_args; ++i) {
          const uint32_t slot = graph.node(id).args_begin + i;
          if (graph.slot(slot).is_value() && graph.slot(slot).value() == operands[0]) {
            rewriter.SetSlot(id, slot, Arg(graph.result(copy)));
          }
        }
      }
    }
  }
}

/// What a pass does that works on every layer: `view` becomes `reshape`, all over.
void EditEveryLayer(Module& module) {
  Graph& graph = module.graph(GraphId{0});
  Rewriter rewriter(graph);
  for (NodeId id : graph.nodes().Snapshot()) {
    if (graph.op(id) == "aten.view.default") rewriter.SetOp(id, "aten.reshape.default");
  }
}

/// Everything up to the pairs, without what changed in them.
void MatchAlone(const Graph& a, const Graph& b) {
  const Listing before(a), after(b);
  LabelledSides labels = LabelSides(before, after);
  Matching matching(labels.before, labels.after);
  const SynonymScope synonyms(labels.before, labels.after);
  (void)MatchListings(before, after, {}, matching);
}

/// Without module paths: layers must be found by structure.
void ForgetModules(Module& module) {
  Graph& graph = module.graph(GraphId{0});
  Rewriter rewriter(graph);
  for (NodeId id : graph.nodes())
    rewriter.SetModule(id, "");
}

}  // namespace

Result<Exit> BenchDiff(Args args) {
  Flags flags("bench diff", "compares graphs of which one percent, or every layer, was edited");
  bool adversarial = false;
  int64_t most_nodes = 1'000'000;
  std::string only;
  flags.Switch("--adversarial", &adversarial, "graphs that are hard to match, and how time grows");
  flags.Option("--nodes", "N", &most_nodes, "with --adversarial: the largest graphs");
  flags.Option("--only", "GRAPHS", &only,
               "with --adversarial: one kind of graphs, e.g. 'other edges'");
  flags.Example("strata bench diff");
  flags.Example("strata bench diff --adversarial --nodes 100000");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (adversarial) {
    STRATA_RETURN_IF_ERROR(BenchDiffAdversarial(most_nodes, only));
    return Exit::kOk;
  }
  for (int nodes : {10'000, 100'000}) {
    const std::unique_ptr<Module> before = TransformerLikeGraph(nodes);
    const std::unique_ptr<Module> after = before->Clone();
    EditOnePercent(*after);
    const Graph& a = before->graph(GraphId{0});
    const Graph& b = after->graph(GraphId{0});
    const std::string size = fmt::format("{}k nodes", nodes / 1000);
    const double limit = nodes == 100'000 ? 1000 : 0;
    PrintTiming("match alone, " + size, Measure(5, [&] { MatchAlone(a, b); }),
                nodes == 100'000 ? 250 : 0);
    PrintTiming("same graph, " + size, Measure(5, [&] { (void)Diff(a, a); }));
    PrintTiming("1 % edited, " + size, Measure(5, [&] { (void)Diff(a, b); }), limit);
    STRATA_TRY(const GraphDiff diff, Diff(a, b));
    // Two snapshots of one trace.
    DiffOptions ids{.stable_ids = true,
                    .provenance = {after->provenance().begin(), after->provenance().end()}};
    PrintTiming("the same by ids", Measure(5, [&] { (void)Diff(a, b, ids); }));
    ids.contradictions = true;
    PrintTiming("and with contradictions", Measure(5, [&] { (void)Diff(a, b, ids); }));
    const std::unique_ptr<Module> layers = before->Clone();
    EditEveryLayer(*layers);
    const Graph& c = layers->graph(GraphId{0});
    PrintTiming("every layer, " + size, Measure(5, [&] { (void)Diff(a, c); }), limit);
    const std::unique_ptr<Module> flat = before->Clone();
    ForgetModules(*flat);
    ForgetModules(*layers);
    const Graph& f = flat->graph(GraphId{0});
    PrintTiming("the same without modules", Measure(5, [&] { (void)Diff(f, c); }), limit);
    PrintTiming("as JSON, " + size, Measure(5, [&] { (void)DiffJson(diff, "a", "b"); }));
  }
  return Exit::kOk;
}

}  // namespace strata::cli
