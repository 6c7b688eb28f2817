#include "scene/lane_layouts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "scene/dot_worker.h"

namespace strata {
namespace {

constexpr int32_t kNoRow = std::numeric_limits<int32_t>::max();

size_t NumNodes(const LaneShape& shape) {
  return static_cast<size_t>(shape.nodes);
}

/// Places to fill: all in row 0, in the middle.
LanePlaces NoPlaces(const LaneShape& shape) {
  const IdVector<LaneNodeId, int32_t> zeros(NumNodes(shape), 0);
  return {.row = zeros, .x = zeros, .rows = 0};
}

/// Gives the nodes of a row their places: as near to their wishes as the others allow, inside the
/// lane.
void Spread(IdVector<LaneNodeId, int32_t>& x, std::span<const LaneNodeId> line, int32_t columns) {
  const int32_t last = columns - 1;  // half columns from the middle to the outermost place
  int32_t least = -last;
  for (const LaneNodeId i : line) {
    x[i] = std::max(x[i], least);
    least = x[i] + 2;
  }
  int32_t most = last;
  for (size_t k = line.size(); k-- > 0;) {
    x[line[k]] = std::min(x[line[k]], most);
    most = x[line[k]] - 2;
  }
}

class ByPaths {
 public:
  explicit ByPaths(const LaneShape& shape)
      : shape_(shape), before_(NumNodes(shape)), after_(NumNodes(shape)) {
    for (const auto& [from, to] : shape.edges) {
      before_[to].push_back(from);
      after_[from].push_back(to);
    }
  }

  LanePlaces Run() {
    const IdVector<LaneNodeId, int32_t> layer = Layers();
    std::vector<std::vector<LaneNodeId>> layers;
    for (const LaneNodeId i : Ids<LaneNodeId>(NumNodes(shape_))) {
      const auto at = static_cast<size_t>(layer[i]);
      if (layers.size() <= at) layers.resize(at + 1);
      layers[at].push_back(i);
    }
    LanePlaces places = NoPlaces(shape_);
    const auto columns = static_cast<size_t>(shape_.columns);
    for (std::vector<LaneNodeId>& nodes : layers) {
      for (const LaneNodeId i : nodes)
        places.x[i] = Wish(places.x, i);
      if (nodes.size() <= columns) {
        std::ranges::stable_sort(nodes, {}, [&](LaneNodeId i) { return places.x[i]; });
      }
      for (size_t begin = 0; begin < nodes.size(); begin += columns, ++places.rows) {
        const std::span line =
            std::span(nodes).subspan(begin, std::min(columns, nodes.size() - begin));
        Spread(places.x, line, shape_.columns);
        for (const LaneNodeId i : line)
          places.row[i] = places.rows;
      }
    }
    return places;
  }

 private:
  IdVector<LaneNodeId, int32_t> Layers() const {
    IdVector<LaneNodeId, int32_t> layer(NumNodes(shape_), 0);
    for (const LaneNodeId i : Ids<LaneNodeId>(NumNodes(shape_))) {
      for (const LaneNodeId from : before_[i])
        layer[i] = std::max(layer[i], layer[from] + 1);
    }
    // What has nothing above it sinks to what reads it.
    for (LaneNodeId i{shape_.nodes}; i.index-- > 0;) {
      if (!before_[i].empty() || after_[i].empty()) continue;
      int32_t lowest = kNoRow;
      for (const LaneNodeId to : after_[i])
        lowest = std::min(lowest, layer[to]);
      layer[i] = std::max(layer[i], lowest - 1);
    }
    return layer;
  }

  /// Under what it reads, so that the line is straight: the middle of its producers.
  int32_t Wish(const IdVector<LaneNodeId, int32_t>& x, LaneNodeId i) const {
    if (before_[i].empty()) return 0;
    int32_t sum = 0;
    for (const LaneNodeId from : before_[i])
      sum += x[from];
    const auto count = static_cast<int32_t>(before_[i].size());
    // Rounded to half columns, away from nothing: the same for mirrored graphs.
    return (2 * sum + (sum > 0 ? count : -count)) / (2 * count);
  }

