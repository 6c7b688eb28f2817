#include "passes/regions/annotate_regions.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "ir/symbol_sizes.h"
#include "passes/compile/pointwise.h"
#include "passes/memory/selectors.h"
#include "passes/regions/region_graph.h"

namespace strata {
namespace {

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('|'), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// The module or one that it is in.
bool IsInside(std::string_view pattern, std::string_view module) {
  while (!module.empty()) {
    if (MatchesModule(pattern, module)) return true;
    const size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
  }
  return false;
}

bool IsNorm(std::string_view op) {
  return op.starts_with("aten._fused_rms_norm.") ||
         op.starts_with("aten._fused_rms_norm_backward.");
}

/// What is marked in one graph.
class Marks {
 public:
  Marks(const Graph& graph, const AnnotateRegions::Options& options)
      : graph_(graph),
        samples_(SampleSizes(graph.module())),
        is_marked_(static_cast<size_t>(graph.node_bound()), false) {
    const std::vector<std::string_view> modules = Split(options.modules), ops = Split(options.ops);
    for (const NodeId node : graph.nodes()) {
      if (graph.node(node).kind != NodeKind::kCall) continue;
      const std::string_view module = graph.module().str(graph.node(node).module);
      const bool is_named =
          std::ranges::find(ops, graph.op(node)) != ops.end() ||
          std::ranges::any_of(modules, [&](std::string_view m) { return IsInside(m, module); });
      if (is_named) Mark(node);
      if (options.norms && IsNorm(graph.op(node))) MarkNorm(node);
      if (options.chains && IsKernelPart(node)) MarkNeighbours(node);
    }
  }

  bool has(NodeId node) const { return is_marked_[static_cast<size_t>(node.index)]; }

 private:
  void Mark(NodeId node) { is_marked_[static_cast<size_t>(node.index)] = true; }

  void MarkNorm(NodeId node) {
    Mark(node);
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      for (const Use use : graph_.uses(graph_.result(node, i)))
        if (graph_.op(use.user).ends_with("getitem")) Mark(use.user);
    }
  }

  FusionKind KindOf(NodeId node) const {
    return graph_.node(node).kind == NodeKind::kCall
               ? FusionKindOf(graph_, node, /*exact=*/false, samples_)
               : FusionKind::kNone;
  }
  bool IsKernelPart(NodeId node) const {
    const FusionKind kind = KindOf(node);
    return kind == FusionKind::kPointwise || kind == FusionKind::kReduction;
  }

  /// `node` and what it reads, over views, when that is of a kernel too.
  void MarkNeighbours(NodeId node) {
    graph_.ForEachOperand(node, [&](ValueId value) {
      std::vector<NodeId> views;
      NodeId def = graph_.value(value).def;
      while (KindOf(def) == FusionKind::kReshape) {
        views.push_back(def);
        def = graph_.value(graph_.args(def)[0].value()).def;
      }
      if (!IsKernelPart(def)) return;
      if (graph_.node(def).phase != graph_.node(node).phase) return;
      Mark(node);
      Mark(def);
      std::ranges::for_each(views, [&](NodeId view) { Mark(view); });
    });
  }

  const Graph& graph_;
  std::vector<SymbolSizes> samples_;
  std::vector<bool> is_marked_;
};

}  // namespace

Result<Changed> AnnotateRegions::Run(Module& module) {
  const std::string annotation =
      options_.config.empty() ? "{}" : fmt::format("{{'inductor_configs': {}}}", options_.config);
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    const Marks marks(graph, options_);
    Rewriter rewriter(graph);
    for (const NodeId node : graph.nodes()) {
      if (!marks.has(node) || !graph.attribute(node, kCompileAttribute).empty()) continue;
      rewriter.SetAttribute(node, kCompileAttribute, annotation);
      if (!options_.region.empty()) rewriter.SetAttribute(node, kRegionAttribute, options_.region);
      changed = true;
    }
  }
  return Changed(changed);
}

}  // namespace strata
