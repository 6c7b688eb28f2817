#include "runtime/ranks/measure_topology.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tanh.h>
#include <c10/core/InferenceMode.h>

#include <fmt/format.h>

#include "runtime/aten/threads.h"
#include "runtime/ranks/collectives.h"
#include "runtime/ranks/thread_team.h"

namespace strata {
namespace {

using at::Tensor;

/// Of a clock, in µs.
double NowUs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// The median time of a call in µs, of several rounds of `calls` calls. Of processor time, which
/// other work on the machine hardly changes: `clock` says whether of the thread or of the process.
double MedianUs(clockid_t clock, int calls, const std::function<void()>& call) {
  constexpr size_t kRounds = 9;
  call();
  std::vector<double> times;
  for (size_t round = 0; round < kRounds; ++round) {
    const double start = NowUs(clock);
    for (int i = 0; i < calls; ++i)
      call();
    times.push_back((NowUs(clock) - start) / calls);
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

Result<Mesh> MeshOf(int64_t ranks) {
  return Mesh::Parse(fmt::format("fsdp={}", ranks));
}

constexpr clockid_t kThread = CLOCK_THREAD_CPUTIME_ID;

/// Of more bytes than caches have.
double StateBytesPerUs() {
  constexpr int64_t kElements = 24 << 20;
  const Tensor x = at::ones({kElements}), y = at::ones({kElements});
  Tensor z = at::empty({kElements});
  return 3 * sizeof(float) * kElements / MedianUs(kThread, 1, [&] { at::add_out(z, x, y); });
}

/// Of elements that lie in a core's cache.
void MeasureFunctions(DeviceSpec& device) {
  constexpr int64_t kElements = 64 << 10;
  const Tensor x = at::full({kElements}, 0.5);
  Tensor y = at::empty({kElements});
  const auto measure = [&](const char* name, const std::function<void()>& call) {
    device.functions_per_us[name] = static_cast<double>(kElements) / MedianUs(kThread, 20, call);
  };
  measure("exp", [&] { at::exp_out(y, x); });
  measure("log", [&] { at::log_out(y, x); });
  measure("sigmoid", [&] { at::sigmoid_out(y, x); });
  measure("silu", [&] { at::silu_out(y, x); });
  const Tensor rows = x.view({64, kElements / 64});
  measure("softmax", [&] { at::_log_softmax(rows, 1, /*half_to_float=*/false); });
  measure("sqrt", [&] { at::sqrt_out(y, x); });
  measure("tanh", [&] { at::tanh_out(y, x); });
}

/// Of eight heads, forward and backward.
void MeasureAttention(DeviceSpec& device) {
  constexpr int64_t kBatch = 2, kHeads = 8, kTokens = 64, kWidth = 32;
  constexpr double kProduct = 2.0 * kBatch * kHeads * kTokens * kTokens * kWidth;
  for (const auto& [dtype, type] :
       {std::pair(DType::kF32, at::kFloat), {DType::kBF16, at::kBFloat16}}) {
    const Tensor q = at::full({kBatch, kHeads, kTokens, kWidth}, 0.5, type);
    const auto forward = [&] {
      return at::_scaled_dot_product_flash_attention_for_cpu(q, q, q, 0.0, /*is_causal=*/true);
    };
    const auto [out, log_sums] = forward();
    device.attention_flops_per_us[dtype] = 2 * kProduct / MedianUs(kThread, 20, forward);
    device.attention_backward_flops_per_us[dtype] =
        5 * kProduct / MedianUs(kThread, 10, [&, &out = out, &log_sums = log_sums] {
          at::_scaled_dot_product_flash_attention_for_cpu_backward(q, q, q, q, out, log_sums, 0.0,
                                                                   true);
        });
  }
}

/// What one rank computes with while each core has one.
Status MeasureDevice(int64_t cores, DeviceSpec& device) {
  STRATA_TRY(Mesh mesh, MeshOf(cores));
  ThreadTeam team(std::move(mesh));
  return team.Run([&](int64_t rank) -> Status {
    const c10::InferenceMode no_autograd;
    DeviceSpec mine;
    mine.cores = cores;
    constexpr int64_t kSmall = 16, kLarge = 1 << 20, kSide = 384;
    const Tensor small = at::ones({kSmall}), small_sum = at::empty({kSmall});
    Tensor sum = small_sum;
    mine.launch_us = MedianUs(kThread, 2000, [&] { at::add_out(sum, small, small); });
    const Tensor x = at::ones({kLarge}), y = at::ones({kLarge});
    Tensor z = at::empty({kLarge});
    mine.bytes_per_us =
        3 * sizeof(float) * kLarge / MedianUs(kThread, 10, [&] { at::add_out(z, x, y); });
    mine.state_bytes_per_us = StateBytesPerUs();
    for (const auto& [dtype, type] : {std::pair(DType::kF32, at::kFloat),
                                      {DType::kF64, at::kDouble},
                                      {DType::kBF16, at::kBFloat16}}) {
      const Tensor a = at::ones({kSide, kSide}, type), b = at::ones({kSide, kSide}, type);
      Tensor product = at::empty({kSide, kSide}, type);
      const double us = MedianUs(kThread, 4, [&] { at::mm_out(product, a, b); });
      mine.flops_per_us[dtype] = 2.0 * kSide * kSide * kSide / us;
    }
    MeasureFunctions(mine);
    MeasureAttention(mine);
    if (rank == 0) device = mine;
    return Ok();
  });
}

/// What one of `ranks` ranks spends, as plans call it: beside the computation, and then waited for.
/// `bytes`: of the result of an all-gather, of the operand of a reduce-scatter.
Result<double> ExchangeUs(CollectiveOp collective, int64_t ranks, int64_t bytes, int calls) {
  STRATA_TRY(Mesh mesh, MeshOf(ranks));
  ThreadTeam team(std::move(mesh));
  const auto find = [](const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  };
  const auto gather = find("_c10d_functional::all_gather_into_tensor")
                          .typed<Tensor(const Tensor&, int64_t, std::string)>();
  const auto scatter = find("_c10d_functional::reduce_scatter_tensor")
                           .typed<Tensor(const Tensor&, std::string, int64_t, std::string)>();
  const auto wait = find("_c10d_functional::wait_tensor").typed<Tensor(const Tensor&)>();
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  double us = 0;
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    const c10::InferenceMode no_autograd;
    const AsyncCollectives async(true);
    const bool gathers = collective == CollectiveOp::kAllGather;
    const Tensor part = at::ones({gathers ? count / ranks : count});
    const double all = MedianUs(CLOCK_PROCESS_CPUTIME_ID, calls, [&] {
      wait.call(gathers ? gather.call(part, ranks, "fsdp")
                        : scatter.call(part, "sum", ranks, "fsdp"));
    });
    if (rank == 0) us = all / static_cast<double>(ranks);
    return Ok();
  }));
  return us;
}

/// The model of memory: waits for each other rank, then all bytes at the rate of a core.
Status MeasureNetwork(NetworkSpec& network) {
  constexpr int64_t kSmall = 256, kLarge = 8 << 20;
  constexpr auto kGather = CollectiveOp::kAllGather, kScatter = CollectiveOp::kReduceScatter;
  STRATA_TRY(const double two, ExchangeUs(kGather, 2, kSmall, 500));
  STRATA_TRY(const double four, ExchangeUs(kGather, 4, kSmall, 500));
  STRATA_TRY(const double copied, ExchangeUs(kGather, 2, kLarge, 5));
  STRATA_TRY(const double summed, ExchangeUs(kScatter, 2, kLarge, 5));
  network.hop_us = std::max(0.0, (four - two) / 2);
  network.base_us = std::max(0.0, two - network.hop_us);
  const auto rate = [&](double us) {
    return static_cast<double>(kLarge - kSmall) / std::max(1.0, us - two) / 1000;
  };
  network.intra = network.inter = rate(copied);
  network.sum = rate(summed);
  return Ok();
}

}  // namespace

Result<Topology> MeasureTopology() {
  RegisterCollectives();
  Topology topology{.name = "measured", .device = {}, .network = {}};
  topology.device.cores = PhysicalCores();
  topology.network.model = NetworkModel::kMemory;
  topology.network.ranks_per_node = 1024;
  STRATA_RETURN_IF_ERROR(MeasureDevice(topology.device.cores, topology.device));
  STRATA_RETURN_IF_ERROR(MeasureNetwork(topology.network));
  topology.device.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return topology;
}

}  // namespace strata