  const LaneShape& shape_;
  IdVector<LaneNodeId, std::vector<LaneNodeId>> before_, after_;
};

/// Rows and half columns of what `dot` says in ranks and columns; a rank that is wider than the
/// lane becomes several rows.
LanePlaces Snap(const LaneShape& shape, const DotPlaces& dot) {
  LanePlaces places = NoPlaces(shape);
  std::map<int32_t, std::vector<LaneNodeId>> ranks;
  double left = std::numeric_limits<double>::max(), right = std::numeric_limits<double>::lowest();
  for (const LaneNodeId i : Ids<LaneNodeId>(NumNodes(shape))) {
    ranks[dot.rank[i]].push_back(i);
    left = std::min(left, dot.x[i]);
    right = std::max(right, dot.x[i]);
  }
  const auto columns = static_cast<size_t>(shape.columns);
  for (auto& [rank, nodes] : ranks) {
    std::ranges::stable_sort(nodes, {}, [&](LaneNodeId i) { return dot.x[i]; });
    for (size_t begin = 0; begin < nodes.size(); begin += columns, ++places.rows) {
      const std::span line =
          std::span(nodes).subspan(begin, std::min(columns, nodes.size() - begin));
      for (const LaneNodeId i : line) {
        places.row[i] = places.rows;
        places.x[i] = static_cast<int32_t>(std::lround(2 * (dot.x[i] - (left + right) / 2)));
      }
      Spread(places.x, line, shape.columns);
    }
  }
  return places;
}

std::string Bytes(const LaneShape& shape) {
  std::string bytes;
  const auto add = [&](int32_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(shape.nodes);
  add(shape.columns);
  for (const auto& [from, to] : shape.edges) {
    add(from.index);
    add(to.index);
  }
  return bytes;
}

}  // namespace

LaneCost& LaneCost::operator+=(const LaneCost& other) {
  crossings += other.crossings;
  covered += other.covered;
  length += other.length;
  rows += other.rows;
  return *this;
}

LaneCost CostOf(const LaneShape& shape, const LanePlaces& places) {
  LaneCost cost{.rows = places.rows};
  const auto x = [&](LaneNodeId node) { return int64_t{places.x[node]}; };
  const auto row = [&](LaneNodeId node) { return int64_t{places.row[node]}; };
  std::vector<std::vector<LaneNodeId>> rows(static_cast<size_t>(places.rows));
  for (const LaneNodeId i : Ids<LaneNodeId>(NumNodes(shape)))
    rows[static_cast<size_t>(places.row[i])].push_back(i);
  for (size_t e = 0; e < shape.edges.size(); ++e) {
    const auto [a, b] = shape.edges[e];
    const int64_t down = row(b) - row(a), across = x(b) - x(a);
    cost.length += std::abs(across);
    for (int64_t r = row(a) + 1; r < row(b); ++r) {
      for (const LaneNodeId other : rows[static_cast<size_t>(r)]) {
        // A box is two half columns wide.
        if (std::abs((x(other) - x(a)) * down - across * (r - row(a))) < down) ++cost.covered;
      }
    }
    for (size_t f = e + 1; f < shape.edges.size(); ++f) {
      const auto [c, d] = shape.edges[f];
      const int64_t top = std::max(row(a), row(c)), bottom = std::min(row(b), row(d));
      if (top >= bottom) continue;
      // Where both are at the top and at the bottom of what they pass together, times both heights.
      const int64_t other_down = row(d) - row(c), other_across = x(d) - x(c);
      const auto apart = [&](int64_t r) {
        return (x(a) * down + across * (r - row(a))) * other_down -
               (x(c) * other_down + other_across * (r - row(c))) * down;
      };
      const int64_t above = apart(top), below = apart(bottom);
      cost.crossings += (above < 0 && below > 0) || (above > 0 && below < 0) ? 1 : 0;
    }
  }
  return cost;
}

LanePlaces PlaceByPaths(const LaneShape& shape) {
  return ByPaths(shape).Run();
}

LaneLayouts::LaneLayouts() : LaneLayouts(Options()) {}
LaneLayouts::LaneLayouts(const Options& options) : options_(options) {
  options_.dot = options.dot && HasGraphviz();
}
LaneLayouts::~LaneLayouts() = default;

const LanePlaces& LaneLayouts::Of(const LaneShape& shape) {
  ++statistics_.lanes;
  const auto [known, is_new] = known_.try_emplace(Bytes(shape));
  if (is_new) {
    ++statistics_.shapes;
    known->second = Choose(shape);
  }
  return known->second;
}

LanePlaces LaneLayouts::Choose(const LaneShape& shape) {
  LanePlaces by_paths = PlaceByPaths(shape);
  const auto edges = static_cast<int32_t>(shape.edges.size());
  // A chain stands in one column however it is placed.
  if (!options_.dot || shape.nodes > options_.max_nodes || edges < shape.nodes ||
      edges > 4 * shape.nodes || spent_ + shape.nodes > options_.budget) {
    return by_paths;
  }
  const LaneCost cost = CostOf(shape, by_paths);
  // Nothing to gain: no line is crossed or covered, and few go sideways.
  if (cost.crossings + cost.covered == 0) return by_paths;
  spent_ += shape.nodes;
  if (worker_ == nullptr) worker_ = std::make_unique<DotWorker>(options_.time_limit_ms);
  const std::optional<DotPlaces> dot = worker_->Place(shape);
  if (!dot) {
    ++statistics_.failed;
    return by_paths;
  }
  LanePlaces by_dot = Snap(shape, *dot);
  const LaneCost other = CostOf(shape, by_dot);
  ++statistics_.compared;
  statistics_.paths += cost;
  statistics_.dot += other;
  // Clearly better, since a lane that looks the same from pass to pass is worth a few lines.
  const bool better = 5 * other.total() <= 4 * cost.total();
  statistics_.by_dot += better ? 1 : 0;
  statistics_.chosen += better ? other : cost;
  return better ? by_dot : by_paths;
}

}  // namespace strata
