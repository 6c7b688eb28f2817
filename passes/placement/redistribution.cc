#include "passes/placement/redistribution.h"

#include <limits>

namespace strata {
namespace {

// In bytes: the latency of a collective, and what a copied byte costs beside one that is sent.
constexpr double kLatency = 4096;
constexpr double kCopy = 0.1;

/// Cut in chunks or blocks.
bool IsPlain(const Placement& p) {
  return IsCut(p) && !IsRows(p);
}

bool Shards(const Placement& p, int32_t dim) {
  return IsCut(p) && p.dim == dim;
}

/// Inside the chunks of other axes.
bool IsInner(const Placement& p) {
  return IsCut(p) && p.split != 0;
}

/// True when the shards of axis `inner` nest inside those of axis `outer`, of one dimension.
bool NestsInside(const Placements& placements, size_t inner, size_t outer) {
  const Placement &a = placements[inner], &b = placements[outer];
  if (!IsPlain(a) || !IsPlain(b) || a.dim != b.dim) return false;
  if (IsInner(a) != IsInner(b)) return IsInner(a);
  return inner > outer;
}

/// A sharded axis whose dimension changes on an axis around it.
bool MustGather(const Placements& from, const Placements& to, size_t axis) {
  if (!IsPlain(from[axis])) return false;
  if (!(from[axis] == to[axis])) return true;
  for (size_t other = 0; other < from.size(); ++other) {
    if (other == axis || from[other] == to[other]) continue;
    const bool was = NestsInside(from, axis, other), is = NestsInside(to, axis, other);
    if (was || is) return true;
  }
  return false;
}

/// Whether the ranks of `axis` exchange their parts of one dimension for parts of another. They do
/// where these are the innermost ones: `now`, and afterwards until others are cut inside them.
bool MayExchange(const Placements& now, const Placements& to, size_t axis) {
  if (!IsShard(now[axis]) || !IsShard(to[axis]) || now[axis].dim == to[axis].dim) return false;
  Placements next = now;
  next[axis] = to[axis];
  for (size_t other = 0; other < now.size(); ++other) {
    if (other == axis) continue;
    if (Shards(now[other], now[axis].dim) && !NestsInside(now, axis, other)) return false;
    if (Shards(now[other], to[axis].dim)) {
      if (!(now[other] == to[other]) || !NestsInside(next, axis, other)) return false;
    } else if (Shards(to[other], to[axis].dim) && !NestsInside(to, other, axis)) {
      return false;
    }
  }
  return true;
}

double Cost(const AxisChange& change, double local_bytes, double ranks) {
  const double others = (ranks - 1) / ranks;
  if (IsRows(change.from) || IsRows(change.to)) {
    // Rows along another dimension than the first are copied before and after.
    const double moved = others + kCopy * (change.from.dim == 0 ? 1 : 3);
    if (IsRows(change.from) && IsRows(change.to)) return kLatency + local_bytes * moved;
    return std::numeric_limits<double>::infinity();
  }
  // The parts of blocks are copied before or after.
  const double copied = IsBlocked(change.from) || IsBlocked(change.to) ? 2 * kCopy : 0;
  if (IsCut(change.from)) {
    if (IsCut(change.to)) return kLatency + local_bytes * (others + kCopy + copied);
    return kLatency + local_bytes * ranks * (others + copied);
  }
  if (IsPartial(change.from)) {
    return kLatency + local_bytes * (others * (IsCut(change.to) ? 1 : 2) + copied);
  }
  return local_bytes * (kCopy + copied);
}

}  // namespace

std::vector<AxisChange> PlanRedistribution(const Placements& from, const Placements& to) {
  std::vector<AxisChange> changes;
  Placements now = from;
  const auto change = [&](size_t axis, const Placement& placement) {
    changes.push_back({.axis = axis, .from = now[axis], .to = placement});
    now[axis] = placement;
  };
  for (size_t axis = 0; axis < from.size(); ++axis)
    if (IsRows(from[axis]) && !(from[axis] == to[axis])) change(axis, to[axis]);
  // Strided shards and parts of blocks are the innermost.
  for (const bool strided : {true, false}) {
    for (size_t axis = from.size(); axis-- > 0;) {
      if (!IsPlain(from[axis]) || IsInner(from[axis]) != strided) continue;
      if (!MustGather(from, to, axis)) continue;
      change(axis, MayExchange(now, to, axis) ? to[axis] : Replicate());
    }
  }
  for (const bool strided : {false, true}) {
    for (size_t axis = 0; axis < from.size(); ++axis) {
      if (now[axis] == to[axis] || IsReplicate(to[axis]) || IsInner(to[axis]) != strided) continue;
      // Only sums are scattered; other reductions, and one kind of partial into another, go through
      // R.
      change(axis, to[axis]);
    }
  }
  // What is scattered before is summed up in parts: gradients of replicas whose ranks shard them.
  for (size_t axis = from.size(); axis-- > 0;)
    if (!(now[axis] == to[axis])) change(axis, Replicate());
  return changes;
}

double ExchangeCost(double bytes) {
  return 2 * (kLatency + 2 * bytes);
}

double RedistributionCost(const Placements& from, const Placements& to, double bytes,
                          const Mesh& mesh) {
  double cost = 0;
  Placements now = from;
  for (const AxisChange& change : PlanRedistribution(from, to)) {
    double local = bytes;
    for (size_t axis = 0; axis < now.size(); ++axis)
      if (IsCut(now[axis])) local /= static_cast<double>(mesh.axes()[axis].size);
    cost += Cost(change, local, static_cast<double>(mesh.axes()[change.axis].size));
    now[change.axis] = change.to;
  }
  return cost;
}

size_t CountJoined(const std::vector<AxisChange>& changes, size_t first, const Mesh& mesh,
                   MeshAxis& group) {
  group = mesh.axes()[changes[first].axis];
  size_t joined = 1, low = changes[first].axis, high = low;
  if (IsBlocked(changes[first].from) || IsBlocked(changes[first].to)) return 1;
  for (size_t i = first + 1; i < changes.size(); ++i) {
    const AxisChange& change = changes[i];
    if (!(change.from == changes[first].from) || !(change.to == changes[first].to)) break;
    if (change.axis + 1 == low) {
      low = change.axis;
    } else if (change.axis == high + 1) {
      high = change.axis;
    } else {
      break;
    }
    if (const MeshAxis* axis = mesh.Joined(low, high - low + 1)) {
      group = *axis;
      joined = i - first + 1;
    }
  }
  return joined;
}

}  // namespace strata
