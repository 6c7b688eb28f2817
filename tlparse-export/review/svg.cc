#include "tlparse-export/review/svg.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/id.h"
#include "base/unicode.h"
#include "diff/diff.h"
#include "diff/graph/statement.h"
#include "scene/scene.h"

namespace strata {
namespace {

constexpr double kBoxWidth = 216, kBoxHeight = 40, kGapX = 20, kGapY = 34, kMargin = 20;
constexpr size_t kColumns = 29;  // of text in a box

struct Look {
  std::string_view sign, colour, what;
};

/// Okabe and Ito's colours, and a sign for each.
Look LookOf(SceneStatus status) {
  switch (status) {
    case SceneStatus::kAdded:
      return {"+", "#009E73", "added"};
    case SceneStatus::kRemoved:
      return {"−", "#D55E00", "removed"};
    case SceneStatus::kChanged:
      return {"~", "#E69F00", "changed"};
    case SceneStatus::kMoved:
      return {"↷", "#56B4E9", "moved"};
    case SceneStatus::kDerived:
      return {"≈", "#999999", "derived"};
    default:
      return {"", "#cccccc", "same"};
  }
}

bool IsCause(SceneStatus status) {
  return status == SceneStatus::kAdded || status == SceneStatus::kRemoved ||
         status == SceneStatus::kChanged || status == SceneStatus::kMoved;
}

std::string Escaped(std::string_view text) {
  return EscapeMarkup(Visible(text));
}

/// The beginning of a text that fits into a box.
std::string Fitted(std::string_view text, size_t columns) {
  const std::string shown = Visible(text);
  if (DisplayWidth(shown) <= columns) return Escaped(shown);
  return Escaped(shown.substr(0, BytesThatFit(shown, columns - 1))) + "…";
}

/// A connected part of the picture, laid out in layers from its inputs down.
struct Part {
  std::vector<SceneNodeId> nodes;                // ascending
  std::vector<std::vector<SceneNodeId>> layers;  // from left to right
  double width = 0, height = 0;
};

class Painter {
 public:
  Painter(const GraphDiff& diff, const ChangeSvgOptions& options)
      : diff_(diff), options_(options), scene_(MakeScene(diff)) {}

  std::string PaintChange() {
    ChooseChanged();
    return Paint();
  }

  std::string PaintAll() {
    const size_t count = std::min(scene_.nodes.size(), options_.max_nodes);
    drawn_.assign(scene_.nodes.size(), false);
    std::fill_n(drawn_.begin(), count, true);
    if (count < scene_.nodes.size()) {
      note_ = fmt::format("{} more nodes are not drawn", scene_.nodes.size() - count);
    }
    return Paint();
  }

 private:
  std::string Paint() {
    std::vector<Part> parts = Split();
    for (Part& part : parts)
      LayOut(part);
    Place(parts);
    return Write(parts);
  }

  /// Nodes of hunks that repeat one which is drawn.
  IdVector<SceneNodeId, bool> Repetitions() const {
    IdVector<EntityId, bool> of_before(diff_.before.ids().size());
    IdVector<EntityId, bool> of_after(diff_.after.ids().size());
    IdVector<PatternId, bool> seen(diff_.patterns.size());
    for (const Hunk& hunk : diff_.hunks) {
      if (!hunk.pattern.valid()) continue;
      if (!seen[hunk.pattern]) {
        seen[hunk.pattern] = true;
        continue;
      }
      for (EntityId id : hunk.deleted)
        of_before[id] = true;
      for (EntityId id : hunk.inserted)
        of_after[id] = true;
      for (PairId pair : hunk.pairs)
        of_after[diff_.pairs[pair].after] = true;
    }
    IdVector<SceneNodeId, bool> result(scene_.nodes.size());
    for (SceneNodeId id : IdsOf(scene_.nodes)) {
      const SceneNode& node = scene_.nodes[id];
      result[id] = (node.after.valid() && of_after[node.after]) ||
                   (node.before.valid() && of_before[node.before]);
    }
    return result;
  }

  /// What differs, then what stands beside it, as far as there is room.
  void ChooseChanged() {
    const IdVector<SceneNodeId, bool> repeats = Repetitions();
    drawn_.assign(scene_.nodes.size(), false);
    size_t count = 0, num_causes = 0, drawn_causes = 0;
    for (SceneNodeId id : IdsOf(scene_.nodes)) {
      if (!IsCause(scene_.nodes[id].status)) continue;
      ++num_causes;
      if (repeats[id] || count >= options_.max_nodes) continue;
      drawn_[id] = true;
      ++count;
      ++drawn_causes;
    }
    const IdVector<SceneNodeId, bool> causes = drawn_;
    for (const SceneEdge& edge : scene_.edges) {
      for (const auto& [here, there] :
           {std::pair(edge.from, edge.to), std::pair(edge.to, edge.from)}) {
        if (!causes[here] || drawn_[there] || count >= options_.max_nodes) continue;
        drawn_[there] = true;
        ++count;
      }
    }
    note_ = num_causes == 0 ? "no differences"
                            : "+ added   − removed   ~ changed   ↷ moved   ≈ consequence";
    if (drawn_causes < num_causes) {
      note_ += fmt::format("   ·   {} more changed nodes are not drawn", num_causes - drawn_causes);
    }
  }

