#include "viewer/compare/export.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

struct Look {
  std::string_view line, fill;
  double width;
  std::string_view dash;
};

/// The light theme of the design language.
Look LookOf(SceneStatus status) {
  switch (status) {
    case SceneStatus::kAdded:
      return {"#0072B2", "#EAF3F9", 2, ""};
    case SceneStatus::kRemoved:
      return {"#D55E00", "#FCF0E8", 1.5, "5 3"};
    case SceneStatus::kChanged:
      return {"#C0689A", "#FAF0F6", 1.5, ""};
    case SceneStatus::kMoved:
      return {"#009E73", "#E8F5F1", 1.5, "1.5 2.5"};
    case SceneStatus::kDerived:
      return {"#8B8474", "#FFFFFF", 1, ""};
    case SceneStatus::kSame:
      break;
  }
  return {"#B9B3A5", "#FFFFFF", 1, ""};
}

/// Names of graphs hold any characters; XML has no place for control characters.
std::string Xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

/// A text of the width that a fixed font takes, cut with an ellipsis.
std::string Cut(const std::string& text, double width, double size) {
  const auto most = static_cast<size_t>(std::max(1.0, width / (size * 0.6)));
  if (text.size() <= most) return Xml(text);
  size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return Xml(text.substr(0, end)) + "…";
}

class Svg {
 public:
  Svg(const Comparison& comparison, const SceneGeometry& geometry) : c_(comparison), g_(geometry) {}

  std::string Draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"DejaVu Sans Mono, monospace\">\n"
        "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#F8F7F4\"/>\n",
        g_.width, g_.height, Xml(c_.title()));
    for (const SceneSlab& slab : g_.slabs) {
      if (slab.cluster != Scene::kRoot) Slab(slab);
    }
    for (const SceneLine& line : g_.lines)
      Line(line);
    for (const SceneBox& box : g_.boxes)
      Box(box);
    return out_ + "</svg>\n";
  }

 private:
  void Rect(const SceneRect& rect, std::string_view fill, const Look& look, double radius) {
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" fill=\"{}\" "
        "stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
        rect.x, rect.y, rect.width, rect.height, radius, fill, look.line, look.width,
        look.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", look.dash));
  }
  void Text(double x, double y, double size, std::string_view ink, const std::string& text,
            bool bold = false) {
    out_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n", x,
                    y, size, ink, bold ? " font-weight=\"bold\"" : "", text);
  }
  void Slab(const SceneSlab& slab) {
    const SceneCluster& cluster = c_.cluster(slab.cluster);
    const std::string_view fill = !slab.open            ? "#FFFFFF"
                                  : slab.depth % 2 == 0 ? "#EDEAE3"
                                                        : "#F3F1EC";
    Rect(slab, fill, {"#DEDAD0", "", 1, ""}, 6);
    const std::string counts = CountsText(cluster.counts);
    const std::string words =
        fmt::format("{}  {}{}{}", cluster.label, Plural(cluster.counts.nodes, "node"),
                    counts.empty() ? "" : "  ", counts);
    Text(slab.x + 12, slab.y + 18, 11, "#1B1A17", Cut(words, slab.width - 24, 11), true);
  }
  void Line(const SceneLine& line) {
    const Look look = LookOf(line.status);
    std::string points;
    for (const ScenePoint& point : line.points)
      points += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
    out_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                    points, line.status == SceneStatus::kSame ? "#8B8474" : look.line, look.width,
                    look.dash.empty() ? "" : " stroke-dasharray=\"4 3\"");
  }
  void Box(const SceneBox& box) {
    if (!box.node.valid()) {
      Rect(box, "#E9E5DC", {"#E9E5DC", "", 1, ""}, 12);
      Text(box.x + 12, box.y + 16, 10, "#69645A",
           fmt::format("… {}", NumberText(static_cast<int64_t>(box.members.size()))));
      return;
    }
    const Look look = LookOf(c_.StatusOf(box.node));
    Rect(box, look.fill, look, 4);
    const std::string sign(SignOf(c_.StatusOf(box.node)));
    Text(box.x + 10, box.y + 16, 11, "#1B1A17",
         Cut((sign.empty() ? "" : sign + " ") + c_.LabelOf(box.node), box.width - 16, 11), true);
    Text(box.x + 10, box.y + 31, 10, "#545047",
         Cut(c_.NameOf(box.node) + " " + ShortType(c_.TypeOf(box.node)), box.width - 16, 10));
  }

  const Comparison& c_;
  const SceneGeometry& g_;
  std::string out_;
};

std::string DotString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

void DotCluster(const Comparison& c, ClusterId cluster,
                const IdVector<ClusterId, std::vector<SceneNodeId>>& nodes, std::string& out) {
  if (cluster != Scene::kRoot)
    out += fmt::format("subgraph cluster_{} {{ label={};\n", cluster.index,
                       DotString(c.cluster(cluster).label));
  for (SceneNodeId i : nodes[cluster]) {
    const Look look = LookOf(c.StatusOf(i));
    out += fmt::format("n{} [label={}, color=\"{}\", fillcolor=\"{}\"{}];\n", i.index,
                       DotString(fmt::format("{} {}", c.LabelOf(i), c.NameOf(i))), look.line,
                       look.fill,
                       c.StatusOf(i) == SceneStatus::kRemoved ? ", style=\"filled,dashed\"" : "");
  }
  for (ClusterId child : c.ChildrenOf(cluster))
    DotCluster(c, child, nodes, out);
  if (cluster != Scene::kRoot) out += "}\n";
}

}  // namespace

std::string SvgOf(const Comparison& comparison, const SceneGeometry& geometry) {
  return Svg(comparison, geometry).Draw();
}

std::string DotOf(const Comparison& c) {
  std::string out = fmt::format(
      "digraph {{\nlabel={};\nnode [shape=box, style=filled, fontname=\"DejaVu Sans Mono\"];\n",
      DotString(c.title()));
  IdVector<ClusterId, std::vector<SceneNodeId>> nodes(c.scene().clusters.size());
  for (SceneNodeId i : c.nodes())
    nodes[c.node(i).cluster].push_back(i);
  DotCluster(c, Scene::kRoot, nodes, out);
  for (const SceneEdge& edge : c.scene().edges) {
    out += fmt::format("n{} -> n{}", edge.from.index, edge.to.index);
    if (edge.status != SceneStatus::kSame)
      out += fmt::format(" [color=\"{}\"]", LookOf(edge.status).line);
    out += ";\n";
  }
  return out + "}\n";
}

std::string JsonOf(const Comparison& c) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.graph/1").Field("title", c.title());
  json.Break(1).Key("nodes").BeginArray();
  for (SceneNodeId i : c.nodes()) {
    json.Break(2).BeginObject().Field("name", c.NameOf(i));
    json.Field("operator", c.OperatorOf(i)).Field("type", c.TypeOf(i));
    json.Field("module", c.ModuleOf(i)).Field("status", ToString(c.StatusOf(i)));
    if (const Pair* pair = c.PairOf(i); pair != nullptr && !pair->fields.empty())
      json.Field("change", WhatChanged(*pair));
    json.EndObject();
  }
  json.EndArray().Break(1).Key("edges").BeginArray();
  for (const SceneEdge& edge : c.scene().edges) {
    json.Break(2).BeginObject().Field("from", c.NameOf(edge.from)).Field("to", c.NameOf(edge.to));
    json.Field("status", ToString(edge.status)).EndObject();
  }
  json.EndArray().EndObject();
  return text + "\n";
}

}  // namespace strata::viewer
