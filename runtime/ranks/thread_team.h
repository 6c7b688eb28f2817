#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/ranks/point_to_point.h"
#include "runtime/ranks/rank_team.h"

namespace strata {

/// The ranks of a run as threads of this process. Every rank has a thread of its own, which keeps
/// what operators keep per thread from one piece of work to the next. Ranks read what others give
/// where it is.
class ThreadTeam final : public RankTeam {
 public:
  struct Options {
    std::chrono::milliseconds timeout = std::chrono::seconds(300);
    int threads = 1;  ///< inside operators, of each rank
  };

  ThreadTeam(Mesh mesh, const Options& options);
  explicit ThreadTeam(Mesh mesh) : ThreadTeam(std::move(mesh), Options()) {}
  ~ThreadTeam() override;

  std::vector<int64_t> local_ranks() const override;
  void set_timeout(std::chrono::milliseconds timeout) override { options_.timeout = timeout; }
  /// The error is `rank 1: …`.
  Status Run(const Work& work) override;

 private:
  class Meeting;
  class Member;
  struct Threads;
  void SendFrom(int64_t rank, int64_t to, const std::string& key,
                std::vector<at::Tensor> tensors) override;
  std::vector<at::Tensor> ReceiveAt(int64_t rank, int64_t from, const std::string& key) override;
  RankGroup& JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) override;
  void WorkLoop(int64_t rank);
  void Fail();

  Options options_;
  Mailboxes mailboxes_;
  std::unique_ptr<Threads> threads_;
};

}  // namespace strata
