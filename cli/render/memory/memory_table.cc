#include "cli/render/memory/memory_table.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"
#include "cli/render/memory/memory_front.h"
#include "cli/render/memory/memory_sums.h"
#include "cli/render/text_table.h"
#include "ir/fingerprint.h"
#include "ir/module.h"
#include "passes/memory/activations.h"
#include "passes/memory/tags.h"
#include "scene/memory.h"

namespace strata::cli {
namespace {

std::string SizeOrUnknown(std::optional<int64_t> bytes) {
  return bytes ? BinarySize(*bytes) : "?";
}

std::string TypeText(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() ? graph.module().types().ToString(type) : "?";
}

NodeId PeakNode(const Graph& graph, const MemoryProfile& profile) {
  const std::vector<NodeId> order = graph.nodes().Snapshot();
  return profile.peak_at < 0 ? NodeId() : order[static_cast<size_t>(profile.peak_at)];
}

std::string PeakText(const Graph& graph, size_t shown) {
  const MemoryProfile profile = ProfileMemory(graph);
  const NodeId node = PeakNode(graph, profile);
  std::string text = fmt::format("graph {}: peak {}", graph.name_text(), BinarySize(profile.peak));
  if (node.valid()) text += fmt::format(" after {}", Visible(graph.name(node)));
  text += fmt::format(", inputs and constants {} of it\n", BinarySize(profile.inputs));
  if (profile.unknown > 0)
    text += fmt::format("{} values of unknown size count as nothing\n", profile.unknown);
  TextTable table;
  const size_t end = shown == 0 ? profile.holders.size() : std::min(shown, profile.holders.size());
  for (size_t i = 0; i < end; ++i) {
    const MemoryProfile::Holder& holder = profile.holders[i];
    const NodeId def = graph.value(holder.value).def;
    table.Add({BinarySize(holder.bytes), std::string(Visible(graph.value_name(holder.value))),
               std::string(ToString(graph.node(def).phase)),
               std::string(Visible(ModuleOf(graph, def))), SourceLine(graph, def)});
  }
  return text + "\nalive at the peak\n" + table.Text({0}) + MoreRows(end, profile.holders.size());
}

std::string GroupHead(const ActivationGroup& group) {
  const auto count = static_cast<int64_t>(group.layers.size());
  const std::string what =
      fmt::format("{} activations, {}", group.activations.size(), BinarySize(group.bytes));
  if (count == 0) return fmt::format("[outside of layers] ({})\n", what);
  if (count == 1) return fmt::format("[layer {}] ({})\n", group.layers.front(), what);
  return fmt::format("[layers {}-{}] (x{}, same pattern) ({} each, {} total)\n",
                     group.layers.front(), group.layers.back(), count, what,
                     BinarySize(count * group.bytes));
}

/// "feed_forward.w1" of "layers.0.feed_forward.w1".
std::string InLayer(std::string_view module) {
  if (LayerNumber(module) == kNotInLayers) return std::string(module);
  const size_t end = module.find('.', module.find('.') + 1);
  return end == std::string_view::npos ? "" : std::string(module.substr(end + 1));
}

std::string ActivationText(const Graph& graph, size_t shown) {
  const std::vector<Activation> activations = ListActivations(graph);
  std::string text =
      fmt::format("\nforward results that backward reads: {}, {} with each storage once\n",
                  activations.size(), BinarySize(SavedBytes(graph, activations)));
  for (const ActivationGroup& group : GroupByLayer(graph, activations)) {
    text += GroupHead(group);
    TextTable table;
    const size_t all = group.activations.size(), end = shown == 0 ? all : std::min(shown, all);
    for (size_t i = 0; i < end; ++i) {
      const Activation& activation = group.activations[i];
      const NodeId def = graph.value(activation.value).def;
      table.Add({SizeOrUnknown(activation.bytes), activation.policy,
                 TypeText(graph, activation.value), InLayer(Visible(ModuleOf(graph, def))),
                 std::string(Visible(activation.op)), SourceLine(graph, def)});
    }
    text += table.Text({0}) + MoreRows(end, all);
  }
  return text;
}

void WriteValue(JsonWriter& json, const Graph& graph, ValueId value) {
  const NodeId node = graph.value(value).def;
  json.Field("node", graph.value_name(value)).Field("op", graph.op(node));
  json.Field("module", ModuleOf(graph, node)).Field("phase", ToString(graph.node(node).phase));
  json.Field("type", TypeText(graph, value)).Field("source", SourceLine(graph, node));
}

void WriteGraph(JsonWriter& json, const Graph& graph) {
  const MemoryProfile profile = ProfileMemory(graph);
  const NodeId peak = PeakNode(graph, profile);
  json.Field("graph", graph.name_text()).Field("fingerprint", ToString(FingerprintOf(graph)));
  json.Field("peak_bytes", profile.peak).Field("input_bytes", profile.inputs);
  json.Field("peak_node", peak.valid() ? graph.name(peak) : std::string_view());
  json.Field("unknown_sizes", profile.unknown).Key("alive").BeginArray();
  for (const MemoryProfile::Holder& holder : profile.holders) {
    json.Break(2).BeginObject();
    WriteValue(json, graph, holder.value);
    json.Field("bytes", holder.bytes).EndObject();
  }
  const std::vector<Activation> activations = ListActivations(graph);
  json.EndArray().Field("saved_bytes", SavedBytes(graph, activations));
  json.Key("saved_for_backward").BeginArray();
  for (const Activation& activation : activations) {
    json.Break(2).BeginObject();
    WriteValue(json, graph, activation.value);
    json.Field("storage", graph.value_name(activation.owner)).Field("policy", activation.policy);
    json.Key("bytes");
    if (activation.bytes) {
      json.Int(*activation.bytes);
    } else {
      json.Null();
    }
    json.EndObject();
  }
  json.EndArray();
  WriteMemorySums(json, graph);
  json.Key("policy").BeginObject();
  for (const NodeId node : graph.nodes()) {
    if (const std::optional<MemoryTag> tag = MemoryTagOf(graph, node);
        tag && !IsBackward(graph, node))
      json.Break(2).Field(graph.name(node), ToString(*tag));
  }
  json.EndObject();
}

}  // namespace

std::string MemoryText(const Graph& graph, size_t shown) {
  return PeakText(graph, shown) + ActivationText(graph, shown) + MemorySumsText(graph, shown);
}

std::string MemoryChangeText(const Graph& before, const Graph& after, size_t shown) {
  const auto line = [](std::string_view what, int64_t from, int64_t to) {
    const double percent =
        from == 0 ? 0.0 : 100.0 * (static_cast<double>(to) / static_cast<double>(from) - 1.0);
    return fmt::format("{}: {} → {} ({:+.1f} %)\n", what, BinarySize(from), BinarySize(to),
                       percent);
  };
  return line("peak", ProfileMemory(before).peak, ProfileMemory(after).peak) +
         line("saved for backward", SavedBytes(before, ListActivations(before)),
              SavedBytes(after, ListActivations(after))) +
         MemorySumChangesText(before, after, shown);
}

std::string MemoryJson(const Graph& graph, const Graph* before, const MemoryFront* front) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.memory/1");
  WriteGraph(json, graph);
  if (before != nullptr) {
    json.Key("before").BeginObject();
    WriteGraph(json, *before);
    json.EndObject();
  }
  if (front != nullptr) WriteFront(json, *front);
  json.EndObject();
  return text + "\n";
}

}  // namespace strata::cli
