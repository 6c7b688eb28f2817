#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "passes/placement/mesh.h"
#include "runtime/ranks/point_to_point.h"

namespace strata {

/// What a rank brings to a collective.
struct Contribution {
  /// `all_reduce(f32[64, 32], sum) over fsdp`; members of a group bring equal calls.
  std::string call;
  std::string node = {};        ///< that calls; set by `Meeting::Enter`
  at::Tensor tensor;            ///< contiguous; others read it until all have left
  at::Tensor result;            ///< others read parts of it after `Meeting::Continue`
  std::vector<int64_t> splits;  ///< rows for each rank of the group; empty: equal parts
};

class RankTeam;

/// Where the ranks of one group meet. Each member calls the same functions in the same order.
class Meeting {
 public:
  Meeting(RankTeam& team, std::vector<int64_t> ranks, std::string group);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  size_t size() const { return ranks_.size(); }

  /// Waits for all members. Throws (c10::Error) when they bring different calls, when one of the
  /// team failed, and when one does not come in time.
  void Enter(size_t index, Contribution mine);
  /// What a member brought. REQUIRES: entered.
  const Contribution& Of(size_t index) const { return *contributions_[index]; }
  /// Waits until all members are here: what they wrote since `Enter` can be read. Throws as
  /// `Enter`.
  void Continue(size_t index);
  /// The same; then no member reads what the others brought.
  void Leave(size_t index);

 private:
  friend class RankTeam;
  struct Barrier;
  void Wait(size_t index);
  void CheckCalls(size_t index) const;
  [[noreturn]] void FailLate(size_t index) const;

  RankTeam& team_;
  std::vector<int64_t> ranks_;
  std::string group_;
  /// Kept when their rank fails: others may be reading.
  std::vector<std::optional<Contribution>> contributions_;
  std::unique_ptr<Barrier> barrier_;
};

/// The group that an operator of this thread's rank names.
struct GroupMember {
  Meeting* meeting = nullptr;
  size_t index = 0;  ///< of the rank in the group
};

/// The ranks of a run as threads of this process. Every rank has a thread of its own, which keeps
/// what operators keep per thread from one piece of work to the next. Operators of
/// `_c10d_functional` that a rank's thread calls communicate with the other ranks
/// (runtime/ranks/collectives.h).
class RankTeam {
 public:
  struct Options {
    /// How long a rank waits for another in a collective.
    std::chrono::milliseconds timeout = std::chrono::seconds(300);
    int threads = 1;  ///< inside operators, of each rank
  };
  using Work = std::function<Status(int64_t rank)>;

  RankTeam(Mesh mesh, const Options& options);
  explicit RankTeam(Mesh mesh) : RankTeam(std::move(mesh), Options()) {}
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  const Mesh& mesh() const { return mesh_; }
  /// REQUIRES: no work is running.
  void set_timeout(std::chrono::milliseconds timeout) { options_.timeout = timeout; }
  int64_t size() const { return mesh_.num_ranks(); }

  /// Calls `work(rank)` on each rank's thread and returns when all calls have returned. When one
  /// fails, the others fail in their next collective. The error is that of the first rank that
  /// failed by itself, `rank 1: …`; after it the team is of no use. REQUIRES: called by one thread
  /// at a time, none of them a rank's.
  Status Run(const Work& work);

  /// The rank of the calling thread; -1 outside of `Run`.
  static int64_t CurrentRank();
  /// Of the calling thread's rank. Throws c10::Error: outside of `Run`, or no such group.
  static GroupMember CurrentGroup(std::string_view group);
  /// From the calling thread's rank to another, and back; see Mailboxes. `Receive` throws
  /// (c10::Error) when a rank failed, or nothing came in time. REQUIRES: inside of `Run`.
  static void Send(int64_t to, const std::string& key, std::vector<at::Tensor> tensors);
  static std::vector<at::Tensor> Receive(int64_t from, const std::string& key);

  /// The rank's coordinate on an axis, or its place in a group. Throws as `CurrentGroup`.
  static int64_t CurrentIndex(std::string_view group);

 private:
  friend class Meeting;
  struct Threads;
  void WorkLoop(int64_t rank);
  void Fail();
  Meeting& MeetingOf(std::string_view group, const std::vector<int64_t>& ranks);

  Mesh mesh_;
  Options options_;
  Mailboxes mailboxes_;
  std::unique_ptr<Threads> threads_;
};

}  // namespace strata
