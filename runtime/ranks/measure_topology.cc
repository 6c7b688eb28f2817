#include "runtime/ranks/measure_topology.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/threads.h"
#include "runtime/ranks/collectives.h"
#include "runtime/ranks/thread_team.h"

namespace strata {
namespace {

using at::Tensor;
using std::chrono::steady_clock;

/// The median time of a call in µs, of several rounds of `calls` calls.
double MedianUs(int calls, const std::function<void()>& call) {
  constexpr size_t kRounds = 9;
  call();
  std::vector<double> times;
  for (size_t round = 0; round < kRounds; ++round) {
    const auto start = steady_clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    const std::chrono::duration<double, std::micro> time = steady_clock::now() - start;
    times.push_back(time.count() / calls);
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

Result<Mesh> MeshOf(int64_t ranks) {
  return Mesh::Parse(fmt::format("fsdp={}", ranks));
}

/// What one rank computes with while each core has one.
Status MeasureDevice(int64_t cores, DeviceSpec& device) {
  STRATA_TRY(Mesh mesh, MeshOf(cores));
  ThreadTeam team(std::move(mesh));
  return team.Run([&](int64_t rank) -> Status {
    const c10::InferenceMode no_autograd;
    DeviceSpec mine;
    constexpr int64_t kSmall = 16, kLarge = 1 << 20, kSide = 384;
    const Tensor small = at::ones({kSmall}), small_sum = at::empty({kSmall});
    Tensor sum = small_sum;
    mine.launch_us = MedianUs(2000, [&] { at::add_out(sum, small, small); });
    const Tensor x = at::ones({kLarge}), y = at::ones({kLarge});
    Tensor z = at::empty({kLarge});
    mine.bytes_per_us = 3 * sizeof(float) * kLarge / MedianUs(10, [&] { at::add_out(z, x, y); });
    for (const auto& [dtype, type] : {std::pair(DType::kF32, at::kFloat),
                                      {DType::kF64, at::kDouble},
                                      {DType::kBF16, at::kBFloat16}}) {
      const Tensor a = at::ones({kSide, kSide}, type), b = at::ones({kSide, kSide}, type);
      Tensor product = at::empty({kSide, kSide}, type);
      const double us = MedianUs(4, [&] { at::mm_out(product, a, b); });
      mine.flops_per_us[dtype] = 2.0 * kSide * kSide * kSide / us;
    }
    if (rank == 0) device = mine;
    return Ok();
  });
}

/// Of an all-gather of `bytes` in all between `ranks` ranks.
Result<double> AllGatherUs(int64_t ranks, int64_t bytes, int calls) {
  STRATA_TRY(Mesh mesh, MeshOf(ranks));
  ThreadTeam team(std::move(mesh));
  double us = 0;
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("_c10d_functional::all_gather_into_tensor", "")
                      .typed<Tensor(const Tensor&, int64_t, std::string)>();
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    const c10::InferenceMode no_autograd;
    const Tensor part = at::ones({bytes / ranks / static_cast<int64_t>(sizeof(float))});
    const double mine = MedianUs(calls, [&] { op.call(part, ranks, "fsdp"); });
    if (rank == 0) us = mine;
    return Ok();
  }));
  return us;
}

/// A ring of the simple model: base + (n − 1) hops, and (n − 1) / n of the bytes over a link.
Status MeasureNetwork(NetworkSpec& network) {
  constexpr int64_t kSmall = 256, kLarge = 8 << 20;
  STRATA_TRY(const double two, AllGatherUs(2, kSmall, 500));
  STRATA_TRY(const double four, AllGatherUs(4, kSmall, 500));
  STRATA_TRY(const double large, AllGatherUs(2, kLarge, 5));
  network.model = NetworkModel::kSimple;
  network.hop_us = std::max(0.0, (four - two) / 2);
  network.base_us = std::max(0.0, two - network.hop_us);
  const double share = 0.5 * static_cast<double>(kLarge - kSmall);
  network.intra = network.inter = share / std::max(1.0, large - two) / 1000;
  return Ok();
}

}  // namespace

Result<Topology> MeasureTopology() {
  RegisterCollectives();
  Topology topology{.name = "measured", .device = {}, .network = {}};
  const int64_t cores = ChooseThreads(0);
  STRATA_RETURN_IF_ERROR(MeasureDevice(cores, topology.device));
  STRATA_RETURN_IF_ERROR(MeasureNetwork(topology.network));
  topology.device.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  topology.device.cores = cores;
  topology.network.ranks_per_node = 1024;
  return topology;
}

}  // namespace strata
