#include "tlparse-export/report/scene_json.h"

#include <string_view>
#include <unordered_map>

#include "ir/json.h"
#include "ir/native_text.h"

namespace strata {
namespace {

/// Printed lines longer than this are cut: a return of 300 values tells nothing by its 290th.
constexpr size_t kMaxLine = 600;

class Writer {
 public:
  Writer(const GraphDiff& diff, const Scene& scene) : diff_(diff), scene_(scene), json_(out_) {}

  std::string Run() {
    json_.BeginObject();
    Columns();
    Edges();
    Clusters();
    Fields();
    Lines();
    Patterns();
    Relations();
    json_.Key("text").BeginArray();
    for (std::string_view text : texts_)
      json_.String(text);
    json_.EndArray().EndObject();
    return std::move(out_);
  }

 private:
  int64_t Text(std::string_view text) {
    if (text.empty()) return -1;
    const auto [entry, is_new] =
        index_.try_emplace(std::string(text), static_cast<int64_t>(texts_.size()));
    if (is_new) texts_.push_back(entry->first);
    return entry->second;
  }

  const Listing& ListingOf(const SceneNode& node) const {
    return node.after.valid() ? diff_.after : diff_.before;
  }
  static EntityId IdOf(const SceneNode& node) {
    return node.after.valid() ? node.after : node.before;
  }
  const Node& NodeOf(const SceneNode& node) const {
    const Listing& listing = ListingOf(node);
    return listing.graph(IdOf(node)).node(listing[IdOf(node)].node);
  }

  template <class Fn>
  void Column(std::string_view key, Fn&& value) {
    json_.Key(key).BeginArray();
    for (const SceneNode& node : scene_.nodes)
      json_.Int(value(node));
    json_.EndArray();
  }

  void Columns() {
    Column("name", [&](const SceneNode& n) { return Text(ListingOf(n).name(IdOf(n))); });
    Column("was", [&](const SceneNode& n) -> int64_t {
      if (!n.before.valid() || !n.after.valid()) return -1;
      const std::string before = diff_.before.name(n.before);
      return before == diff_.after.name(n.after) ? -1 : Text(before);
    });
    Column("op", [&](const SceneNode& n) {
      const std::string_view target = ListingOf(n).target(IdOf(n));
      if (!target.empty()) return Text(target);
      return Text(ListingOf(n)[IdOf(n)].kind == EntityKind::kOutput ? "output" : "input");
    });
    Column("type", [&](const SceneNode& n) {
      const Listing& listing = ListingOf(n);
      const ValueId value = listing.value(IdOf(n));
      const Graph& graph = listing.graph(IdOf(n));
      if (!value.valid() || !graph.value(value).type.valid()) return Text("");
      return Text(graph.module().types().ToString(graph.value(value).type));
    });
    Column("phase", [&](const SceneNode& n) { return static_cast<int64_t>(NodeOf(n).phase); });
    Column("seq", [&](const SceneNode& n) { return static_cast<int64_t>(NodeOf(n).seq_nr); });
    Column("place", [&](const SceneNode& n) {
      const LocId loc = NodeOf(n).loc;
      if (!loc.valid()) return Text("");
      const Module& module = ListingOf(n).root().module();
      const SourceLoc& source = module.loc(loc);
      return Text(fmt::format("{}:{}", module.str(source.file), source.line));
    });
    Column("code", [&](const SceneNode& n) {
      const LocId loc = NodeOf(n).loc;
      if (!loc.valid()) return Text("");
      const Module& module = ListingOf(n).root().module();
      return Text(module.str(module.loc(loc).code));
    });
    Column("status", [](const SceneNode& n) { return static_cast<int64_t>(n.status); });
    Column("backward", [](const SceneNode& n) { return n.backward ? 1 : 0; });
    Column("cluster", [](const SceneNode& n) { return n.cluster; });
  }

  void Edges() {
    json_.Key("edges").BeginArray();
    for (const SceneEdge& edge : scene_.edges) {
      json_.Int(edge.from).Int(edge.to).Int(static_cast<int64_t>(edge.status));
    }
    json_.EndArray();
  }

  void Blocks(std::string_view key, const std::vector<SceneBlock>& blocks) {
    json_.Key(key).BeginArray();
    for (const SceneBlock& block : blocks) {
      json_.BeginObject();
      if (!block.clusters.empty()) {
        json_.Key("clusters").BeginArray();
        for (int32_t cluster : block.clusters)
          json_.Int(cluster);
        json_.EndArray();
      } else {
        json_.Field("rows", block.rows).Key("places").BeginArray();
        for (const ScenePlace& p : block.places) {
          json_.Int(p.node).Int(p.fold).Int(p.backward ? 1 : 0);
          json_.Int(p.row).Int(p.column).Int(p.columns);
        }
        json_.EndArray().Key("folds").BeginArray();
        for (const std::vector<int32_t>& fold : block.folds) {
          json_.BeginArray();
          for (int32_t node : fold)
            json_.Int(node);
          json_.EndArray();
        }
        json_.EndArray();
      }
      json_.EndObject();
    }
    json_.EndArray();
  }