  /// Parts that no drawn edge connects.
  std::vector<Part> Split() const {
    IdVector<SceneNodeId, SceneNodeId> parent(scene_.nodes.size());
    for (SceneNodeId id : IdsOf(scene_.nodes))
      parent[id] = id;
    const auto find = [&](SceneNodeId id) {
      while (parent[id] != id) {
        parent[id] = parent[parent[id]];
        id = parent[id];
      }
      return id;
    };
    for (const SceneEdge& edge : scene_.edges) {
      if (!drawn_[edge.from] || !drawn_[edge.to]) continue;
      const SceneNodeId a = find(edge.from), b = find(edge.to);
      parent[std::max(a, b)] = std::min(a, b);
    }
    std::vector<Part> parts;
    IdVector<SceneNodeId, std::optional<size_t>> part_of(scene_.nodes.size());
    for (SceneNodeId id : IdsOf(scene_.nodes)) {
      if (!drawn_[id]) continue;
      std::optional<size_t>& part = part_of[find(id)];
      if (!part) {
        part = parts.size();
        parts.emplace_back();
      }
      parts[*part].nodes.push_back(id);
    }
    return parts;
  }

  /// Sugiyama's scheme without dummy nodes: layers by longest path, two sweeps of barycentres.
  /// Edges against the order of the union (a move can make them) do not shape layers.
  void LayOut(Part& part) const {
    IdVector<SceneNodeId, size_t> layer(scene_.nodes.size(), 0);
    IdVector<SceneNodeId, std::vector<SceneNodeId>> above(scene_.nodes.size());
    IdVector<SceneNodeId, std::vector<SceneNodeId>> below(scene_.nodes.size());
    IdVector<SceneNodeId, bool> inside(scene_.nodes.size(), false);
    for (SceneNodeId node : part.nodes)
      inside[node] = true;
    for (const SceneEdge& edge : scene_.edges) {
      if (!inside[edge.from] || !inside[edge.to] || edge.from >= edge.to) continue;
      above[edge.to].push_back(edge.from);
      below[edge.from].push_back(edge.to);
    }
    size_t last = 0;
    for (SceneNodeId node : part.nodes) {
      for (SceneNodeId operand : above[node])
        layer[node] = std::max(layer[node], layer[operand] + 1);
      last = std::max(last, layer[node]);
    }
    part.layers.assign(last + 1, {});
    for (SceneNodeId node : part.nodes)
      part.layers[layer[node]].push_back(node);

    IdVector<SceneNodeId, double> place(scene_.nodes.size(), 0);
    const auto number = [&](const std::vector<SceneNodeId>& nodes) {
      for (size_t i = 0; i < nodes.size(); ++i)
        place[nodes[i]] = static_cast<double>(i) - static_cast<double>(nodes.size() - 1) / 2;
    };
    const auto sort = [&](std::vector<SceneNodeId>& nodes, const auto& neighbours) {
      std::vector<std::pair<double, SceneNodeId>> keys;
      for (SceneNodeId node : nodes) {
        double sum = 0;
        for (SceneNodeId other : neighbours[node])
          sum += place[other];
        const auto count = static_cast<double>(neighbours[node].size());
        keys.emplace_back(count == 0 ? place[node] : sum / count, node);
      }
      std::ranges::stable_sort(keys);
      for (size_t i = 0; i < nodes.size(); ++i)
        nodes[i] = keys[i].second;
      number(nodes);
    };
    for (const std::vector<SceneNodeId>& nodes : part.layers)
      number(nodes);
    for (size_t i = 1; i < part.layers.size(); ++i)
      sort(part.layers[i], above);
    for (size_t i = part.layers.size(); i-- > 0;)
      sort(part.layers[i], below);
    FoldWideLayers(part);
    size_t widest = 1;
    for (const std::vector<SceneNodeId>& nodes : part.layers)
      widest = std::max(widest, nodes.size());
    part.width = static_cast<double>(widest) * (kBoxWidth + kGapX) - kGapX;
    part.height = static_cast<double>(part.layers.size()) * (kBoxHeight + kGapY) - kGapY;
  }

  /// A value with many users makes a wide layer: it becomes several rows.
  void FoldWideLayers(Part& part) const {
    const auto most = static_cast<size_t>(
        std::max(1.0, (options_.width - 2 * kMargin + kGapX) / (kBoxWidth + kGapX)));
    std::vector<std::vector<SceneNodeId>> rows;
    for (const std::vector<SceneNodeId>& nodes : part.layers) {
      for (size_t i = 0; i < nodes.size(); i += most) {
        const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(i);
        const auto end =
            nodes.begin() + static_cast<std::ptrdiff_t>(std::min(i + most, nodes.size()));
        rows.emplace_back(begin, end);
      }
    }
    part.layers = std::move(rows);
  }

