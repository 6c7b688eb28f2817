#include "tlparse-export/report/stages.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

/// The compilation that the record of a snapshot belongs to: "0/0"; "" when the record names none.
std::string CompileOf(const TraceReader& trace, const StoredGraph& graph) {
  const SnapshotInfo* info = trace.FindSnapshot(graph.snapshots.front());
  if (info == nullptr) return "";
  for (const JsonField& field :
       ReadJsonObject(info->attributes).value_or(std::vector<JsonField>{})) {
    if (field.key == "compile") return ReadJsonString(field.value).value_or("");
  }
  return "";
}

/// The name without the suffix that distinguishes graphs of one name: `aot_forward_graph@1/0`,
/// `post_grad_graph.2`.
std::string_view PlainName(std::string_view name) {
  name = name.substr(0, name.find('@'));
  const size_t dot = name.rfind('.');
  const bool is_numbered =
      dot != std::string_view::npos && dot + 1 < name.size() &&
      std::ranges::all_of(name.substr(dot + 1), [](char c) { return c >= '0' && c <= '9'; });
  return is_numbered ? name.substr(0, dot) : name;
}

}  // namespace

std::vector<Stage> StagesOf(const TraceReader& trace, const StoredRun& run) {
  std::vector<Stage> stages;
  if (run.info.kind != RunKind::kImport) return stages;
  struct Compilation {
    std::map<std::string_view, const StoredGraph*> graphs;  // by plain name
    int post_grads = 0;
  };
  std::map<std::string, Compilation> compilations;
  for (const StoredGraph& graph : run.graphs) {
    Compilation& compilation = compilations[CompileOf(trace, graph)];
    const std::string_view name = PlainName(graph.name);
    const auto follows = [&](std::initializer_list<std::string_view> candidates) {
      for (std::string_view candidate : candidates) {
        const auto from = compilation.graphs.find(candidate);
        if (from == compilation.graphs.end()) continue;
        stages.push_back({from->second, &graph});
        return;
      }
    };
    if (name == "aot_joint_graph" || name == "aot_inference_graph") {
      follows({"dynamo_output_graph"});
    } else if (name == "aot_forward_graph") {
      follows({"aot_joint_graph", "dynamo_output_graph"});
    } else if (name == "aot_backward_graph") {
      follows({"aot_joint_graph"});
    } else if (name.starts_with("aot_inference_graph_after")) {
      follows({"aot_inference_graph"});
    } else if (name == "post_grad_graph" && compilation.post_grads++ == 0) {
      follows({"aot_forward_graph", "aot_inference_graph"});
    } else if (name == "post_grad_graph") {
      follows({"aot_backward_graph"});
    }
    compilation.graphs.insert_or_assign(name, &graph);
  }
  return stages;
}

}  // namespace strata
