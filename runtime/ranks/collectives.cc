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
#include <ATen/ops/empty_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <torch/library.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/aten/literals.h"
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

/// A stay in a meeting: no member leaves while others read.
class Stay {
 public:
  Stay(std::string_view group, Contribution mine) : member_(RankTeam::CurrentGroup(group)) {
    mine.call += fmt::format(" over {}", group);
    member_.meeting->Enter(member_.index, std::move(mine));
  }

  size_t size() const { return member_.meeting->size(); }
  size_t index() const { return member_.index; }
  const Tensor& TensorOf(size_t rank) const { return member_.meeting->Of(rank).tensor; }
  const Contribution& Of(size_t rank) const { return member_.meeting->Of(rank); }
  void Continue() { member_.meeting->Continue(member_.index); }
  void Leave() { member_.meeting->Leave(member_.index); }

 private:
  GroupMember member_;
};

void CheckGroupSize(const Stay& stay, int64_t size) {
  TORCH_CHECK(static_cast<int64_t>(stay.size()) == size, "the group has ", stay.size(),
              " ranks, the operator says ", size);
}

const std::byte* Bytes(const Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.const_data_ptr());
}

/// Elements [begin, end) of a contiguous tensor, as a vector.
Tensor Flat(const Tensor& tensor, int64_t begin, int64_t end) {
  return tensor.view({-1}).slice(0, begin, end);
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

/// Elements [begin, end) of all ranks' tensors, reduced in the order of the ranks, into `out`.
void Reduce(const Stay& stay, const std::string& op, int64_t begin, int64_t end, Tensor out) {
  constexpr int64_t kBlock = 16384;  // stays in the cache while all ranks' values are added
  const at::ScalarType type = out.scalar_type();
  const bool is_narrow = type == at::kBFloat16 || type == at::kHalf;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t until = std::min(at + kBlock, end);
    Tensor target = out.slice(0, at - begin, until - begin);
    Tensor sum = is_narrow ? at::empty({until - at}, out.options().dtype(at::kFloat)) : target;
    sum.copy_(Flat(stay.TensorOf(0), at, until));
    for (size_t rank = 1; rank < stay.size(); ++rank)
      AddTo(sum, Flat(stay.TensorOf(rank), at, until), op);
    if (op == "avg") sum.div_(static_cast<double>(stay.size()));
    if (is_narrow) target.copy_(sum);
  }
}

Tensor AllGather(const Tensor& input, int64_t group_size, std::string group) {
  Tensor out = GatheredShape(input, group_size, group);
  Stay stay(group, {.call = fmt::format("all_gather_into_tensor({})", Describe(input)),
                    .tensor = input.contiguous(),
                    .result = {},
                    .splits = {}});
  CheckGroupSize(stay, group_size);
  auto* target = static_cast<std::byte*>(out.mutable_data_ptr());
  const size_t bytes = input.nbytes();
  for (size_t rank = 0; rank < stay.size() && bytes > 0; ++rank)
    std::memcpy(target + rank * bytes, Bytes(stay.TensorOf(rank)), bytes);
  stay.Leave();
  return out;
}

Tensor ReduceScatter(const Tensor& input, std::string op, int64_t group_size, std::string group) {
  Tensor out = ScatteredShape(input, op, group_size, group);
  Stay stay(group, {.call = fmt::format("reduce_scatter_tensor({}, {})", Describe(input), op),
                    .tensor = input.contiguous(),
                    .result = {},
                    .splits = {}});
  CheckGroupSize(stay, group_size);
  const int64_t begin = static_cast<int64_t>(stay.index()) * out.numel();
  Reduce(stay, op, begin, begin + out.numel(), out.view({-1}));
  stay.Leave();
  return out;
}

