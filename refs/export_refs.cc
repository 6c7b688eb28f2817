#include "refs/export_refs.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/shell.h"
#include "base/suggest.h"
#include "base/text.h"

namespace strata {

Result<ExportSelection> SelectForExport(const Ref& ref, const TraceReader& trace) {
  if (ref.pass) {
    return Error("a pass cannot be exported: {}: leave out pass=, or 'strata show {} --format fx'",
                 ref.text, ShellWord(ref.text));
  }
  ExportSelection selection;
  selection.graph = ref.graph;
  std::vector<std::string> there, graphs;
  for (const StoredRun& run : trace.runs()) {
    const auto id = static_cast<int64_t>(run.id);
    there.push_back(fmt::format("run={},rank={}", id, run.info.rank));
    if ((ref.run && *ref.run != id) || (ref.rank && *ref.rank != run.info.rank)) continue;
    for (const StoredGraph& graph : run.graphs)
      graphs.push_back(graph.name);
    if (!ref.graph || run.FindGraph(*ref.graph) != nullptr) selection.runs.push_back(run.id);
  }
  if (!selection.runs.empty()) return selection;
  if (ref.graph && !graphs.empty()) {
    return Error(ErrorCode::kNotFound, "no graph '{}': {}: it has {}{}", *ref.graph, ref.file,
                 Enumerate(graphs, 12), DidYouMean(*ref.graph, graphs));
  }
  if (there.empty() && !ref.has_selector()) return selection;
  return Error(ErrorCode::kNotFound, "no such run: {}: it has {}", ref.text,
               there.empty() ? "none" : Enumerate(there, 12));
}

RefOf RefsForExport(const Ref& ref, const TraceReader& trace, bool is_imported) {
  return [&ref, &trace, is_imported](const StoredRun& run, const std::string& selector) {
    const auto id = static_cast<int64_t>(run.id);
    if (!is_imported) return fmt::format("{}#run={},{}", ref.file, id, selector);
    const SnapshotInfo* first = trace.FindSnapshot(run.graphs.front().snapshots.front());
    const bool is_text = first->attributes.find(R"("kind": "fx")") != std::string::npos;
    if (is_text) return fmt::format("{}#{}", run.info.source, selector);
    const auto number = std::ranges::count_if(trace.runs(), [&](const StoredRun& other) {
      return other.info.source == run.info.source && other.id <= run.id;
    });
    return fmt::format("{}#run={},{}", run.info.source, number, selector);
  };
}

}  // namespace strata
