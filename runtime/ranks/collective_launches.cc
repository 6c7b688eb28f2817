#include "runtime/ranks/collective_launches.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"
#include "runtime/exec/step/running_step.h"
#include "runtime/ranks/collective_shapes.h"
#include "runtime/ranks/device_collectives.h"
#include "runtime/ranks/rank_team.h"

namespace strata {
namespace {

using at::Tensor;

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

}  // namespace

void LaunchAllGather(const Tensor& input, int64_t group_size, const std::string& group_name,
                     const Tensor& out) {
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  CheckGroupSize(group, group_size);
  const Tensor given = input.contiguous();
  Offer offer = OfferOf(fmt::format("all_gather_into_tensor({})", Describe(input)), given);
  if (DeviceCollectives* device = RankTeam::DeviceOf(given))
    return device->AllGather(group, offer, out);
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
  if (DeviceCollectives* device = RankTeam::DeviceOf(given))
    return device->ReduceScatter(group, offer, op, out);
  offer.parts = Split(Bytes(given), std::vector(group.size(), out.numel()), out.element_size());
  offer.expects.assign(group.size(), out.nbytes());
  RankTeam::Launch(out, {CollectiveOp::kReduceScatter, Size(given), group_name},
                   [&group, op, out, offer = std::move(offer)] {
                     Reduce(group.Exchange(offer), op, out.view({-1}));
                     group.Leave();
                   });
}

void LaunchAllReduce(const Tensor& input, const std::string& op, const std::string& group_name,
                     const Tensor& out) {
  constexpr int64_t kSmall = 4096;
  RankGroup& group = RankTeam::CurrentGroup(group_name);
  const Tensor given = input.contiguous();
  Offer offer = OfferOf(fmt::format("all_reduce({}, {})", Describe(input), op), given);
  if (DeviceCollectives* device = RankTeam::DeviceOf(given))
    return device->AllReduce(group, offer, op, out);
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
  if (DeviceCollectives* device = RankTeam::DeviceOf(given)) {
    return device->AllToAll(group, offer, rows(input_splits, input), out, rows(output_splits, out));
  }
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
  if (DeviceCollectives* device = RankTeam::DeviceOf(given))
    return device->Broadcast(group, offer, from, out);
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

}  // namespace strata