  /// Parts beside each other, in shelves.
  void Place(const std::vector<Part>& parts) {
    x_.assign(scene_.nodes.size(), 0);
    y_.assign(scene_.nodes.size(), 0);
    double left = kMargin, top = kMargin, shelf = 0;
    for (const Part& part : parts) {
      if (left > kMargin && left + part.width > options_.width) {
        left = kMargin;
        top += shelf + kGapY;
        shelf = 0;
      }
      for (size_t i = 0; i < part.layers.size(); ++i) {
        const std::vector<SceneNodeId>& nodes = part.layers[i];
        const double row = static_cast<double>(nodes.size()) * (kBoxWidth + kGapX) - kGapX;
        for (size_t k = 0; k < nodes.size(); ++k) {
          x_[nodes[k]] =
              left + (part.width - row) / 2 + static_cast<double>(k) * (kBoxWidth + kGapX);
          y_[nodes[k]] = top + static_cast<double>(i) * (kBoxHeight + kGapY);
        }
      }
      left += part.width + 2 * kGapX;
      shelf = std::max(shelf, part.height);
      right_ = std::max(right_, left - 2 * kGapX + kMargin);
      bottom_ = std::max(bottom_, top + shelf + kMargin);
    }
  }

  std::string Write(const std::vector<Part>& parts) const {
    const double width = std::max({right_, 420.0, static_cast<double>(note_.size()) * 6.5 + 40});
    const double height = bottom_ + 30;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"ui-monospace, monospace\" "
        "font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height);
    for (const SceneEdge& edge : scene_.edges)
      if (drawn_[edge.from] && drawn_[edge.to]) WriteEdge(edge, out);
    for (const Part& part : parts) {
      for (SceneNodeId node : part.nodes)
        WriteNode(node, out);
    }
    out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"#444444\">{}</text>\n</svg>\n",
                       kMargin, height - 12, Escaped(note_));
    return out;
  }

  void WriteEdge(const SceneEdge& edge, std::string& out) const {
    const double x1 = x_[edge.from] + kBoxWidth / 2, y1 = y_[edge.from] + kBoxHeight;
    const double x2 = x_[edge.to] + kBoxWidth / 2, y2 = y_[edge.to];
    const double bend = std::max(kGapY / 2, (y2 - y1) / 2);
    const Look look = LookOf(edge.status);
    const bool is_removed = edge.status == SceneStatus::kRemoved;
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" "
        "stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
        x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2,
        edge.status == SceneStatus::kSame ? "#888888" : look.colour,
        edge.status == SceneStatus::kSame ? "1" : "1.8",
        is_removed ? " stroke-dasharray=\"5 3\"" : "");
  }

  void WriteNode(SceneNodeId drawn, std::string& out) const {
    const SceneNode& node = scene_.nodes[drawn];
    const bool in_after = node.after.valid();
    const Listing& listing = in_after ? diff_.after : diff_.before;
    const EntityId id = in_after ? node.after : node.before;
    std::string name = listing.name(id);
    if (in_after && node.before.valid() && diff_.before.name(node.before) != name) {
      name = fmt::format("{} → {}", diff_.before.name(node.before), name);
    }
    std::string target(listing.target(id));
    if (target.empty()) target = listing[id].kind == EntityKind::kInput ? "input" : "output";
    const Look look = LookOf(node.status);
    const double x = x_[drawn], y = y_[drawn];
    const std::string module = ModuleText(listing, id);
    out += fmt::format(
        "<g><title>{}{}{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" "
        "rx=\"4\" fill=\"#fbfbfb\" stroke=\"{}\"{}/>",
        Escaped(StatementText(listing, id)), module.empty() ? "" : "  ", Escaped(module), x, y,
        kBoxWidth, kBoxHeight, look.colour,
        node.status == SceneStatus::kRemoved ? " stroke-dasharray=\"5 3\"" : "");
    if (!look.sign.empty()) {
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"18\" height=\"{:.0f}\" rx=\"4\" fill=\"{}\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-weight=\"bold\" "
          "fill=\"#000000\">{}</text>",
          x, y, kBoxHeight, look.colour, x + 9, y + 25, look.sign);
    }
    out += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1:.1f}\" fill=\"#111111\">{2}</text>"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" fill=\"#555555\" font-size=\"11\">{4}</text></g>\n",
        x + 24, y + 17, Fitted(name, kColumns - 3), y + 32, Fitted(target, kColumns - 1));
  }

  const GraphDiff& diff_;
  const ChangeSvgOptions& options_;
  const Scene scene_;
  IdVector<SceneNodeId, bool> drawn_;
  std::string note_;  // below the picture
  IdVector<SceneNodeId, double> x_, y_;
  double right_ = 0, bottom_ = kMargin;
};

}  // namespace

std::string ChangeSvg(const GraphDiff& diff, const ChangeSvgOptions& options) {
  return Painter(diff, options).PaintChange();
}

std::string GraphSvg(const Graph& graph, const ChangeSvgOptions& options) {
  const Result<GraphDiff> itself = Diff(graph, graph, {.stable_ids = true});
  STRATA_CHECK(itself, "{}", itself.error().message());
  return Painter(*itself, options).PaintAll();
}

}  // namespace strata
