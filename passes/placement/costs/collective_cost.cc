#include "passes/placement/costs/collective_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace strata {
namespace {

constexpr size_t kProtocols = 3;
enum Protocol : size_t { kLL, kLL128, kSimple };
using PerProtocol = std::array<double, kProtocols>;

// By architecture, then for one node, two, and more. GB/s per channel, but for kMaxLL.
using PerNodes = std::array<double, 3>;
constexpr PerNodes kMaxLL[] = {{87.7, 39.0, 20.4}, {141.0, 39.0, 20.4}, {282.0, 39.0, 20.4}};
constexpr PerNodes kTreeLL128[] = {{20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}};
constexpr PerNodes kTreeMax[] = {{24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}};
constexpr PerNodes kNvlsTreeMax[] = {{24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96.0, 43.8}};
constexpr double kRingLL128[] = {20.0, 36.7, 40.0};
constexpr double kNvlsEfficiency[] = {0, 0.85, 0.74};

constexpr PerProtocol kBaseRing = {6.6, 14.0, 8.4};
constexpr PerProtocol kBaseTree = {6.8, 14.0, 8.4};
constexpr PerProtocol kHopInside = {0.6, 1.9, 3.4};
constexpr PerProtocol kHopOverhead = {1.0, 1.0, 3.0};
constexpr PerProtocol kHopTree = {0.6, 1.25, 4.0};
constexpr PerProtocol kHopNet = {5.0, 8.5, 14.0};
constexpr PerProtocol kHopNetShared = {2.7, 4.0, 14.0};

// Parts of the bandwidth that are reached, by the binary logarithm of bytes / 64.
using Ramp = std::array<double, 24>;
constexpr Ramp kTree[kProtocols] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .7, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};
constexpr Ramp kRing = {1,   1,   1,   1,   1,   1,   1,   1, 1, 1, 1, .10,
                        .18, .30, .43, .63, .55, .78, .93, 1, 1, 1, 1, 1};
constexpr Ramp kNvlsTree = {1,   1,   1,   1,   1, 1, 1, 1, .10, .10, .15, .28,
                            .41, .55, .72, .88, 1, 1, 1, 1, 1,   1,   1,   1};
constexpr Ramp kFullNode = {.01, .02, .03, .06, .10, .16, .25, .36, .68, .68, .68, .68,
                            .68, .68, .68, .68, .68, .68, .79, .87, .87, .87, .87, .87};
constexpr Ramp kAllToAllCard = {1,   1,   1,   1,   1,   1,   1, 1, .28, .28, .35, .43,
                                .62, .71, .82, .89, .92, .95, 1, 1, 1,   1,   1,   1};

using Point = std::pair<double, double>;

/// Linear between points, constant outside of them.
double Interpolate(std::span<const Point> points, double x) {
  if (x <= points.front().first) return points.front().second;
  for (size_t i = 1; i < points.size(); ++i) {
    const auto [x0, y0] = points[i - 1];
    const auto [x1, y1] = points[i];
    if (x <= x1) return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
  }
  return points.back().second;
}

double Position(double bytes) {
  return std::clamp(std::log2(std::max(bytes, 1.0) / 64), 0.0, 23.0);
}
double At(const Ramp& ramp, double bytes) {
  return ramp[static_cast<size_t>(Position(bytes))];
}
double Between(const Ramp& ramp, double bytes) {
  const double position = Position(bytes);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min<size_t>(low + 1, ramp.size() - 1);
  return ramp[low] + (ramp[high] - ramp[low]) * (position - static_cast<double>(low));
}

/// The formulas for one axis.
class Nccl {
 public:
  Nccl(const NetworkSpec& network, const AxisTopology& axis)
      : spec_(network),
        arch_(static_cast<size_t>(network.architecture)),
        n_(static_cast<double>(axis.ranks)),
        nodes_(static_cast<double>(axis.nodes)),
        per_node_(static_cast<double>(axis.ranks_per_node)),
        channels_(network.channels),
        scale_(axis.nodes == 1   ? 0
               : axis.nodes == 2 ? 1
                                 : 2),
        axis_(axis) {}

