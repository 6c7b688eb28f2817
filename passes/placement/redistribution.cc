#include "passes/placement/redistribution.h"

namespace strata {
namespace {

// In bytes: the latency of a collective, and what a copied byte costs beside one that is sent.
constexpr double kLatency = 4096;
constexpr double kCopy = 0.1;

bool Shards(const Placement& p, int32_t dim) {
  return IsShard(p) && p.dim == dim;
}

/// True when the shards of axis `inner` nest inside those of axis `outer`, of one dimension.
bool NestsInside(const Placements& placements, size_t inner, size_t outer) {
  const Placement &a = placements[inner], &b = placements[outer];
  if (!IsShard(a) || !IsShard(b) || a.dim != b.dim) return false;
  if ((a.split > 0) != (b.split > 0)) return a.split > 0;
  return inner > outer;
}

/// A sharded axis whose dimension changes on an axis around it.
bool MustGather(const Placements& from, const Placements& to, size_t axis) {
  if (!IsShard(from[axis])) return false;
  if (!(from[axis] == to[axis])) return true;
  for (size_t other = 0; other < from.size(); ++other) {
    if (other == axis || from[other] == to[other]) continue;
    const bool was = NestsInside(from, axis, other), is = NestsInside(to, axis, other);
    if (was || is) return true;
  }
  return false;
}

/// No other axis shards dimension `dim` before or after.
bool IsAlone(const Placements& from, const Placements& to, size_t axis, int32_t dim) {
  for (size_t other = 0; other < from.size(); ++other)
    if (other != axis && (Shards(from[other], dim) || Shards(to[other], dim))) return false;
  return true;
}

double Cost(const AxisChange& change, double local_bytes, double ranks) {
  const double others = (ranks - 1) / ranks;
  if (IsShard(change.from)) {
    if (IsShard(change.to)) return kLatency + local_bytes * (others + kCopy);
    return kLatency + local_bytes * ranks * others;
  }
  if (IsPartial(change.from)) return kLatency + local_bytes * others * (IsShard(change.to) ? 1 : 2);
  return local_bytes * kCopy;
}

}  // namespace

std::vector<AxisChange> PlanRedistribution(const Placements& from, const Placements& to) {
  std::vector<AxisChange> changes;
  Placements now = from;
  const auto change = [&](size_t axis, const Placement& placement) {
    changes.push_back({.axis = axis, .from = now[axis], .to = placement});
    now[axis] = placement;
  };
  // Strided shards are the innermost.
  for (const bool strided : {true, false}) {
    for (size_t axis = from.size(); axis-- > 0;) {
      if (!IsShard(from[axis]) || (from[axis].split > 0) != strided) continue;
      if (!MustGather(from, to, axis)) continue;
      const bool is_exchange = IsShard(to[axis]) && from[axis].split == 0 && to[axis].split == 0 &&
                               IsAlone(from, to, axis, from[axis].dim) &&
                               IsAlone(from, to, axis, to[axis].dim);
      change(axis, is_exchange ? to[axis] : Replicate());
    }
  }
  for (size_t axis = from.size(); axis-- > 0;)
    if (IsPartial(now[axis]) && IsReplicate(to[axis])) change(axis, Replicate());
  for (const bool strided : {false, true}) {
    for (size_t axis = 0; axis < from.size(); ++axis) {
      if (now[axis] == to[axis] || (IsShard(to[axis]) && to[axis].split > 0) != strided) continue;
      // Only sums are scattered; other reductions, and one kind of partial into another, go through
      // R.
      change(axis, to[axis]);
    }
  }
  return changes;
}

double RedistributionCost(const Placements& from, const Placements& to, double bytes,
                          const Mesh& mesh) {
  double cost = 0;
  Placements now = from;
  for (const AxisChange& change : PlanRedistribution(from, to)) {
    double local = bytes;
    for (size_t axis = 0; axis < now.size(); ++axis)
      if (IsShard(now[axis])) local /= static_cast<double>(mesh.axes()[axis].size);
    cost += Cost(change, local, static_cast<double>(mesh.axes()[change.axis].size));
    now[change.axis] = change.to;
  }
  return cost;
}

}  // namespace strata
