#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "base/result.h"
#include "passes/placement/costs/collective_cost.h"
#include "passes/placement/costs/topology.h"
#include "passes/placement/mesh.h"

namespace strata {

class DeviceCollectives;

using ByteSpan = std::span<const std::byte>;

/// What a rank brings to an exchange with the members of a group.
struct Offer {
  /// `all_reduce(f32[64, 32], sum)`; members bring equal calls.
  std::string call;
  std::string node = {};        ///< that calls (RunningPlan); for messages
  std::vector<ByteSpan> parts;  ///< what each member reads; readable until `Leave`
  at::Tensor memory;            ///< of the parts
  std::vector<size_t> expects;  ///< bytes that each member gives to this rank
  /// Where what the members give may be written, one after the other; null: nowhere.
  std::byte* target = nullptr;
};

/// A group of ranks as one of its members sees it. All members call the same functions in the same
/// order, each from one thread at a time.
class RankGroup {
 public:
  RankGroup(std::string name, std::vector<int64_t> ranks, size_t index)
      : name_(std::move(name)), ranks_(std::move(ranks)), index_(index) {}
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  virtual ~RankGroup() = default;

  const std::string& name() const { return name_; }  ///< `fsdp`, `dp_replicate+fsdp`
  const std::vector<int64_t>& ranks() const { return ranks_; }
  size_t size() const { return ranks_.size(); }
  size_t index() const { return index_; }  ///< of the member

  /// Waits for all members; returns what each gives to this one, readable until the next call, at
  /// `target` or elsewhere. Throws (c10::Error) when members bring different calls or give another
  /// number of bytes than expected, when a rank failed, and when a member does not come in time.
  virtual std::vector<ByteSpan> Exchange(Offer offer) = 0;
  /// Ends the exchanges of a collective: no member reads parts of them any more. Throws as
  /// `Exchange`.
  virtual void Leave() = 0;

 private:
  std::string name_;
  std::vector<int64_t> ranks_;
  size_t index_;
};

/// The ranks of a run, as far as this process has them. Operators of `_c10d_functional` that the
/// thread of a rank calls communicate with the other ranks (runtime/ranks/collectives.h).
class RankTeam {
 public:
  using Work = std::function<Status(int64_t rank)>;

  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;
  virtual ~RankTeam() = default;

  const Mesh& mesh() const { return mesh_; }
  int64_t size() const { return mesh_.num_ranks(); }
  /// The ranks that this process has, ascending.
  virtual std::vector<int64_t> local_ranks() const = 0;
  /// How long a rank waits for another in a collective. REQUIRES: no work is running.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;
  /// From now on collectives take the time of this network longer, so that ranks of one machine
  /// wait as those of several would. They sleep meanwhile: computation has the cores. REQUIRES: no
  /// work is running.
  void SimulateNetwork(Topology topology) { simulated_ = std::move(topology); }

  /// Calls `work(rank)` on the thread of each rank of this process and returns when all calls have
  /// returned. When one fails, the ranks that wait for it fail, too. The error is that of the first
  /// rank that failed by itself; after it the team is of no use. REQUIRES: called by one thread at
  /// a time, none of them a rank's.
  virtual Status Run(const Work& work) = 0;
  /// Null: ranks compute on the CPU.
  virtual DeviceCollectives* device() { return nullptr; }
  /// Reports to ranks of other processes why those of this one stop outside of `Run`.
  virtual void ReportFailure(const Error& error) { (void)error; }

  /// The rank of the calling thread; -1 outside of `Run`.
  static int64_t CurrentRank();
  /// Of the calling thread's rank. Throws c10::Error: outside of `Run`, or no such group.
  static RankGroup& CurrentGroup(std::string_view group);
  /// The group of all ranks. Throws as `CurrentGroup`.
  static RankGroup& CurrentWorld();

  /// From the calling thread's rank to another, and back; see Mailboxes. `Receive` throws
  /// (c10::Error) when a rank failed, or nothing came in time. REQUIRES: inside of `Run`.
  static void Send(int64_t to, const std::string& key, std::vector<at::Tensor> tensors);
  static std::vector<at::Tensor> Receive(int64_t from, const std::string& key);

  /// What a collective moves, for SimulateNetwork.
  struct Traffic {
    CollectiveOp op;
    int64_t bytes;  ///< as CollectiveUs counts them
    std::string_view group;
  };
  /// Does the rest of a collective whose result is `result`: at once, or while an AsyncCollectives
  /// lives on the thread that the rank has for that.
  static void Launch(const at::Tensor& result, const Traffic& traffic, std::function<void()> rest);
  /// Until what was launched for the memory of `result` is done. Throws what it threw.
  static void Wait(const at::Tensor& result);

  /// Collectives of the device that holds `tensor`, if the calling thread's rank has one; null: of
  /// the CPU, whose tensors groups exchange.
  static DeviceCollectives* DeviceOf(const at::Tensor& tensor);
  /// Where the calling thread's rank computes.
  static c10::Device CurrentPlace();

  /// The rank's coordinate on an axis, or its place in a group. Throws as `CurrentGroup`.
  static int64_t CurrentIndex(std::string_view group);

 protected:
  explicit RankTeam(Mesh mesh);

  /// From now on the calling thread is that of `rank`; -1: of no rank.
  void BindThread(int64_t rank);
  /// What `work(rank)` returns, or throws as an error.
  static Status Call(const Work& work, int64_t rank);

 private:
  /// `Send` and `Receive` of a rank of this process.
  virtual void SendFrom(int64_t rank, int64_t to, const std::string& key,
                        std::vector<at::Tensor> tensors) = 0;
  virtual std::vector<at::Tensor> ReceiveAt(int64_t rank, int64_t from, const std::string& key) = 0;
  /// The group `name` of `ranks`, as their member `index` sees it; lives as long as the team.
  /// Called once for each name by the thread of a rank.
  virtual RankGroup& JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) = 0;

  /// In the simulated network; 0: there is none.
  std::chrono::duration<double, std::micro> TimeOf(const Traffic& traffic) const;

  Mesh mesh_;
  std::optional<Topology> simulated_;
};

/// During its lifetime, collectives that the calling thread launches run beside it, one after the
/// other, until it waits for them. What they read and write must stay as it is until then
/// (runtime/plan/in_flight.h). The destructor waits for those that are left.
class AsyncCollectives {
 public:
  explicit AsyncCollectives(bool enabled);
  AsyncCollectives(const AsyncCollectives&) = delete;
  AsyncCollectives& operator=(const AsyncCollectives&) = delete;
  ~AsyncCollectives();

 private:
  bool enabled_;
};

}  // namespace strata