  double Us(CollectiveOp collective, double bytes) const {
    if (collective == CollectiveOp::kAllToAll) return AllToAll(bytes);
    const bool is_all_reduce = collective == CollectiveOp::kAllReduce;
    const bool has_switch = spec_.nvswitch && spec_.architecture != Architecture::kAmpere;
    if (has_switch && axis_.nodes == 1) return InNode(is_all_reduce, bytes);
    double least = std::numeric_limits<double>::infinity();
    const bool is_measured = has_switch && IsMeasured();
    for (size_t protocol = 0; protocol < kProtocols; ++protocol) {
      least = std::min(least, is_measured && !is_all_reduce
                                  ? MeasuredRing(protocol, bytes)
                                  : TunedRing(protocol, is_all_reduce, bytes));
      if (!is_all_reduce) continue;
      least =
          std::min(least, is_measured ? MeasuredTree(protocol, bytes) : TunedTree(protocol, bytes));
    }
    if (is_measured && is_all_reduce && axis_.ranks_per_node >= 4)
      least = std::min(least, MeasuredNvlsTree(bytes));
    if (has_switch && !is_measured && is_all_reduce) least = std::min(least, TunedNvls(bytes));
    return least;
  }

 private:
  static double Time(double latency, double bytes, double bandwidth) {
    return latency + bytes / (1000 * bandwidth);
  }
  double blackwell() const { return spec_.architecture == Architecture::kBlackwell ? 2 : 1; }
  bool IsMeasured() const {
    const auto is_power = [](int64_t n, int64_t most) {
      return n <= most && std::has_single_bit(static_cast<uint64_t>(n));
    };
    return is_power(axis_.nodes, 32) && is_power(axis_.ranks_per_node, 8);
  }
  double FloorLogNodes() const { return std::floor(std::log2(nodes_)); }
  /// Bandwidth between nodes of all channels.
  double Inter() const {
    return spec_.nvswitch ? std::min(spec_.intra, spec_.inter * per_node_) : spec_.inter;
  }
  double PerChannel() const { return (axis_.nodes <= 2 ? spec_.intra : Inter()) / channels_; }
  const PerProtocol& NetHop() const { return axis_.ranks_per_node == 1 ? kHopNet : kHopNetShared; }

  /// Measured with NVSwitch.
  double InNode(bool is_all_reduce, double bytes) const {
    constexpr Point kGather[] = {{2, 537}, {4, 434}, {8, 394}};
    constexpr Point kGatherUs[] = {{2, 8}, {4, 17}, {8, 30}};
    constexpr Point kReduce[] = {{2, 324}, {4, 236}, {8, 267}};
    constexpr Point kReduceUs[] = {{2, 10}, {4, 15}, {8, 31}};
    const double bandwidth = blackwell() * Interpolate(is_all_reduce ? kReduce : kGather, n_);
    return Time(Interpolate(is_all_reduce ? kReduceUs : kGatherUs, n_), bytes, bandwidth);
  }

  /// Closed form of the table of measurements with NVSwitch, of all-gather and reduce-scatter.
  double MeasuredRing(size_t protocol, double bytes) const {
    const double steps = n_ - 1, inter = nodes_ - 1;
    const double bus = 48 * per_node_;
    const double latency =
        kBaseRing[protocol] +
        (steps - inter) * std::max(kHopInside[protocol], kHopOverhead[protocol]) +
        inter * NetHop()[protocol];
    const double cap = axis_.nodes == 2 ? 39.0 : 20.4;
    const double bandwidths[] = {std::min(cap, bus / 2), std::min(0.92 * bus, 36.7 * 8), bus};
    double bandwidth = blackwell() * bandwidths[protocol] * n_ / steps;
    constexpr double kNoRamp = 1 << 30;
    if (axis_.ranks_per_node == spec_.ranks_per_node && bytes / n_ < kNoRamp)
      bandwidth *= Between(kFullNode, bytes / n_);
    return Time(latency, bytes, bandwidth);
  }

