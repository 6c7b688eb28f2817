#include "cli/render/memory_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"
#include "cli/render/memory_front.h"
#include "ir/fingerprint.h"
#include "ir/module.h"
#include "passes/memory/activations.h"
#include "passes/memory/tags.h"
#include "scene/memory.h"

namespace strata::cli {
namespace {

/// "1.50 MiB".
std::string Size(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  auto number = static_cast<double>(bytes);
  for (; std::abs(number) >= 1024 && unit + 1 < kUnits.size(); ++unit)
    number /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", number, kUnits[unit]);
}

std::string SizeOrUnknown(std::optional<int64_t> bytes) {
  return bytes ? Size(*bytes) : "?";
}

/// "runtime/models/layers.cc:78".
std::string Source(const Graph& graph, NodeId node) {
  const LocId id = graph.node(node).loc;
  if (!id.valid()) return "";
  const SourceLoc& loc = graph.module().loc(id);
  return fmt::format("{}:{}", graph.module().str(loc.file), loc.line);
}

std::string TypeText(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() ? graph.module().types().ToString(type) : "?";
}

NodeId PeakNode(const Graph& graph, const MemoryProfile& profile) {
  const std::vector<NodeId> order = graph.nodes().Snapshot();
  return profile.peak_at < 0 ? NodeId() : order[static_cast<size_t>(profile.peak_at)];
}

/// Of what forward leaves for backward, each storage once.
int64_t SavedBytes(const std::vector<Activation>& activations) {
  std::map<ValueId, int64_t> storages;
  for (const Activation& activation : activations) {
    int64_t& bytes = storages[activation.owner];
    bytes = std::max(bytes, activation.bytes.value_or(0));
  }
  int64_t sum = 0;
  for (const auto& [owner, bytes] : storages)
    sum += bytes;
  return sum;
}

class Table {
 public:
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// Columns are as wide as they must be; those of `right` are aligned to the right.
  std::string Text(const std::set<size_t>& right) const {
    std::vector<size_t> widths;
    for (const std::vector<std::string>& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
    std::string text;
    for (const std::vector<std::string>& row : rows_) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string blanks(widths[i] - DisplayWidth(row[i]), ' ');
        line += " " + (right.contains(i) ? blanks + row[i] : row[i] + blanks) + " ";
      }
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string More(size_t shown, size_t all) {
  return shown < all ? fmt::format("  … {} more\n", all - shown) : "";
}

std::string PeakText(const Graph& graph, size_t shown) {
  const MemoryProfile profile = ProfileMemory(graph);
  const NodeId node = PeakNode(graph, profile);
  std::string text = fmt::format("graph {}: peak {}", graph.name_text(), Size(profile.peak));
  if (node.valid()) text += fmt::format(" after {}", Visible(graph.name(node)));
  text += fmt::format(", inputs and constants {} of it\n", Size(profile.inputs));
  if (profile.unknown > 0)
    text += fmt::format("{} values of unknown size count as nothing\n", profile.unknown);
  Table table;
  const size_t end = shown == 0 ? profile.holders.size() : std::min(shown, profile.holders.size());
  for (size_t i = 0; i < end; ++i) {
    const MemoryProfile::Holder& holder = profile.holders[i];
    const NodeId def = graph.value(holder.value).def;
    table.Add({Size(holder.bytes), std::string(Visible(graph.value_name(holder.value))),
               std::string(ToString(graph.node(def).phase)),
               std::string(Visible(ModuleOf(graph, def))), Source(graph, def)});
  }
  return text + "\nalive at the peak\n" + table.Text({0}) + More(end, profile.holders.size());
}

std::string GroupHead(const ActivationGroup& group) {
  const auto count = static_cast<int64_t>(group.layers.size());
  const std::string what =
      fmt::format("{} activations, {}", group.activations.size(), Size(group.bytes));
  if (count == 0) return fmt::format("[outside of layers] ({})\n", what);
  if (count == 1) return fmt::format("[layer {}] ({})\n", group.layers.front(), what);
  return fmt::format("[layers {}-{}] (x{}, same pattern) ({} each, {} total)\n",
                     group.layers.front(), group.layers.back(), count, what,
                     Size(count * group.bytes));
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
                  activations.size(), Size(SavedBytes(activations)));
  for (const ActivationGroup& group : GroupByLayer(graph, activations)) {
    text += GroupHead(group);
    Table table;
    const size_t all = group.activations.size(), end = shown == 0 ? all : std::min(shown, all);
    for (size_t i = 0; i < end; ++i) {
      const Activation& activation = group.activations[i];
      const NodeId def = graph.value(activation.value).def;
      table.Add({SizeOrUnknown(activation.bytes), activation.policy,
                 TypeText(graph, activation.value), InLayer(Visible(ModuleOf(graph, def))),
                 std::string(Visible(activation.op)), Source(graph, def)});
    }
    text += table.Text({0}) + More(end, all);
  }
  return text;
}

void WriteValue(JsonWriter& json, const Graph& graph, ValueId value) {
  const NodeId node = graph.value(value).def;
  json.Field("node", graph.value_name(value)).Field("op", graph.op(node));
  json.Field("module", ModuleOf(graph, node)).Field("phase", ToString(graph.node(node).phase));
  json.Field("type", TypeText(graph, value)).Field("source", Source(graph, node));
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
  json.EndArray().Field("saved_bytes", SavedBytes(activations));
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
  json.EndArray().Key("policy").BeginObject();
  for (const NodeId node : graph.nodes()) {
    if (const std::optional<MemoryTag> tag = MemoryTagOf(graph, node);
        tag && !IsBackward(graph, node))
      json.Break(2).Field(graph.name(node), ToString(*tag));
  }
  json.EndObject();
}

}  // namespace

std::string MemoryText(const Graph& graph, size_t shown) {
  return PeakText(graph, shown) + ActivationText(graph, shown);
}

std::string MemoryChangeText(const Graph& before, const Graph& after) {
  const auto line = [](std::string_view what, int64_t from, int64_t to) {
    const double percent =
        from == 0 ? 0.0 : 100.0 * (static_cast<double>(to) / static_cast<double>(from) - 1.0);
    return fmt::format("{}: {} → {} ({:+.1f} %)\n", what, Size(from), Size(to), percent);
  };
  return line("peak", ProfileMemory(before).peak, ProfileMemory(after).peak) +
         line("saved for backward", SavedBytes(ListActivations(before)),
              SavedBytes(ListActivations(after)));
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
