#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/comm/nccl_api.h"
#include "runtime/plan/device/device.h"
#include "runtime/ranks/rank_team.h"

namespace strata {

/// Collectives between the GPUs of ranks that are processes, by NCCL: enqueued on the device's
/// current stream, in the order of the calls, so that the host does not wait for them. Each group
/// has a communicator, which its members make together when they first call one.
///
/// NCCL adds in an order of its own and in the type of the tensors: sums are not bitwise those of
/// ThreadTeam and ProcessTeam.
///
/// The functions throw (c10::Error) what NCCL reports, and after `Abort` its reason.
class DeviceCollectives {
 public:
  /// REQUIRES: both outlive this.
  DeviceCollectives(const NcclApi& nccl, Device& device) : nccl_(nccl), device_(device) {}
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;
  /// Drops the graphs that were captured on the device: they hold on to communicators.
  ~DeviceCollectives();

  Device& device() { return device_; }

  // By the rank's thread. `offer` says call, node and, as `memory`, the contiguous tensor that is
  // given; `out` is contiguous.

  void AllGather(RankGroup& group, const Offer& offer, const at::Tensor& out);
  void ReduceScatter(RankGroup& group, const Offer& offer, const std::string& op,
                     const at::Tensor& out);
  void AllReduce(RankGroup& group, const Offer& offer, const std::string& op,
                 const at::Tensor& out);
  /// Rows by member.
  void AllToAll(RankGroup& group, const Offer& offer, const std::vector<int64_t>& gives,
                const at::Tensor& out, const std::vector<int64_t>& takes);
  void Broadcast(RankGroup& group, const Offer& offer, size_t source, const at::Tensor& out);

  // By any thread.

  /// Ends collectives that wait for ranks which do not come; the results are of no use, and all
  /// further calls throw `why`. The first reason counts.
  void Abort(const std::string& why);
  /// Empty: nothing was aborted.
  std::string why_aborted() const;

  /// A collective that was enqueued.
  struct Issued {
    std::string group;  ///< `fsdp`
    std::vector<int64_t> ranks;
    int64_t number = 0;  ///< of the group's collectives
    std::string call;    ///< and its node
  };
  /// The last ones, in their order.
  std::vector<Issued> issued() const;

 private:
  using Call = std::function<NcclApi::Message(NcclComm*, void* stream)>;
  void Enqueue(RankGroup& group, const Offer& offer, const Call& call);
  NcclComm* CommunicatorOf(RankGroup& group);
  void Note(const RankGroup& group, const Offer& offer);

  static constexpr size_t kMostIssued = 256;
  const NcclApi& nccl_;
  Device& device_;
  mutable std::mutex mutex_;  // of all below
  std::map<std::string, NcclComm*, std::less<>> communicators_;
  std::map<std::string, int64_t, std::less<>> counts_;
  std::deque<Issued> issued_;
  std::string why_aborted_;
};

}  // namespace strata