/// Of large tensors each rank reduces a part and takes the other parts from the other ranks.
Tensor AllReduce(const Tensor& input, std::string op, std::string group) {
  constexpr int64_t kSmall = 4096;
  Tensor out = at::empty(input.sizes(), input.options());
  Stay stay(group, {.call = fmt::format("all_reduce({}, {})", Describe(input), op),
                    .tensor = input.contiguous(),
                    .result = out,
                    .splits = {}});
  const int64_t count = input.numel();
  if (count <= kSmall) {
    Reduce(stay, op, 0, count, out.view({-1}));
    stay.Leave();
    return out;
  }
  const auto size = static_cast<int64_t>(stay.size()), mine = static_cast<int64_t>(stay.index());
  const auto part_begin = [&](int64_t rank) { return count * rank / size; };
  Reduce(stay, op, part_begin(mine), part_begin(mine + 1),
         Flat(out, part_begin(mine), part_begin(mine + 1)));
  stay.Continue();
  const size_t width = input.element_size();
  auto* target = static_cast<std::byte*>(out.mutable_data_ptr());
  for (int64_t rank = 0; rank < size; ++rank) {
    if (rank == mine) continue;
    const size_t begin = static_cast<size_t>(part_begin(rank)) * width;
    const size_t end = static_cast<size_t>(part_begin(rank + 1)) * width;
    std::memcpy(target + begin, Bytes(stay.Of(static_cast<size_t>(rank)).result) + begin,
                end - begin);
  }
  stay.Leave();
  return out;
}

Tensor AllToAll(const Tensor& input, c10::SymIntArrayRef output_splits,
                c10::SymIntArrayRef input_splits, std::string group) {
  Tensor out = ExchangedShape(input, output_splits, input_splits, group);
  // Ranks send different numbers of rows.
  Contribution mine{
      .call = fmt::format("all_to_all_single({})", ShortName(ToDType(input.scalar_type()))),
      .tensor = input.contiguous(),
      .result = {},
      .splits = {}};
  const auto size = static_cast<int64_t>(RankTeam::CurrentGroup(group).meeting->size());
  const auto split = [&](c10::SymIntArrayRef splits, int64_t rank, const Tensor& tensor) {
    return splits.empty() ? Rows(tensor) / size : splits[static_cast<size_t>(rank)].expect_int();
  };
  for (int64_t rank = 0; rank < size; ++rank)
    mine.splits.push_back(split(input_splits, rank, input));
  Stay stay(group, std::move(mine));
  const size_t row_bytes = out.numel() == 0 ? 0 : out.nbytes() / static_cast<size_t>(out.size(0));
  auto* target = static_cast<std::byte*>(out.mutable_data_ptr());
  for (int64_t rank = 0; rank < size; ++rank) {
    const Contribution& theirs = stay.Of(static_cast<size_t>(rank));
    int64_t begin = 0;
    for (size_t before = 0; before < stay.index(); ++before)
      begin += theirs.splits[before];
    const int64_t rows = theirs.splits[stay.index()];
    const int64_t wanted = split(output_splits, rank, out);
    TORCH_CHECK(rows == wanted, "all_to_all_single over ", group, ": rank ", rank,
                " of the group sends ", rows, " rows, ", wanted, " are expected");
    const size_t bytes = static_cast<size_t>(rows) * row_bytes;
    if (bytes == 0) continue;
    std::memcpy(target, Bytes(theirs.tensor) + static_cast<size_t>(begin) * row_bytes, bytes);
    target += bytes;
  }
  stay.Leave();
  return out;
}

Tensor Broadcast(const Tensor& input, int64_t source, std::string group) {
  Tensor out = at::empty(input.sizes(), input.options());
  Stay stay(group, {.call = fmt::format("broadcast({}, {})", Describe(input), source),
                    .tensor = input.contiguous(),
                    .result = {},
                    .splits = {}});
  TORCH_CHECK(source >= 0 && source < static_cast<int64_t>(stay.size()), "broadcast from rank ",
              source, " of a group of ", stay.size());
  if (input.nbytes() > 0) {
    std::memcpy(out.mutable_data_ptr(), Bytes(stay.TensorOf(static_cast<size_t>(source))),
                input.nbytes());
  }
  stay.Leave();
  return out;
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
  const GroupMember member = RankTeam::CurrentGroup(axis);
  TORCH_CHECK(static_cast<int64_t>(member.meeting->size()) == parts, "axis ", axis, " has ",
              member.meeting->size(), " ranks, the operator says ", parts);
  const int64_t chunk = out.size(dim);
  out.copy_(x.narrow(dim, static_cast<int64_t>(member.index) * chunk, chunk));
  return out;
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace

void RegisterCollectives() {
  static const std::vector<torch::Library> libraries = [] {
    std::vector<torch::Library> made;
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
    cpu.impl("wait_tensor", WaitedShape);
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