  double MeasuredTree(size_t protocol, double bytes) const {
    const bool is_pair = axis_.nodes == 2;
    const double bus = 48 * per_node_;
    const double latency = kBaseTree[protocol] + 2 * ((per_node_ - 1) * kHopTree[protocol] +
                                                      std::log2(nodes_) * kHopNet[protocol]);
    const double channels = std::min(2 * per_node_, 8.0);
    const double most = channels * (is_pair ? 41.4 : 36.0);
    const double simple = is_pair ? most : std::min(0.92 * bus, most);
    const double bandwidths[] = {std::min(simple / 3.8, is_pair ? 39.0 : 20.4),
                                 std::min(simple * 120 / 128, channels * (is_pair ? 36.7 : 29.0)),
                                 simple};
    return Time(latency, bytes,
                blackwell() * bandwidths[protocol] * 0.85 * 0.5 * At(kTree[protocol], bytes));
  }

  double MeasuredNvlsTree(double bytes) const {
    const bool is_pair = axis_.nodes == 2;
    const double bandwidth =
        axis_.ranks_per_node == 4 ? (is_pair ? 160.0 : 80.0) : (is_pair ? 266.7 : 160.0);
    return Time(25 + 28 * std::log2(nodes_), bytes,
                blackwell() * bandwidth * Between(kNvlsTree, bytes / n_));
  }

  double TunedRing(size_t protocol, bool is_all_reduce, double bytes) const {
    const double rounds = is_all_reduce ? 2 : 1;
    const double steps = rounds * (n_ - 1), inter = axis_.nodes == 1 ? 0 : rounds * (nodes_ - 1);
    const double bus = channels_ * PerChannel();
    const double bandwidths[] = {std::min(kMaxLL[arch_][scale_], bus / 2),
                                 std::min(0.92 * bus, channels_ * kRingLL128[arch_]), bus};
    double bandwidth = bandwidths[protocol] * n_ / steps;
    const double overhead = axis_.nodes == 1 ? 0 : kHopOverhead[protocol];
    const double net = NetHop()[protocol] + spec_.extra_latency_us * (protocol == kSimple ? 2 : 1);
    double latency = kBaseRing[protocol] +
                     (steps - inter) * std::max(kHopInside[protocol], overhead) + inter * net;
    if (axis_.nodes > 1) {
      latency += 4.7 * nodes_ * (axis_.nodes > 4 ? std::pow(nodes_ / 4, 0.65) : 1);
      bandwidth *= Between(RingRamp(), bytes / n_);
      if (protocol == kSimple && is_all_reduce && bytes / (channels_ * n_) >= 64) latency *= 1.4;
    }
    return Time(latency, bytes, bandwidth);
  }

  /// Sizes are reached later with more nodes.
  Ramp RingRamp() const {
    Ramp ramp = kRing;
    if (axis_.nodes <= 4) return ramp;
    const double exponent = 1 + 0.2 * (FloorLogNodes() - 2);
    for (size_t i = 0; i < ramp.size(); ++i) {
      if (ramp[i] < 1) ramp[i] = std::pow(ramp[i], exponent);
      if (i > 0) ramp[i] = std::min(ramp[i], 2 * ramp[i - 1]);
    }
    return ramp;
  }

