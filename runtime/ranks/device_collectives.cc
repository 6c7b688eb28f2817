#include "runtime/ranks/device_collectives.h"

#include <cstring>
#include <span>
#include <utility>

#include <c10/util/Exception.h>

#include <fmt/format.h>

#include "runtime/aten/literals.h"

namespace strata {
namespace {

using at::Tensor;

NcclReduce ReductionOf(const std::string& op) {
  if (op == "sum") return NcclReduce::kSum;
  if (op == "avg") return NcclReduce::kAverage;
  if (op == "max") return NcclReduce::kMax;
  if (op == "min") return NcclReduce::kMin;
  TORCH_CHECK(false, "unknown reduction '", op, "': take sum, avg, max or min");
}

/// What only moves is moved as bytes: NCCL does not know all types.
constexpr DType kBytes = DType::kU8;

std::vector<size_t> BytesOf(const std::vector<int64_t>& rows, const Tensor& tensor) {
  const int64_t row_bytes = tensor.dim() == 0 ? static_cast<int64_t>(tensor.element_size())
                                              : c10::multiply_integers(tensor.sizes().slice(1)) *
                                                    static_cast<int64_t>(tensor.element_size());
  std::vector<size_t> bytes;
  size_t all = 0;
  for (const int64_t count : rows) {
    TORCH_CHECK(count >= 0, "a rank cannot exchange ", count, " rows");
    all += bytes.emplace_back(static_cast<size_t>(count * row_bytes));
  }
  TORCH_CHECK(all <= tensor.nbytes(), "parts are larger than the whole");
  return bytes;
}

}  // namespace

DeviceCollectives::~DeviceCollectives() {
  device_.graphs().TearDown();
  (void)device_.Synchronize();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, communicator] : communicators_)
    (void)nccl_.comm_destroy(communicator);
}

void DeviceCollectives::AllGather(RankGroup& group, const Offer& offer, const Tensor& out) {
  const Tensor& given = offer.memory;
  Enqueue(group, offer, [&](NcclComm* communicator, void* stream) {
    return nccl_.all_gather(communicator, given.const_data_ptr(), out.mutable_data_ptr(),
                            given.nbytes(), kBytes, stream);
  });
}

void DeviceCollectives::ReduceScatter(RankGroup& group, const Offer& offer, const std::string& op,
                                      const Tensor& out) {
  const NcclReduce reduce = ReductionOf(op);
  Enqueue(group, offer, [&](NcclComm* communicator, void* stream) {
    return nccl_.reduce_scatter(communicator, offer.memory.const_data_ptr(), out.mutable_data_ptr(),
                                static_cast<size_t>(out.numel()), ToDType(out.scalar_type()),
                                reduce, stream);
  });
}

void DeviceCollectives::AllReduce(RankGroup& group, const Offer& offer, const std::string& op,
                                  const Tensor& out) {
  const NcclReduce reduce = ReductionOf(op);
  Enqueue(group, offer, [&](NcclComm* communicator, void* stream) {
    return nccl_.all_reduce(communicator, offer.memory.const_data_ptr(), out.mutable_data_ptr(),
                            static_cast<size_t>(out.numel()), ToDType(out.scalar_type()), reduce,
                            stream);
  });
}

void DeviceCollectives::AllToAll(RankGroup& group, const Offer& offer,
                                 const std::vector<int64_t>& gives, const Tensor& out,
                                 const std::vector<int64_t>& takes) {
  const std::vector<size_t> give_bytes = BytesOf(gives, offer.memory),
                            take_bytes = BytesOf(takes, out);
  Enqueue(group, offer, [&](NcclComm* communicator, void* stream) {
    return nccl_.all_to_all(communicator, offer.memory.const_data_ptr(), give_bytes.data(),
                            out.mutable_data_ptr(), take_bytes.data(), kBytes, stream);
  });
}

void DeviceCollectives::Broadcast(RankGroup& group, const Offer& offer, size_t source,
                                  const Tensor& out) {
  Enqueue(group, offer, [&](NcclComm* communicator, void* stream) {
    return nccl_.broadcast(communicator, offer.memory.const_data_ptr(), out.mutable_data_ptr(),
                           out.nbytes(), kBytes, static_cast<int>(source), stream);
  });
}

void DeviceCollectives::Enqueue(RankGroup& group, const Offer& offer, const Call& call) {
  NcclComm* const communicator = CommunicatorOf(group);
  Note(group, offer);
  const NcclApi::Message message = call(communicator, device_.stream());
  const std::string aborted = why_aborted();
  TORCH_CHECK(aborted.empty(), aborted);
  TORCH_CHECK(message == nullptr, "NCCL: ", offer.call, ": ", message == nullptr ? "" : message);
}

/// The first member makes what all find each other by.
NcclComm* DeviceCollectives::CommunicatorOf(RankGroup& group) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = communicators_.find(group.name());
    if (known != communicators_.end()) return known->second;
  }
  NcclId id{};
  if (group.index() == 0) {
    const NcclApi::Message message = nccl_.unique_id(&id);
    TORCH_CHECK(message == nullptr, "NCCL: ", message == nullptr ? "" : message);
  }
  const ByteSpan mine = std::as_bytes(std::span(id.bytes));
  const std::vector<ByteSpan> ids =
      group.Exchange({.call = "communicator of NCCL",
                      .parts = std::vector(group.size(), mine),
                      .memory = {},
                      .expects = std::vector(group.size(), mine.size())});
  std::memcpy(id.bytes, ids[0].data(), sizeof id.bytes);
  group.Leave();
  NcclComm* made = nullptr;
  // A process sees one GPU (UseOwnGpu).
  const NcclApi::Message message = nccl_.comm_create(
      &id, static_cast<int>(group.size()), static_cast<int>(group.index()), /*device=*/0, &made);
  TORCH_CHECK(message == nullptr, "NCCL: communicator of ", group.name(), ": ",
              message == nullptr ? "" : message);
  const std::lock_guard lock(mutex_);
  return communicators_.emplace(group.name(), made).first->second;
}

void DeviceCollectives::Note(const RankGroup& group, const Offer& offer) {
  const std::lock_guard lock(mutex_);
  issued_.push_back({.group = group.name(),
                     .ranks = group.ranks(),
                     .number = counts_[group.name()]++,
                     .call = fmt::format("{} over {}{}{}", offer.call, group.name(),
                                         offer.node.empty() ? "" : " in ", offer.node)});
  if (issued_.size() > kMostIssued) issued_.pop_front();
}

void DeviceCollectives::Abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!why_aborted_.empty()) return;
  why_aborted_ = why;
  for (const auto& [name, communicator] : std::exchange(communicators_, {}))
    (void)nccl_.comm_abort(communicator);
}

std::string DeviceCollectives::why_aborted() const {
  const std::lock_guard lock(mutex_);
  return why_aborted_;
}

std::vector<DeviceCollectives::Issued> DeviceCollectives::issued() const {
  const std::lock_guard lock(mutex_);
  return {issued_.begin(), issued_.end()};
}

}  // namespace strata
