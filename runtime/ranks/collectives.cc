#include "runtime/ranks/collectives.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <torch/library.h>

#include "runtime/ranks/collective_launches.h"
#include "runtime/ranks/collective_shapes.h"
#include "runtime/ranks/rank_team.h"

namespace strata {
namespace {

using at::Tensor;

// Kernels take strings by value, as LibTorch's do: signatures of one operator must be equal.
// NOLINTBEGIN(performance-unnecessary-value-param)

Tensor AllGather(const Tensor& input, int64_t group_size, std::string group) {
  Tensor out = GatheredShape(input, group_size, group);
  LaunchAllGather(input, group_size, group, out);
  return out;
}

Tensor& AllGatherOut(const Tensor& input, int64_t group_size, std::string group, Tensor& out) {
  LaunchAllGather(input, group_size, group, out);
  return out;
}

Tensor ReduceScatter(const Tensor& input, std::string op, int64_t group_size, std::string group) {
  Tensor out = ScatteredShape(input, op, group_size, group);
  LaunchReduceScatter(input, op, group_size, group, out);
  return out;
}

Tensor& ReduceScatterOut(const Tensor& input, std::string op, int64_t group_size, std::string group,
                         Tensor& out) {
  LaunchReduceScatter(input, op, group_size, group, out);
  return out;
}

Tensor AllReduce(const Tensor& input, std::string op, std::string group) {
  Tensor out = ReducedShape(input, op, group);
  LaunchAllReduce(input, op, group, out);
  return out;
}

Tensor& AllReduceOut(const Tensor& input, std::string op, std::string group, Tensor& out) {
  LaunchAllReduce(input, op, group, out);
  return out;
}

Tensor AllToAll(const Tensor& input, c10::SymIntArrayRef output_splits,
                c10::SymIntArrayRef input_splits, std::string group) {
  Tensor out = ExchangedShape(input, output_splits, input_splits, group);
  LaunchAllToAll(input, output_splits, input_splits, group, out);
  return out;
}

Tensor& AllToAllOut(const Tensor& input, c10::SymIntArrayRef output_splits,
                    c10::SymIntArrayRef input_splits, std::string group, Tensor& out) {
  LaunchAllToAll(input, output_splits, input_splits, group, out);
  return out;
}

Tensor Broadcast(const Tensor& input, int64_t source, std::string group) {
  Tensor out = BroadcastShape(input, source, group);
  LaunchBroadcast(input, source, group, out);
  return out;
}

Tensor& BroadcastOut(const Tensor& input, int64_t source, std::string group, Tensor& out) {
  LaunchBroadcast(input, source, group, out);
  return out;
}

Tensor Wait(const Tensor& tensor) {
  RankTeam::Wait(tensor);
  return tensor;
}

// --- Values that depend on the rank --------------------------------------------------------------

Tensor AxisIndex(std::string axis) {
  return at::full({}, RankTeam::CurrentIndex(axis),
                  at::device(RankTeam::CurrentPlace()).dtype(at::kLong));
}

int64_t ChunkSize(const Tensor& x, int64_t dim, int64_t parts) {
  TORCH_CHECK(dim >= 0 && dim < x.dim() && parts > 0 && x.size(dim) % parts == 0, "axis_shard of ",
              c10::str(x.sizes()), " in ", parts, " parts along ", dim);
  return x.size(dim) / parts;
}

/// Between placements of a graph that is not lowered, where each value is whole.
Tensor Redistribute(const Tensor& x, std::string /*placements*/,
                    const std::optional<Tensor>& /*counts*/) {
  return x.clone();
}

Tensor ShardShape(const Tensor& x, int64_t dim, std::string /*axis*/, int64_t parts) {
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t chunk = ChunkSize(x, dim, parts);
  sizes[static_cast<size_t>(dim)] = chunk;
  return at::empty(sizes, x.options());
}

Tensor AxisShard(const Tensor& x, int64_t dim, std::string axis, int64_t parts) {
  Tensor out = ShardShape(x, dim, axis, parts);
  const RankGroup& group = RankTeam::CurrentGroup(axis);
  TORCH_CHECK(static_cast<int64_t>(group.size()) == parts, "axis ", axis, " has ", group.size(),
              " ranks, the operator says ", parts);
  const int64_t chunk = out.size(dim);
  out.copy_(x.narrow(dim, static_cast<int64_t>(group.index()) * chunk, chunk));
  return out;
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace

void RegisterCollectives() {
  static const std::vector<torch::Library> libraries = [] {
    std::vector<torch::Library> made;
    made.reserve(8);  // references below stay
    const auto library = [&](torch::Library::Kind kind, const char* name,
                             std::optional<c10::DispatchKey> key) -> torch::Library& {
      return made.emplace_back(kind, name, key, __FILE__, __LINE__);
    };
    torch::Library& meta =
        library(torch::Library::IMPL, "_c10d_functional", c10::DispatchKey::Meta);
    meta.impl("all_gather_into_tensor", GatheredShape);
    meta.impl("reduce_scatter_tensor", ScatteredShape);
    meta.impl("all_reduce", ReducedShape);
    meta.impl("all_to_all_single", ExchangedShape);
    meta.impl("broadcast", BroadcastShape);
    meta.impl("wait_tensor", WaitedShape);
    for (const c10::DispatchKey key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA}) {
      torch::Library& kernels = library(torch::Library::IMPL, "_c10d_functional", key);
      kernels.impl("all_gather_into_tensor", AllGather);
      kernels.impl("reduce_scatter_tensor", ReduceScatter);
      kernels.impl("all_reduce", AllReduce);
      kernels.impl("all_to_all_single", AllToAll);
      kernels.impl("broadcast", Broadcast);
      kernels.impl("wait_tensor", Wait);
    }
    // What plans call: the results are where a plan has memory for them.
    torch::Library& more = library(torch::Library::FRAGMENT, "_c10d_functional", std::nullopt);
    more.def(
        "all_gather_into_tensor.out(Tensor input, int group_size, str group_name, *, Tensor(a!) "
        "out) -> Tensor(a!)");
    more.def(
        "reduce_scatter_tensor.out(Tensor input, str reduce_op, int group_size, str group_name, "
        "*, Tensor(a!) out) -> Tensor(a!)");
    more.def(
        "all_reduce.out(Tensor input, str reduce_op, str group_name, *, Tensor(a!) out) -> "
        "Tensor(a!)");
    more.def(
        "all_to_all_single.out(Tensor input, SymInt[] output_split_sizes, SymInt[] "
        "input_split_sizes, str group_name, *, Tensor(a!) out) -> Tensor(a!)");
    more.def(
        "broadcast.out(Tensor input, int src, str group_name, *, Tensor(a!) out) -> Tensor(a!)");
    torch::Library& cpu = library(torch::Library::IMPL, "_c10d_functional", c10::DispatchKey::CPU);
    cpu.impl("all_gather_into_tensor.out", AllGatherOut);
    cpu.impl("reduce_scatter_tensor.out", ReduceScatterOut);
    cpu.impl("all_reduce.out", AllReduceOut);
    cpu.impl("all_to_all_single.out", AllToAllOut);
    cpu.impl("broadcast.out", BroadcastOut);
    torch::Library& own = library(torch::Library::DEF, "strata", std::nullopt);
    own.def("axis_index(str axis) -> Tensor");
    own.def("axis_shard(Tensor x, int dim, str axis, int parts) -> Tensor");
    own.def("redistribute(Tensor x, str placements, Tensor? counts=None) -> Tensor");
    torch::Library& own_any =
        library(torch::Library::IMPL, "strata", c10::DispatchKey::CompositeExplicitAutograd);
    own_any.impl("axis_index", AxisIndex);
    own_any.impl("axis_shard", AxisShard);
    own_any.impl("redistribute", Redistribute);
    torch::Library& own_meta = library(torch::Library::IMPL, "strata", c10::DispatchKey::Meta);
    own_meta.impl("axis_shard", ShardShape);
    return made;
  }();
}

}  // namespace strata