  double TunedTree(size_t protocol, double bytes) const {
    const double bus =
        std::min(0.92 * channels_ * PerChannel(), channels_ * kTreeMax[arch_][scale_]);
    const double bandwidths[] = {std::min(bus / 3.8, kMaxLL[arch_][scale_]),
                                 std::min(bus * (axis_.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                                          channels_ * kTreeLL128[arch_][scale_]),
                                 bus};
    const double latency = kBaseTree[protocol] + 2 * ((per_node_ - 1) * kHopTree[protocol] +
                                                      FloorLogNodes() * kHopNet[protocol]);
    return Time(latency, bytes, bandwidths[protocol] / 2 * At(kTree[protocol], bytes));
  }

  /// All-reduce in switches of several nodes that were not measured.
  double TunedNvls(double bytes) const {
    const double steps = 2 * (n_ - 1);
    const double x =
        2 * spec_.intra / channels_ * kNvlsEfficiency[arch_] * (channels_ - 1) / channels_;
    const double bus = channels_ * std::min(x, spec_.inter / channels_);
    const double nvls = Time(25 + (axis_.ranks_per_node == 1 ? 14 : 18), bytes, bus * n_ / steps);
    const double pair = axis_.nodes <= 2 ? 2 : 1;
    const double tree_bus =
        channels_ * std::min({x, Inter() / channels_ * pair, kNvlsTreeMax[arch_][scale_]});
    double tree = tree_bus * n_ / steps;
    if (spec_.architecture == Architecture::kBlackwell) tree *= At(kTree[kSimple], bytes);
    const double hop = axis_.ranks_per_node == 1 ? 14 : 20.9;
    return std::min(nvls, Time(25 + 2 * FloorLogNodes() * hop, bytes, tree));
  }

  double AllToAll(double bytes) const {
    const bool has_switch = spec_.nvswitch && spec_.architecture != Architecture::kAmpere;
    if (has_switch && axis_.nodes == 1)
      return Time(50, bytes, spec_.architecture == Architecture::kBlackwell ? 675 : 380);
    if (spec_.nvswitch && axis_.nodes > 1) {
      constexpr Point kLatency[] = {{2, 37}, {4, 42}, {8, 60}, {16, 98}, {32, 290}};
      double ramp = Between(kAllToAllCard, bytes / n_);
      ramp = 1 - (1 - ramp) / std::max(1.0, std::log2(nodes_));
      const double remote = bytes * (n_ - per_node_) / n_;
      return Time(Interpolate(kLatency, nodes_), remote, spec_.inter * (1 - 0.44 / nodes_) * ramp);
    }
    const double inter = nodes_ - 1;
    return Time(8.4 + (n_ - inter) * 3.4 + inter * 14, bytes, 0.7 * channels_ * PerChannel());
  }

  const NetworkSpec& spec_;
  const size_t arch_;
  const double n_, nodes_, per_node_, channels_;
  const size_t scale_;
  const AxisTopology axis_;
};

double Ring(const NetworkSpec& network, CollectiveOp collective, double bytes,
            const AxisTopology& axis) {
  const auto ranks = static_cast<double>(axis.ranks);
  const double hops = (collective == CollectiveOp::kAllReduce ? 2 : 1) * (ranks - 1);
  const double bandwidth = axis.nodes == 1 ? network.intra : network.inter;
  return network.base_us + hops * network.hop_us + bytes * hops / ranks / (1000 * bandwidth);
}

/// Threads of a process. A rank waits for the others, copies or adds up all bytes on its core, and
/// waits again before its memory may change. A reduction for all waits once more, between parts.
double Memory(const NetworkSpec& network, CollectiveOp collective, double bytes,
              const AxisTopology& axis) {
  const bool sums =
      collective == CollectiveOp::kAllReduce || collective == CollectiveOp::kReduceScatter;
  const bool copies = collective != CollectiveOp::kReduceScatter;
  const double waits = network.base_us + static_cast<double>(axis.ranks - 1) * network.hop_us;
  double us = collective == CollectiveOp::kAllReduce ? 1.5 * waits : waits;
  if (sums) us += bytes / (1000 * network.sum);
  if (copies) us += bytes / (1000 * network.intra);
  return us;
}

}  // namespace

double CollectiveUs(const NetworkSpec& network, CollectiveOp collective, double bytes,
                    const AxisTopology& axis) {
  if (axis.ranks <= 1) return 0;
  if (network.model == NetworkModel::kSimple) return Ring(network, collective, bytes, axis);
  if (network.model == NetworkModel::kMemory) return Memory(network, collective, bytes, axis);
  return Nccl(network, axis).Us(collective, bytes);
}

}  // namespace strata
