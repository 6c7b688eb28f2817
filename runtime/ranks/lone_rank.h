#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/ranks/rank_team.h"

namespace strata {

/// Rank 0 of a mesh, without the others: the calling thread's, during the lifetime. It binds plans
/// and computes what needs no other rank, such as its place on an axis. Collectives and messages
/// throw (c10::Error).
///
/// REQUIRES: the thread has no rank.
class LoneRank final : public RankTeam {
 public:
  explicit LoneRank(Mesh mesh);
  ~LoneRank() override;

  std::vector<int64_t> local_ranks() const override { return {0}; }
  void set_timeout(std::chrono::milliseconds /*timeout*/) override {}
  Status Run(const Work& work) override { return Call(work, 0); }

 private:
  class Member;
  void SendFrom(int64_t rank, int64_t to, const std::string& key,
                std::vector<at::Tensor> tensors) override;
  std::vector<at::Tensor> ReceiveAt(int64_t rank, int64_t from, const std::string& key) override;
  RankGroup& JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) override;

  std::vector<std::unique_ptr<RankGroup>> groups_;
};

}  // namespace strata
