#include "cli/render/graph_text.h"

#include <fmt/format.h>

#include "base/json.h"
#include "diff/graph/arguments.h"
#include "diff/graph/listing.h"
#include "diff/graph/type_text.h"
#include "ir/fingerprint.h"
#include "ir/module.h"

namespace strata::cli {
namespace {

void WriteType(JsonWriter& json, const TypeText& type) {
  const auto write = [&](std::string_view key, const std::optional<TypeProperty>& property) {
    if (property) json.Field(key, property->text);
  };
  write("dtype", type.dtype);
  write("shape", type.shape);
  write("strides", type.strides);
  write("device", type.device);
  write("placement", type.placement);
}

void WriteNode(JsonWriter& json, const Listing& listing, EntityId id) {
  const Graph& graph = listing.graph(id);
  const Node& node = graph.node(listing[id].node);
  json.Break(4).BeginObject().Field("name", listing.name(id));
  json.Field("kind", ToString(listing[id].kind)).Field("target", listing.target(id));
  json.Key("operands").BeginArray();
  for (EntityId operand : OperandsOf(listing, id))
    json.String(listing.name(operand));
  json.EndArray();
  json.Key("literals").BeginObject();
  for (const Leaf& leaf : LeavesOf(listing, id)) {
    if (!leaf.operand.valid()) json.Field(leaf.path, leaf.text);
  }
  json.EndObject();
  WriteType(json, TypeTextOf(listing, id));
  const std::string_view module = graph.module().str(node.module);
  if (!module.empty()) json.Field("module", module);
  if (node.phase != Phase::kUnknown) json.Field("phase", ToString(node.phase));
  if (node.seq_nr >= 0) json.Field("seq_nr", node.seq_nr);
  json.EndObject();
}

/// A DOT string literal.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string GraphJson(const Graph& graph, std::string_view ref) {
  const Listing listing(graph);
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.show/1");
  json.Break(2).Field("ref", ref);
  json.Break(2).Field("graph", graph.name_text());
  json.Break(2).Field("fingerprint", ToString(FingerprintOf(graph)));
  json.Break(2).Key("nodes").BeginArray();
  for (EntityId id : listing.ids())
    WriteNode(json, listing, id);
  json.EndArray().Break(0).EndObject();
  out += '\n';
  return out;
}

std::string GraphDot(const Graph& graph) {
  const Listing listing(graph);
  std::string out = fmt::format("digraph {} {{\n  node [shape=box, fontname=\"monospace\"];\n",
                                Quoted(graph.name_text()));
  for (ScopeId scope_id : IdsOf(listing.scopes())) {
    const Listing::Scope& scope = listing.scopes()[scope_id];
    const bool is_body = scope_id != Listing::kProgram;
    if (is_body) {
      out += fmt::format("  subgraph cluster_{} {{\n    label={};\n", scope_id.index,
                         Quoted(scope.prefix));
    }
    for (EntityId id : scope.ids) {
      const std::string name = listing.name(id);
      const std::string_view target = listing.target(id);
      const TypeText type = TypeTextOf(listing, id);
      std::string label = name;
      if (!target.empty()) label += fmt::format("\n{}", target);
      if (type.dtype && type.shape) {
        label += fmt::format("\n{}{}", type.dtype->text, type.shape->text);
      }
      out += fmt::format("  {} [label={}];\n", Quoted(name), Quoted(label));
    }
    if (is_body) out += "  }\n";
  }
  for (EntityId id : listing.ids()) {
    for (EntityId operand : OperandsOf(listing, id))
      out += fmt::format("  {} -> {};\n", Quoted(listing.name(operand)), Quoted(listing.name(id)));
  }
  return out + "}\n";
}

}  // namespace strata::cli
