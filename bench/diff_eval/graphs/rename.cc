#include "bench/diff_eval/graphs/rename.h"

#include <map>
#include <string>

#include "ir/ops.h"
#include "ir/rewriter.h"

namespace strata::bench {

void RenameAll(Module& module) {
  for (size_t g = 0; g < module.num_graphs(); ++g) {
    Graph& graph = module.graph(GraphId{static_cast<int32_t>(g)});
    Rewriter rewriter(graph);
    // Two rounds, so that no new name meets an old one.
    for (const bool final_round : {false, true}) {
      std::map<std::string, int> counters;
      const auto next = [&](std::string_view base) {
        const int number = counters[std::string(base)]++;
        std::string name = final_round ? std::string(base) : "temporary_" + std::string(base);
        if (number > 0 || !final_round) name += "_" + std::to_string(number);
        return name;
      };
      for (NodeId id : graph.nodes()) {
        const Node& node = graph.node(id);
        if (node.kind == NodeKind::kOutput) continue;
        rewriter.SetName(
            id, next(node.kind == NodeKind::kPlaceholder ? "arg" : BaseName(graph.op(id))));
        for (size_t i = 0; node.returns_tuple && i < node.num_results; ++i) {
          const ValueId element = graph.result(id, i);
          if (graph.value(element).name.valid()) rewriter.SetElementName(element, next("getitem"));
        }
      }
    }
  }
}

}  // namespace strata::bench
