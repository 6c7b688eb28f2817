// Prints the result of the FX and log parsers for the oracle in fx_oracle.py, and measures their
// speed.
//
//   fx_tool nodes FILE…   one JSON line per distinct graph of each log or FX text
//   fx_tool print FILE    an FX text, read and printed
//   fx_tool bench FILE    MB/s of reading and printing an FX text, the best of many runs

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "ir/fx/fx.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/log.h"

namespace strata {
namespace {

std::string_view KindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kPlaceholder:
      return "placeholder";
    case NodeKind::kGetAttr:
      return "get_attr";
    case NodeKind::kCallMethod:
      return "call_method";
    case NodeKind::kCallModule:
      return "call_module";
    case NodeKind::kOutput:
      return "output";
    default:
      return "call_function";
  }
}

/// Counts of arguments, types, locations and sequence numbers.
void WriteCounts(const Graph& graph, JsonWriter& json) {
  int64_t arguments = 0, typed = 0, placed = 0, numbered = 0;
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::kPlaceholder || node.kind == NodeKind::kOutput) continue;
    int64_t lines = 1;
    for (size_t i = 0; i < node.num_results; ++i) {
      const Value& value = graph.value(graph.result(id, i));
      if (node.returns_tuple) lines += value.name.valid() ? 1 : 0;
      typed += value.type.valid() ? 1 : 0;
    }
    const std::string_view op = graph.op(id);
    if (node.kind == NodeKind::kCall && !op.starts_with("_operator.") && op != "getattr") {
      arguments += int64_t{node.num_args} + node.num_kwargs;
    }
    placed += node.loc.valid() ? lines : 0;
    numbered += node.seq_nr >= 0 ? lines : 0;
  }
  json.Key("counts").BeginArray();
  json.Int(arguments).Int(typed).Int(placed).Int(numbered).EndArray();
}

void WriteNodes(const Graph& graph, JsonWriter& json) {
  json.BeginObject().Field("path", graph.is_body() ? graph.name_text() : "").Key("nodes");
  json.BeginArray();
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    json.BeginArray().String(graph.name(id)).String(KindName(node.kind)).String(graph.op(id));
    json.BeginArray();
    graph.ForEachOperand(id, [&](ValueId value) { json.String(graph.value_name(value)); });
    json.EndArray().EndArray();
    for (size_t i = 0; node.returns_tuple && i < node.num_results; ++i) {
      const Value& value = graph.value(graph.result(id, i));
      if (!value.name.valid()) continue;
      json.BeginArray().String(graph.value_name(graph.result(id, i))).String("call_function");
      json.String("_operator.getitem").BeginArray().String(graph.name(id)).EndArray().EndArray();
    }
  }
  json.EndArray();
  WriteCounts(graph, json);
  json.EndObject();
}

Status PrintNodes(const std::string& path) {
  STRATA_TRY(std::string bytes, ReadFile(path));
  STRATA_TRY(const std::string text, Decompress(std::move(bytes), path));
  LogContent log;
  if (LooksLikeLog(text)) {
    STRATA_TRY(log, ReadLog(text, path));
  } else {
    log = LogOfFxText(text, path, "graph");
  }
  std::vector<bool> has_graph(log.payloads.size());
  for (const LogRun& run : log.runs) {
    for (const LogRecord& record : run.records) {
      if (record.has_graph) has_graph[static_cast<size_t>(record.payload)] = true;
    }
  }
  for (size_t p = 0; p < log.payloads.size(); ++p) {
    if (!has_graph[p]) continue;
    FxOptions options;
    options.file = path;
    options.strict = true;
    STRATA_TRY(const FxDocument document, ParseFx(log.payloads[p].text, options));
    std::string out;
    JsonWriter json(out);
    json.BeginObject().Field("file", path).Key("graphs").BeginArray();
    for (size_t i = 0; i < document.module->num_graphs(); ++i)
      WriteNodes(document.module->graph(GraphId{static_cast<int32_t>(i)}), json);
    json.EndArray().EndObject();
    fmt::print("{}\n", out);
  }
  return Ok();
}

template <class Work>
double BestSeconds(Work&& work) {
  double best = 1e9;
  for (int i = 0; i < 30; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count());
  }
  return best;
}

Status PrintOrMeasure(const std::string& path, bool measure) {
  STRATA_TRY(const std::string text, ReadFile(path));
  FxOptions options;
  options.file = path;
  STRATA_TRY(const FxDocument document, ParseFx(text, options));
  for (const FxDiagnostic& d : document.diagnostics)
    fmt::print(stderr, "{}:{}:{}: {}: {}\n", path, d.line, d.column, d.what, d.skipped);
  if (!measure) {
    fmt::print("{}", PrintFx(document.graph()));
    return Ok();
  }
  const double read = BestSeconds([&] { static_cast<void>(ParseFx(text)); });
  const double print = BestSeconds([&] { static_cast<void>(PrintFx(document.graph())); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print("{:.2f} MB, {} nodes: reads {:.0f} MB/s, prints {:.0f} MB/s\n", megabytes,
             document.graph().num_printed_nodes(), megabytes / read, megabytes / print);
  return Ok();
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode != "nodes" && mode != "print" && mode != "bench") {
    fmt::print(stderr, "usage: fx_tool nodes|print|bench FILE…\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const Status status =
        mode == "nodes" ? PrintNodes(argv[i]) : PrintOrMeasure(argv[i], mode == "bench");
    if (status) continue;
    fmt::print(stderr, "{}\n", status.error().message());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::Main(argc, argv);
}
