#include "tlparse-export/report/scene_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/id.h"
#include "base/json.h"
#include "diff/pattern/titles.h"
#include "runtime/codegen/kernel_code.h"
#include "scene/cost.h"
#include "scene/memory.h"
#include "tlparse-export/report/causes.h"
#include "tlparse-export/report/scene_layout_json.h"
#include "tlparse-export/report/scene_lines.h"

namespace strata {
namespace {

/// Five digits: statistics are read, not computed with.
double Rounded(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

class Writer {
 public:
  Writer(const GraphDiff& diff, const Scene& scene, const SceneContext& context, Texts& names)
      : diff_(diff), scene_(scene), context_(context), names_(names), json_(out_) {
    node_of_before_.resize(diff.before.ids().size());
    node_of_after_.resize(diff.after.ids().size());
    for (SceneNodeId id : IdsOf(scene.nodes)) {
      const SceneNode& node = scene.nodes[id];
      if (node.before.valid()) node_of_before_[node.before] = id;
      if (node.after.valid()) node_of_after_[node.after] = id;
    }
  }

  std::string Run() {
    json_.BeginObject().Field("nodes", static_cast<int64_t>(scene_.nodes.size()));
    Columns();
    Sparse();
    Costs();
    WriteEdges(scene_, json_);
    WriteClusters(scene_, names_, json_);
    Fields();
    Lives();
    Patterns();
    Relations();
    json_.EndObject();
    return std::move(out_);
  }

 private:
  int64_t Text(std::string_view text) { return names_.Add(text); }

  const Listing& ListingOf(const SceneNode& node) const {
    return node.after.valid() ? diff_.after : diff_.before;
  }
  static EntityId IdOf(const SceneNode& node) {
    return node.after.valid() ? node.after : node.before;
  }
  const Graph& GraphOf(const SceneNode& node) const { return ListingOf(node).graph(IdOf(node)); }
  const Node& NodeOf(const SceneNode& node) const {
    return GraphOf(node).node(ListingOf(node)[IdOf(node)].node);
  }

  /// Null when nothing was measured; what belongs to a call is not said of its elements again.
  const NodeStatistics* MeasuresOf(const SceneNode& n) const {
    if (context_.measures == nullptr || ListingOf(n)[IdOf(n)].element.valid()) return nullptr;
    const auto found = context_.measures->find(static_cast<uint64_t>(NodeOf(n).stable_id));
    return found == context_.measures->end() ? nullptr : &found->second;
  }

  template <class Fn>
  void Column(std::string_view key, Fn&& value) {
    json_.Key(key).BeginArray();
    for (const SceneNode& node : scene_.nodes)
      json_.Int(value(node));
    json_.EndArray();
  }
  /// A column whose numbers rise mostly by the same step compresses to little as differences.
  template <class Fn>
  void Differences(std::string_view key, Fn&& value) {
    int64_t last = 0;
    Column(key, [&](const SceneNode& node) {
      const int64_t now = value(node);
      return now - std::exchange(last, now);
    });
  }
  /// Calls `fn(node, number of the node)`, which writes entries of its own.
  template <class Fn>
  void Entries(std::string_view key, Fn&& fn) {
    json_.Key(key).BeginArray();
    for (SceneNodeId id : IdsOf(scene_.nodes))
      fn(scene_.nodes[id], int64_t{id.index});
    json_.EndArray();
  }

  std::string TypeText(const SceneNode& n) const {
    const Listing& listing = ListingOf(n);
    const ValueId value = listing.value(IdOf(n));
    const Graph& graph = GraphOf(n);
    if (!value.valid() || !graph.value(value).type.valid()) return "";
    return graph.module().types().ToString(graph.value(value).type);
  }

  const SourceLoc* LocOf(const SceneNode& n) const {
    const LocId loc = NodeOf(n).loc;
    return loc.valid() ? &GraphOf(n).module().loc(loc) : nullptr;
  }

  void Columns() {
    Differences("name", [&](const SceneNode& n) { return Text(ListingOf(n).name(IdOf(n))); });
    Column("op", [&](const SceneNode& n) {
      const std::string_view target = ListingOf(n).target(IdOf(n));
      if (!target.empty()) return Text(target);
      return Text(ListingOf(n)[IdOf(n)].kind == EntityKind::kOutput ? "output" : "input");
    });
    Column("type", [&](const SceneNode& n) { return Text(TypeText(n)); });
    Column("phase", [&](const SceneNode& n) { return static_cast<int64_t>(NodeOf(n).phase); });
    Differences("seq", [&](const SceneNode& n) { return int64_t{NodeOf(n).seq_nr}; });
    Column("place", [&](const SceneNode& n) {
      const SourceLoc* loc = LocOf(n);
      if (loc == nullptr) return Text("");
      return Text(fmt::format("{}:{}", GraphOf(n).module().str(loc->file), loc->line));
    });
    Column("code", [&](const SceneNode& n) {
      const SourceLoc* loc = LocOf(n);
      return loc == nullptr ? Text("") : Text(GraphOf(n).module().str(loc->code));
    });
    Column("status", [](const SceneNode& n) { return static_cast<int64_t>(n.status); });
    Column("backward", [](const SceneNode& n) { return n.backward ? 1 : 0; });
    Column("distance", [](const SceneNode& n) { return int64_t{n.distance}; });
    Differences("cluster", [](const SceneNode& n) { return int64_t{n.cluster.index}; });
  }

  void Sparse() {
    const auto entry = [&](int64_t node, int64_t value) {
      if (value != 0) json_.BeginArray().Int(node).Int(value).EndArray();
    };
    Entries("was", [&](const SceneNode& n, int64_t i) {
      if (!n.before.valid() || !n.after.valid()) return;
      const std::string before = diff_.before.name(n.before);
      if (before != diff_.after.name(n.after))
        json_.BeginArray().Int(i).Int(Text(before)).EndArray();
    });
    Entries("tags", [&](const SceneNode& n, int64_t i) {
      const Entity& entity = ListingOf(n)[IdOf(n)];
      if (entity.element.valid() || entity.kind == EntityKind::kOutput) return;
      const Graph& graph = GraphOf(n);
      std::string tags;
      for (const auto& [key, value] : graph.attributes(entity.node)) {
        if (!tags.empty()) tags += "\n";
        tags += fmt::format("{}={}", graph.module().str(key), graph.module().str(value));
      }
      if (!tags.empty()) json_.BeginArray().Int(i).Int(Text(tags)).EndArray();
    });
    Entries("time", [&](const SceneNode& n, int64_t i) {
      if (const NodeStatistics* measured = MeasuresOf(n)) entry(i, measured->time_ns);
    });
    Entries("measured", [&](const SceneNode& n, int64_t i) {
      if (const NodeStatistics* measured = MeasuresOf(n)) entry(i, measured->bytes);
    });
    Entries("values", [&](const SceneNode& n, int64_t i) {
      const NodeStatistics* measured = MeasuresOf(n);
      if (measured == nullptr || !measured->has_values) return;
      json_.BeginArray().Int(i).Int(measured->elements).Int(measured->nan_count);
      json_.Int(measured->inf_count).Double(Rounded(measured->min));
      json_.Double(Rounded(measured->max)).Double(Rounded(measured->mean)).EndArray();
    });
    RankColumns();
    Entries("bytes", [&](const SceneNode& n, int64_t i) {
      const ValueId value = ListingOf(n).value(IdOf(n));
      const Graph& graph = GraphOf(n);
      if (!value.valid() || !graph.value(value).type.valid()) return;
      if (StorageOf(graph, value) != value) return;  // a view owns nothing
      entry(i, graph.module().types().Bytes(graph.value(value).type).value_or(0));
    });
    Entries("flops", [&](const SceneNode& n, int64_t i) {
      const Entity& entity = ListingOf(n)[IdOf(n)];
      if (!entity.element.valid()) entry(i, static_cast<int64_t>(FlopsOf(GraphOf(n), entity.node)));
    });
    Entries("stream", [&](const SceneNode& n, int64_t i) { entry(i, NodeOf(n).stream); });
    KernelCode generated;
    Entries("kernel", [&](const SceneNode& n, int64_t i) {
      const Entity& entity = ListingOf(n)[IdOf(n)];
      if (entity.element.valid() || entity.kind == EntityKind::kOutput) return;
      const std::string& code = generated.Of(GraphOf(n), entity.node);
      if (!code.empty()) json_.BeginArray().Int(i).Int(names_.AddWhole(code)).EndArray();
    });
  }

  /// Which ranks have a node, and how long it takes on each.
  void RankColumns() {
    Entries("ranks", [&](const SceneNode& n, int64_t i) {
      if (context_.ranks == nullptr || context_.ranks->sets.empty() || !n.after.valid()) return;
      const std::string& ranks = context_.ranks->sets[n.after];
      if (!ranks.empty()) json_.BeginArray().Int(i).Int(Text(ranks)).EndArray();
    });
    Entries("across", [&](const SceneNode& n, int64_t i) {
      if (context_.ranks == nullptr || context_.ranks->times.empty() || !n.after.valid()) return;
      const RankTimes& times = context_.ranks->times[n.after];
      if (times.slowest < 0) return;
      json_.BeginArray().Int(i).Int(times.least_ns).Int(times.median_ns);
      json_.Int(times.most_ns).Int(times.slowest).EndArray();
    });
    if (context_.ranks != nullptr && context_.ranks->is_left_out)
      json_.Field("ranks_left_out", true);
  }

  /// Nanoseconds, bytes moved, bytes at the peak; times of one call are not whole microseconds.
  using CostNumbers = std::array<int64_t, 3>;
  static int64_t Nanoseconds(double us) { return std::llround(us * 1e3); }

  CostNumbers CostChangeOf(const SceneNode& n) const {
    CostNumbers change{};
    const auto add = [&](const SideCosts& side, EntityId id, int64_t sign) {
      if (!id.valid()) return;
      change[0] += sign * Nanoseconds(side.us[id]);
      change[1] += sign * std::llround(side.bytes[id]);
      change[2] += sign * std::llround(side.peak[id]);
    };
    add(context_.costs->before, n.before, -1);
    add(context_.costs->after, n.after, 1);
    return change;
  }

  void CostList(const std::vector<CostChange>& changes) {
    constexpr size_t kMaxChanges = 200;
    json_.BeginArray();
    for (const CostChange& change :
         std::span(changes).first(std::min(changes.size(), kMaxChanges))) {
      json_.BeginArray().Int(Text(change.what)).Int(Text(change.where)).Int(change.places);
      json_.Int(Nanoseconds(change.us)).Int(std::llround(change.bytes));
      json_.Int(std::llround(change.peak)).EndArray();
    }
    json_.EndArray();
  }

  void Costs() {
    if (context_.costs == nullptr) return;
    bool changed = false;
    Entries("cost", [&](const SceneNode& n, int64_t i) {
      const CostNumbers change = CostChangeOf(n);
      if (change == CostNumbers{}) return;
      changed = true;
      json_.BeginArray().Int(i);
      for (const int64_t number : change)
        json_.Int(number);
      json_.EndArray();
    });
    const CostDiff& costs = context_.costs->changes;
    if (!changed && Nanoseconds(costs.us_before) == Nanoseconds(costs.us_after)) return;
    json_.Key("costs").BeginArray().BeginArray();
    for (const auto& [before, after] : {std::pair(costs.us_before * 1e3, costs.us_after * 1e3),
                                        std::pair(costs.bytes_before, costs.bytes_after),
                                        std::pair(costs.peak_before, costs.peak_after)}) {
      json_.BeginArray().Int(std::llround(before)).Int(std::llround(after)).EndArray();
    }
    json_.EndArray();
    for (const auto* list : {&costs.patterns, &costs.modules, &costs.passes})
      CostList(*list);
    json_.EndArray();
  }

  void OptionalText(const std::optional<std::string_view>& text) {
    json_.Int(text ? Text(text->empty() ? " " : *text) : -1);
  }

  void Fields() {
    Entries("fields", [&](const SceneNode& n, int64_t i) {
      if (!n.pair.valid()) return;
      const Pair& pair = diff_.pairs[n.pair];
      if (pair.fields.empty()) return;
      json_.BeginArray().Int(i);
      for (const FieldDiff& field : pair.fields) {
        json_.BeginArray().Int(Text(field.path));
        OptionalText(field.before);
        OptionalText(field.after);
        json_.Int(field.derived ? 1 : 0).EndArray();
      }
      json_.EndArray();
    });
    Entries("via", [&](const SceneNode& n, int64_t i) {
      if (!n.pair.valid()) return;
      const Pair& pair = diff_.pairs[n.pair];
      if (pair.status.same() && pair.confidence >= 0.999) return;
      json_.BeginArray().Int(i).Int(Text(ToString(pair.via)));
      json_.Double(pair.confidence).EndArray();
    });
  }

  /// Identity over all passes, and ancestors of what this pass made.
  void Lives() {
    const Lineage* lineage = context_.lineage;
    if (lineage == nullptr) return;
    const int32_t snapshot = lineage->num_snapshots() - 1;
    const auto history = [&](const SceneNode& n) {
      return n.after.valid() ? lineage->NodeHistoryAt(snapshot, n.after)
                             : lineage->NodeHistoryAt(snapshot - 1, n.before);
    };
    Differences("life", [&](const SceneNode& n) { return int64_t{history(n).index}; });
    const auto relatives = [&](std::string_view key, NodeEvent::Kind kind) {
      Entries(key, [&](const SceneNode& n, int64_t i) {
        if (n.before.valid() == n.after.valid()) return;
        for (const NodeEvent& event : lineage->events(history(n))) {
          if (event.kind != kind || event.snapshot != snapshot || event.relatives.empty()) continue;
          const std::string_view how = event.origin     ? ToString(*event.origin)
                                       : event.relation ? ToString(*event.relation)
                                                        : "";
          json_.BeginArray().Int(i).Int(Text(how)).BeginArray();
          for (NodeHistoryId relative : event.relatives) {
            const SceneNodeId node = NodeOfHistory(relative, snapshot);
            if (node.valid()) json_.Int(node.index);
          }
          json_.EndArray().EndArray();
        }
      });
    };
    relatives("made", NodeEvent::Kind::kCreated);
    relatives("gone", NodeEvent::Kind::kDeleted);
  }

  SceneNodeId NodeOfHistory(NodeHistoryId history, int32_t snapshot) const {
    const EntityId after = context_.lineage->At(history, snapshot);
    if (after.valid()) return node_of_after_[after];
    const EntityId before = context_.lineage->At(history, snapshot - 1);
    return before.valid() ? node_of_before_[before] : SceneNodeId();
  }

  void Patterns() {
    json_.Key("patterns").BeginArray();
    for (const Pattern& pattern : diff_.patterns) {
      json_.BeginObject().Field("title", Texts::Cut(pattern.title));
      json_.Field("where", Texts::Cut(pattern.where)).Field("nodes", pattern.nodes);
      json_.Field("hunks", static_cast<int64_t>(pattern.hunks.size()));
      json_.Key("deviations").BeginArray();
      for (const Deviation& deviation : pattern.deviations) {
        json_.BeginArray().String(Texts::Cut(deviation.where));
        json_.String(Texts::Cut(deviation.what)).BeginArray();
        for (HunkId hunk : deviation.hunks)
          json_.Int(hunk.index);
        json_.EndArray().EndArray();
      }
      json_.EndArray().EndObject();
    }
    json_.EndArray().Key("hunks").BeginArray();
    const Titles titles(diff_);
    for (const Hunk& hunk : diff_.hunks) {
      json_.BeginArray().Int(hunk.pattern.index).Int(Text(titles.OfHunk(hunk)));
      json_.Int(Text(PlaceOfHunk(diff_, hunk)));
      std::vector<SceneNodeId> nodes;
      for (PairId pair : hunk.pairs)
        nodes.push_back(node_of_after_[diff_.pairs[pair].after]);
      for (EntityId id : hunk.inserted)
        nodes.push_back(node_of_after_[id]);
      for (EntityId id : hunk.deleted)
        nodes.push_back(node_of_before_[id]);
      std::ranges::sort(nodes);
      json_.BeginArray();
      for (SceneNodeId node : nodes)
        json_.Int(node.index);
      json_.EndArray().EndArray();
    }
    json_.EndArray();
  }

  void Relations() {
    json_.Key("relations").BeginArray();
    for (const Relation& relation : diff_.relations) {
      json_.BeginArray().String(ToString(relation.kind)).BeginArray();
      for (EntityId id : relation.before)
        json_.Int(node_of_before_[id].index);
      json_.EndArray().BeginArray();
      for (EntityId id : relation.after)
        json_.Int(node_of_after_[id].index);
      json_.EndArray().Double(relation.confidence).EndArray();
    }
    json_.EndArray();
  }

  const GraphDiff& diff_;
  const Scene& scene_;
  const SceneContext& context_;
  Texts& names_;
  std::string out_;
  JsonWriter json_;
  IdVector<EntityId, SceneNodeId> node_of_before_, node_of_after_;
};

}  // namespace

SceneData SceneJson(const GraphDiff& diff, const Scene& scene, const SceneContext& context,
                    Texts& names, Texts& lines) {
  return {.core = Writer(diff, scene, context, names).Run(),
          .lines = LinesJson(diff, scene, lines)};
}

}  // namespace strata
