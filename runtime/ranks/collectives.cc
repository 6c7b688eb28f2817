#include "runtime/ranks/collectives.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <torch/library.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"
#include "runtime/exec/step/running_step.h"
#include "runtime/ranks/rank_team.h"

namespace strata {
namespace {

using at::Tensor;

// Kernels take strings by value, as LibTorch's do: signatures of one operator must be equal.
// NOLINTBEGIN(performance-unnecessary-value-param)

// --- Shapes --------------------------------------------------------------------------------------

Tensor WithRows(const Tensor& input, int64_t rows) {
  std::vector<int64_t> sizes = input.sizes().vec();
  if (sizes.empty()) sizes.push_back(1);
  sizes[0] = rows;
  return at::empty(sizes, input.options());
}

int64_t Rows(const Tensor& input) {
  return input.dim() == 0 ? 1 : input.size(0);
}

Tensor GatheredShape(const Tensor& input, int64_t group_size, std::string /*group*/) {
  return WithRows(input, Rows(input) * group_size);
}

Tensor ScatteredShape(const Tensor& input, std::string /*op*/, int64_t group_size,
                      std::string /*group*/) {
  TORCH_CHECK(Rows(input) % group_size == 0, "reduce_scatter_tensor of ", Rows(input), " rows in ",
              group_size, " parts");
  return WithRows(input, Rows(input) / group_size);
}

Tensor ReducedShape(const Tensor& input, std::string /*op*/, std::string /*group*/) {
  return at::empty(input.sizes(), input.options());
}

Tensor ExchangedShape(const Tensor& input, c10::SymIntArrayRef output_splits,
                      c10::SymIntArrayRef input_splits, std::string /*group*/) {
  (void)input_splits;
  int64_t rows = 0;
  for (const c10::SymInt& split : output_splits)
    rows += split.expect_int();
  return WithRows(input, output_splits.empty() ? Rows(input) : rows);
}

Tensor BroadcastShape(const Tensor& input, int64_t /*source*/, std::string /*group*/) {
  return at::empty(input.sizes(), input.options());
}

Tensor WaitedShape(const Tensor& tensor) {
  return tensor;
}

// --- Calls ---------------------------------------------------------------------------------------

/// `f32[64, 32]`.
std::string Describe(const Tensor& tensor) {
  return fmt::format("{}{}", ShortName(ToDType(tensor.scalar_type())), c10::str(tensor.sizes()));
}

ByteSpan Bytes(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

int64_t Size(const Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

/// Elements [begin, end) of a contiguous tensor, as a vector.
Tensor Flat(const Tensor& tensor, int64_t begin, int64_t end) {
  return tensor.view({-1}).slice(0, begin, end);
}

void CheckGroupSize(const RankGroup& group, int64_t size) {
  TORCH_CHECK(static_cast<int64_t>(group.size()) == size, "the group has ", group.size(),
              " ranks, the operator says ", size);
}

void CopyTo(std::byte* target, ByteSpan from) {
  if (!from.empty() && from.data() != target) std::memcpy(target, from.data(), from.size());
}

/// Consecutive parts of `bytes`, of `counts[i]` units each.
std::vector<ByteSpan> Split(ByteSpan bytes, const std::vector<int64_t>& counts, size_t unit) {
  std::vector<ByteSpan> parts;
  for (const int64_t count : counts) {
    const size_t length = static_cast<size_t>(count) * unit;
    TORCH_CHECK(count >= 0 && length <= bytes.size(), "parts are larger than the whole");
    parts.push_back(bytes.first(length));
    bytes = bytes.subspan(length);
  }
  return parts;
}

std::vector<size_t> Lengths(const std::vector<ByteSpan>& parts) {
  std::vector<size_t> lengths;
  for (const ByteSpan& part : parts)
    lengths.push_back(part.size());
  return lengths;
}

void AddTo(Tensor& sum, const Tensor& more, const std::string& op) {
  if (op == "sum" || op == "avg") {
    sum.add_(more);
  } else if (op == "max") {
    at::maximum_out(sum, sum, more);
  } else if (op == "min") {
    at::minimum_out(sum, sum, more);
  } else {
    TORCH_CHECK(false, "unknown reduction '", op, "': take sum, avg, max or min");
  }
}

/// The members' vectors, of the type and size of `out`, reduced in the order of the ranks.
void Reduce(const std::vector<ByteSpan>& vectors, const std::string& op, Tensor out) {
  constexpr int64_t kBlock = 16384;  // stays in the cache while all ranks' values are added
  const bool is_narrow = out.scalar_type() == at::kBFloat16 || out.scalar_type() == at::kHalf;
  const int64_t count = out.numel();
  const auto block = [&](size_t rank, int64_t at, int64_t until) {
    const std::byte* const data =
        vectors[rank].data() + static_cast<size_t>(at) * out.element_size();
    return at::from_blob(const_cast<std::byte*>(data), {until - at}, out.options());
  };
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t until = std::min(at + kBlock, count);
    Tensor target = out.slice(0, at, until);
    Tensor sum = is_narrow ? at::empty({until - at}, out.options().dtype(at::kFloat)) : target;
    sum.copy_(block(0, at, until));
    for (size_t rank = 1; rank < vectors.size(); ++rank)
      AddTo(sum, block(rank, at, until), op);
    if (op == "avg") sum.div_(static_cast<double>(vectors.size()));
    if (is_narrow) target.copy_(sum);
  }
}

// --- Launches ------------------------------------------------------------------------------------

// A launch begins where the operator is called, with what it was called with, and may end on the
// rank's communication thread.

/// What is the same in all exchanges of a launch.
Offer OfferOf(std::string call, const Tensor& given) {
  return {.call = std::move(call),
          .node = RunningPlan::CurrentNode(),
          .parts = {},
          .memory = given,
          .expects = {}};
}

std::byte* BytesToWrite(const Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "results of collectives are contiguous");
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

void LaunchAllGather(const Tensor& input, int64_t group_size, const std::string& group_name,
                     const Tensor& out) {
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  CheckGroupSize(group, group_size);
  const Tensor given = input.contiguous();
  Offer offer = OfferOf(fmt::format("all_gather_into_tensor({})", Describe(input)), given);
  offer.parts.assign(group.size(), Bytes(given));
  offer.expects.assign(group.size(), given.nbytes());
  offer.target = BytesToWrite(out);
  RankTeam::Launch(out, {CollectiveOp::kAllGather, Size(out), group_name},
                   [&group, offer = std::move(offer)] {
                     std::byte* target = offer.target;
                     for (const ByteSpan& part : group.Exchange(offer)) {
                       CopyTo(target, part);
                       target += part.size();
                     }
                     group.Leave();
                   });
}

void LaunchReduceScatter(const Tensor& input, const std::string& op, int64_t group_size,
                         const std::string& group_name, const Tensor& out) {
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  CheckGroupSize(group, group_size);
  const Tensor given = input.contiguous();
  Offer offer = OfferOf(fmt::format("reduce_scatter_tensor({}, {})", Describe(input), op), given);
  offer.parts = Split(Bytes(given), std::vector(group.size(), out.numel()), out.element_size());
  offer.expects.assign(group.size(), out.nbytes());
  RankTeam::Launch(out, {CollectiveOp::kReduceScatter, Size(given), group_name},
                   [&group, op, out, offer = std::move(offer)] {
                     Reduce(group.Exchange(offer), op, out.view({-1}));
                     group.Leave();
                   });
}

/// Of large tensors each rank reduces a part and takes the other parts from the other ranks.
void LaunchAllReduce(const Tensor& input, const std::string& op, const std::string& group_name,
                     const Tensor& out) {
  constexpr int64_t kSmall = 4096;
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  const Tensor given = input.contiguous();
  Offer offer = OfferOf(fmt::format("all_reduce({}, {})", Describe(input), op), given);
  const RankTeam::Traffic traffic = {CollectiveOp::kAllReduce, Size(given), group_name};
  const int64_t count = input.numel();
  if (count <= kSmall) {
    offer.parts.assign(group.size(), Bytes(given));
    offer.expects.assign(group.size(), given.nbytes());
    RankTeam::Launch(out, traffic, [&group, op, out, offer = std::move(offer)] {
      Reduce(group.Exchange(offer), op, out.view({-1}));
      group.Leave();
    });
    return;
  }
  const auto size = static_cast<int64_t>(group.size()), mine = static_cast<int64_t>(group.index());
  const auto begin_of = [&](int64_t rank) { return count * rank / size; };
  std::vector<int64_t> counts;
  for (int64_t rank = 0; rank < size; ++rank)
    counts.push_back(begin_of(rank + 1) - begin_of(rank));
  const Tensor reduced = Flat(out, begin_of(mine), begin_of(mine + 1));
  offer.parts = Split(Bytes(given), counts, input.element_size());
  offer.expects.assign(group.size(), reduced.nbytes());
  Offer share = OfferOf(offer.call, out);
  share.parts.assign(group.size(), Bytes(reduced));
  share.expects = Lengths(offer.parts);
  share.target = BytesToWrite(out);
  RankTeam::Launch(out, traffic,
                   [&group, op, reduced, offer = std::move(offer), share = std::move(share)] {
                     Reduce(group.Exchange(offer), op, reduced);
                     std::byte* target = share.target;
                     for (const ByteSpan& part : group.Exchange(share)) {
                       CopyTo(target, part);
                       target += part.size();
                     }
                     group.Leave();
                   });
}

void LaunchAllToAll(const Tensor& input, c10::SymIntArrayRef output_splits,
                    c10::SymIntArrayRef input_splits, const std::string& group_name,
                    const Tensor& out) {
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  const auto size = static_cast<int64_t>(group.size());
  const auto rows = [&](c10::SymIntArrayRef splits, const Tensor& tensor) {
    std::vector<int64_t> counts;
    for (const c10::SymInt& split : splits)
      counts.push_back(split.expect_int());
    return splits.empty() ? std::vector(group.size(), Rows(tensor) / size) : counts;
  };
  const Tensor given = input.contiguous();
  const size_t row_bytes =
      input.dim() == 0 ? input.element_size()
                       : static_cast<size_t>(c10::multiply_integers(input.sizes().slice(1))) *
                             input.element_size();
  // Ranks send different numbers of rows, which the call does not say.
  Offer offer =
      OfferOf(fmt::format("all_to_all_single({})", ShortName(ToDType(input.scalar_type()))), given);
  offer.parts = Split(Bytes(given), rows(input_splits, input), row_bytes);
  for (const int64_t count : rows(output_splits, out))
    offer.expects.push_back(static_cast<size_t>(count) * row_bytes);
  offer.target = BytesToWrite(out);
  RankTeam::Launch(out, {CollectiveOp::kAllToAll, std::max(Size(given), Size(out)), group_name},
                   [&group, offer = std::move(offer)] {
                     std::byte* target = offer.target;
                     for (const ByteSpan& part : group.Exchange(offer)) {
                       CopyTo(target, part);
                       target += part.size();
                     }
                     group.Leave();
                   });
}

void LaunchBroadcast(const Tensor& input, int64_t source, const std::string& group_name,
                     const Tensor& out) {
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  TORCH_CHECK(source >= 0 && source < static_cast<int64_t>(group.size()), "broadcast from rank ",
              source, " of a group of ", group.size());
  const auto from = static_cast<size_t>(source);
  const Tensor given = input.contiguous();
  Offer offer = OfferOf(fmt::format("broadcast({}, {})", Describe(input), source), given);
  offer.parts.assign(group.size(), group.index() == from ? Bytes(given) : ByteSpan());
  offer.expects.assign(group.size(), size_t{0});
  offer.expects[from] = given.nbytes();
  offer.target = BytesToWrite(out);
  RankTeam::Launch(out, {CollectiveOp::kAllGather, Size(out), group_name},
                   [&group, from, offer = std::move(offer)] {
                     CopyTo(offer.target, group.Exchange(offer)[from]);
                     group.Leave();
                   });
}

// --- Operators -----------------------------------------------------------------------------------

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
  Tensor index = at::empty({}, at::kLong);
  *index.mutable_data_ptr<int64_t>() = RankTeam::CurrentIndex(axis);
  return index;
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
    torch::Library& cpu = library(torch::Library::IMPL, "_c10d_functional", c10::DispatchKey::CPU);
    cpu.impl("all_gather_into_tensor", AllGather);
    cpu.impl("reduce_scatter_tensor", ReduceScatter);
    cpu.impl("all_reduce", AllReduce);
    cpu.impl("all_to_all_single", AllToAll);
    cpu.impl("broadcast", Broadcast);
    cpu.impl("wait_tensor", Wait);
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
