#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/type.h"
#include "passes/placement/mesh.h"

namespace strata {

/// What one rank computes with.
struct DeviceSpec {
  double memory_bytes = 0;
  double bytes_per_us = 0;        ///< peak of memory
  double state_bytes_per_us = 0;  ///< of what a step begins with, which no cache has; 0: the same
  std::map<DType, double> flops_per_us;  ///< peak of dense products
  /// The same of attention, with its softmax; a type that is missing: as products.
  std::map<DType, double> attention_flops_per_us, attention_backward_flops_per_us;
  /// Elements of which functions are computed, by name: "exp", "silu". Missing ones take the time
  /// of memory alone.
  std::map<std::string, double, std::less<>> functions_per_us;
  double efficiency = 1;  ///< part of the peaks that a kernel reaches
  double launch_us = 0;   ///< least time of a kernel that reads or writes memory
  int64_t cores = 0;      ///< that the ranks of a node share, one each; 0: no limit

  double state_rate() const { return state_bytes_per_us > 0 ? state_bytes_per_us : bytes_per_us; }
};

enum class NetworkModel : uint8_t {
  kNccl,    ///< the tuning formulas of NCCL and measured points
  kSimple,  ///< a ring: base + hops · latency + bytes · hops / ranks / bandwidth
  kMemory,  ///< threads of a process: waits, and copies and sums by the cores of the ranks
};
enum class Architecture : uint8_t { kAmpere, kHopper, kBlackwell };

/// What ranks exchange data through. Bandwidths are those of one rank, in 1e9 bytes per second.
struct NetworkSpec {
  NetworkModel model = NetworkModel::kSimple;
  Architecture architecture = Architecture::kHopper;
  int64_t ranks_per_node = 1;
  double intra = 0, inter = 0;
  int channels = 16;
  bool nvswitch = false;
  double extra_latency_us = 0;         ///< of a hop between nodes
  double base_us = 6.6, hop_us = 0.6;  ///< of the models `simple` and `memory`
  double sum = 0;                      ///< of memory: what a rank adds up of what others have
};

struct Topology {
  std::string name;
  DeviceSpec device;
  NetworkSpec network;

  /// "h100", "h200", "a100", "b200", "cpu", or a TOML file. Errors: an unknown name, a file that
  /// cannot be read, an unknown key or value.
  static Result<Topology> Load(const std::string& name);
  static Result<Topology> Parse(std::string_view text, std::string_view file, std::string name);
  /// What `Parse` reads.
  std::string ToToml() const;

  /// How much longer `ranks` ranks take where a node has fewer cores: at least 1.
  double Crowding(int64_t ranks) const;
  /// The same of what they exchange: 1 where that is not work of their cores.
  double ExchangeCrowding(int64_t ranks) const;
};

/// How the ranks of one mesh axis lie on nodes.
struct AxisTopology {
  int64_t ranks = 1, nodes = 1, ranks_per_node = 1;
};

/// One for each of `mesh.axes()`. Errors: ranks of an axis that fill nodes unevenly.
Result<std::vector<AxisTopology>> AxisTopologies(const Topology& topology, const Mesh& mesh);
/// How the ranks of a group lie on nodes. Errors: a group that the mesh does not have, ranks that
/// fill nodes unevenly.
Result<AxisTopology> GroupTopology(const Topology& topology, const Mesh& mesh,
                                   std::string_view group);
/// The same for `ranks` ranks, neighbours `stride` apart. `group`: for the message.
Result<AxisTopology> GroupTopology(const Topology& topology, int64_t ranks, int64_t stride,
                                   std::string_view group);

}  // namespace strata
