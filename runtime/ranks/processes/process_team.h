#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/comm/nccl_api.h"
#include "runtime/plan/device/device.h"
#include "runtime/ranks/processes/process_place.h"
#include "runtime/ranks/rank_team.h"

namespace strata {

/// The ranks of a run as processes, of which this one is one. Every two are connected (Gloo); an
/// exchange sends each member what it reads and nothing else, so that all_gather and reduce_scatter
/// move as many bytes as a ring does, and each rank adds what it received in the order of the
/// ranks: bitwise equal to ThreadTeam. A ring would add in another order for each part, and would
/// need no memory for what is received.
///
/// A rank that waits for another says so in the store, and one that fails says why: an error names
/// the rank that caused it, also where only others were connected to that rank.
class ProcessTeam final : public RankTeam {
 public:
  /// Waits until all processes are there, at most `timeout`, which is also how long a rank then
  /// waits for another. Errors: they do not come, a mesh of another number of ranks.
  static Result<std::unique_ptr<ProcessTeam>> Connect(Mesh mesh, const ProcessPlace& place,
                                                      std::chrono::milliseconds timeout);
  ~ProcessTeam() override;

  /// From now on collectives on tensors of `device` are those of NCCL. REQUIRES: both outlive this;
  /// no work is running.
  void UseDevice(Device& device, const NcclApi& nccl);
  DeviceCollectives* device() override;

  int64_t rank() const;
  std::vector<int64_t> local_ranks() const override { return {rank()}; }
  void set_timeout(std::chrono::milliseconds timeout) override;
  /// On the calling thread.
  Status Run(const Work& work) override;
  /// Says to the ranks that wait for this one why it stopped.
  void ReportFailure(const Error& error) override;

 private:
  class Member;
  struct State;
  explicit ProcessTeam(Mesh mesh, std::unique_ptr<State> state);
  void SendFrom(int64_t rank, int64_t to, const std::string& key,
                std::vector<at::Tensor> tensors) override;
  std::vector<at::Tensor> ReceiveAt(int64_t rank, int64_t from, const std::string& key) override;
  RankGroup& JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) override;

  std::unique_ptr<State> state_;
};

}  // namespace strata