  void Clusters() {
    json_.Field("two_lanes", scene_.has_backward);
    json_.Key("clusters").BeginArray();
    for (const SceneCluster& c : scene_.clusters) {
      json_.BeginObject().Field("path", c.path).Field("label", c.label).Field("parent", c.parent);
      if (c.repeats > 0) json_.Field("repeats", c.repeats);
      if (c.joins_previous) json_.Field("joins", true);
      json_.Key("counts").BeginArray();
      for (int32_t count : {c.counts.nodes, c.counts.added, c.counts.removed, c.counts.changed,
                            c.counts.moved, c.counts.derived}) {
        json_.Int(count);
      }
      json_.EndArray();
      json_.Key("range").BeginArray().Int(c.subtree_begin).Int(c.subtree_end).EndArray();
      Blocks("blocks", c.blocks);
      if (!c.folded_blocks.empty()) Blocks("folded", c.folded_blocks);
      json_.EndObject();
    }
    json_.EndArray();
    json_.Key("order").BeginArray();
    for (int32_t node : scene_.by_cluster)
      json_.Int(node);
    json_.EndArray();
  }

  void OptionalText(const std::optional<std::string>& text) {
    json_.Int(text ? Text(text->empty() ? " " : *text) : -1);
  }

  void Fields() {
    json_.Key("fields").BeginArray();
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      if (scene_.nodes[i].pair < 0) continue;
      const Pair& pair = diff_.pairs[static_cast<size_t>(scene_.nodes[i].pair)];
      if (pair.fields.empty()) continue;
      json_.BeginArray().Int(static_cast<int64_t>(i));
      for (const FieldDiff& field : pair.fields) {
        json_.BeginArray().Int(Text(field.path));
        OptionalText(field.before);
        OptionalText(field.after);
        json_.Int(field.derived ? 1 : 0).EndArray();
      }
      json_.EndArray();
    }
    json_.EndArray();
    json_.Key("via").BeginArray();
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      if (scene_.nodes[i].pair < 0) continue;
      const Pair& pair = diff_.pairs[static_cast<size_t>(scene_.nodes[i].pair)];
      if (pair.status.same() && pair.confidence >= 0.999) continue;
      json_.BeginArray().Int(static_cast<int64_t>(i)).Int(Text(ToString(pair.via)));
      json_.Double(pair.confidence).EndArray();
    }
    json_.EndArray();
  }

  /// Native text without types and metadata, line by line, keyed by node.
  static std::unordered_map<int32_t, std::string_view> LinesOf(const Graph& graph,
                                                               std::string& text) {
    PrintText(graph, {.types = true, .metadata = false}, text);
    std::unordered_map<int32_t, std::string_view> lines;
    std::string_view rest = text;
    rest.remove_prefix(rest.find('\n') + 1);  // graph NAME
    for (NodeId id : graph.nodes()) {
      const size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      line.remove_prefix(std::min<size_t>(2, line.size()));
      lines.emplace(id.index, line.substr(0, kMaxLine));
      rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
    }
    return lines;
  }

  void Lines() {
    // Programs only: a body's node is shown by its fields.
    std::string before_text, after_text;
    const auto before = LinesOf(diff_.before.root(), before_text);
    const auto after = LinesOf(diff_.after.root(), after_text);
    json_.Key("lines").BeginArray();
    for (size_t i = 0; i < scene_.nodes.size(); ++i) {
      const SceneNode& node = scene_.nodes[i];
      if (node.status == SceneStatus::kSame || node.status == SceneStatus::kMoved) continue;
      json_.BeginArray().Int(static_cast<int64_t>(i));
      json_.Int(LineText(before, diff_.before, node.before));
      json_.Int(LineText(after, diff_.after, node.after)).EndArray();
    }
    json_.EndArray();
  }

  int64_t LineText(const std::unordered_map<int32_t, std::string_view>& lines,
                   const Listing& listing, EntityId id) {
    if (!id.valid() || listing[id].graph != listing.root().id() || listing[id].element.valid()) {
      return -1;
    }
    const auto line = lines.find(listing[id].node.index);
    return line == lines.end() ? -1 : Text(line->second);
  }

  void Patterns() {
    json_.Key("patterns").BeginArray();
    for (const Pattern& pattern : diff_.patterns) {
      json_.BeginObject().Field("title", pattern.title).Field("where", pattern.where);
      json_.Field("nodes", pattern.nodes)
          .Field("hunks", static_cast<int64_t>(pattern.hunks.size()));
      json_.Key("except").BeginArray();
      for (const std::string& place : pattern.except)
        json_.String(place);
      json_.EndArray().EndObject();
    }
    json_.EndArray();
  }

  void Names(const Listing& listing, const std::vector<EntityId>& ids) {
    json_.BeginArray();
    for (EntityId id : ids)
      json_.Int(Text(listing.name(id)));
    json_.EndArray();
  }

  void Relations() {
    json_.Key("relations").BeginArray();
    for (const Relation& relation : diff_.relations) {
      json_.BeginArray().String(ToString(relation.kind));
      Names(diff_.before, relation.before);
      Names(diff_.after, relation.after);
      json_.EndArray();
    }
    json_.EndArray();
  }

  const GraphDiff& diff_;
  const Scene& scene_;
  std::string out_;
  JsonWriter json_;
  std::unordered_map<std::string, int64_t> index_;
  std::vector<std::string_view> texts_;  // keys of index_, whose nodes do not move
};

}  // namespace

std::string SceneJson(const GraphDiff& diff, const Scene& scene) {
  return Writer(diff, scene).Run();
}

}  // namespace strata
