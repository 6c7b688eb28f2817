#include "runtime/ranks/rank_team.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/aten/threads.h"
#include "runtime/exec/step/running_step.h"
#include "runtime/ranks/collectives.h"

namespace strata {
namespace {

/// What `work` returns, or throws.
Status Call(const RankTeam::Work& work, int64_t rank) {
  try {
    return work(rank);
  } catch (const c10::Error& failure) {
    return Error(ErrorCode::kInternal, "{}", failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    return Error(ErrorCode::kInternal, "{}", failure.what());
  }
}

/// How often a rank looks for the others before it sleeps: longer than they take to arrive when all
/// have a core, shorter than what a sleep costs.
constexpr int kLooks = 4000;

struct CurrentThread {
  RankTeam* team = nullptr;
  int64_t rank = -1;
  bool was_ended = false;  ///< by another rank's failure
  /// By the names that operators gave: a look-up per collective, and no lock.
  std::map<std::string, GroupMember, std::less<>> groups;
};
thread_local CurrentThread current;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct Meeting::Barrier {
  std::mutex mutex;
  std::condition_variable all_here;
  std::atomic<uint64_t> round = 0;
  size_t missing = 0;
  std::vector<uint64_t> rounds;  // by member: how often it came
};

struct RankTeam::Threads {
  std::mutex mutex;
  std::condition_variable has_work, is_done;
  const Work* work = nullptr;
  uint64_t round = 0;
  int64_t running = 0;
  bool ends = false;
  std::atomic<bool> has_failed = false;
  std::vector<std::optional<Error>> errors;  // by rank: of those that failed by themselves
  std::mutex meetings_mutex;
  std::map<std::vector<int64_t>, std::unique_ptr<Meeting>> meetings;
  std::vector<std::thread> threads;
};

// --- Meeting -------------------------------------------------------------------------------------

Meeting::Meeting(RankTeam& team, std::vector<int64_t> ranks, std::string group)
    : team_(team),
      ranks_(std::move(ranks)),
      group_(std::move(group)),
      contributions_(ranks_.size()),
      barrier_(std::make_unique<Barrier>()) {
  barrier_->missing = ranks_.size();
  barrier_->rounds.resize(ranks_.size());
}

Meeting::~Meeting() = default;

void Meeting::Enter(size_t index, Contribution mine) {
  mine.node = RunningPlan::CurrentNode();
  contributions_[index] = std::move(mine);
  Wait(index);
  CheckCalls(index);
}

void Meeting::Continue(size_t index) {
  Wait(index);
}

void Meeting::Leave(size_t index) {
  Wait(index);
  contributions_[index].reset();
}

void Meeting::Wait(size_t index) {
  Barrier& barrier = *barrier_;
  const std::atomic<bool>& has_failed = team_.threads_->has_failed;
  std::unique_lock lock(barrier.mutex);
  const uint64_t round = barrier.round.load(std::memory_order_relaxed);
  ++barrier.rounds[index];
  if (--barrier.missing == 0) {
    barrier.missing = ranks_.size();
    barrier.round.store(round + 1, std::memory_order_release);
    lock.unlock();
    barrier.all_here.notify_all();
    return;
  }
  lock.unlock();
  const auto is_over = [&] { return barrier.round.load(std::memory_order_acquire) != round; };
  for (int look = 0; look < kLooks; ++look) {
    if (is_over()) return;
    Relax();
  }
  lock.lock();
  const bool came = barrier.all_here.wait_for(lock, team_.options_.timeout,
                                              [&] { return is_over() || has_failed.load(); });
  if (is_over()) return;
  current.was_ended = came;
  TORCH_CHECK(!came, "another rank failed");
  FailLate(index);
}

/// REQUIRES: the barrier is locked.
void Meeting::FailLate(size_t index) const {
  std::vector<std::string> late;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (barrier_->rounds[i] < barrier_->rounds[index]) late.push_back(std::to_string(ranks_[i]));
  }
  const double seconds = std::chrono::duration<double>(team_.options_.timeout).count();
  TORCH_CHECK(false,
              fmt::format("waited {} s in {} for rank{} {}", seconds, contributions_[index]->call,
                          late.size() == 1 ? "" : "s", fmt::join(late, ", ")));
}

void Meeting::CheckCalls(size_t index) const {
  const auto describe = [&](size_t i) {
    const Contribution& of = *contributions_[i];
    return fmt::format("rank {} {}{}{}", ranks_[i], of.call, of.node.empty() ? "" : " in ",
                       of.node);
  };
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (contributions_[i]->call == contributions_[index]->call) continue;
    TORCH_CHECK(false, "ranks call different collectives: ", describe(std::min(i, index)), "; ",
                describe(std::max(i, index)));
  }
}

// --- RankTeam ------------------------------------------------------------------------------------

RankTeam::RankTeam(Mesh mesh, const Options& options)
    : mesh_(std::move(mesh)), options_(options), threads_(std::make_unique<Threads>()) {
  RegisterCollectives();
  const auto count = static_cast<size_t>(mesh_.num_ranks());
  threads_->errors.resize(count);
  for (size_t rank = 0; rank < count; ++rank)
    threads_->threads.emplace_back([this, rank] { WorkLoop(static_cast<int64_t>(rank)); });
}

RankTeam::~RankTeam() {
  {
    const std::lock_guard lock(threads_->mutex);
    threads_->ends = true;
  }
  threads_->has_work.notify_all();
  for (std::thread& thread : threads_->threads)
    thread.join();
}

Status RankTeam::Run(const Work& work) {
  STRATA_CHECK(current.team == nullptr, "a rank cannot give work to all ranks");
  Threads& threads = *threads_;
  std::unique_lock lock(threads.mutex);
  threads.work = &work;
  threads.running = size();
  ++threads.round;
  threads.has_work.notify_all();
  threads.is_done.wait(lock, [&] { return threads.running == 0; });
  threads.work = nullptr;
  for (size_t rank = 0; rank < threads.errors.size(); ++rank) {
    if (threads.errors[rank]) return Error(*threads.errors[rank]).In(fmt::format("rank {}", rank));
  }
  if (threads.has_failed) return Error(ErrorCode::kInternal, "the ranks ended before");
  return Ok();
}

void RankTeam::WorkLoop(int64_t rank) {
  current = {.team = this, .rank = rank, .groups = {}};
  SetThreads(options_.threads);
  Threads& threads = *threads_;
  uint64_t done = 0;
  while (true) {
    const Work* work = nullptr;
    {
      std::unique_lock lock(threads.mutex);
      threads.has_work.wait(lock, [&] { return threads.ends || threads.round != done; });
      if (threads.ends) return;
      done = threads.round;
      work = threads.work;
    }
    Status status = Call(*work, rank);
    if (!status) Fail();
    const std::lock_guard lock(threads.mutex);
    if (!status && !current.was_ended)
      threads.errors[static_cast<size_t>(rank)] = std::move(status).error();
    if (--threads.running == 0) threads.is_done.notify_all();
  }
}

/// Ends the waits of all ranks.
void RankTeam::Fail() {
  threads_->has_failed = true;
  mailboxes_.Close();
  const std::lock_guard lock(threads_->meetings_mutex);
  for (const auto& [ranks, meeting] : threads_->meetings) {
    // A rank that saw no failure under the lock is waiting by now.
    {
      const std::lock_guard barrier(meeting->barrier_->mutex);
    }
    meeting->barrier_->all_here.notify_all();
  }
}

Meeting& RankTeam::MeetingOf(std::string_view group, const std::vector<int64_t>& ranks) {
  const std::lock_guard lock(threads_->meetings_mutex);
  std::unique_ptr<Meeting>& meeting = threads_->meetings[ranks];
  if (!meeting) meeting = std::make_unique<Meeting>(*this, ranks, std::string(group));
  return *meeting;
}

void RankTeam::Send(int64_t to, const std::string& key, std::vector<at::Tensor> tensors) {
  TORCH_CHECK(current.team != nullptr, "ranks send to each other in a training");
  current.team->mailboxes_.Send(current.rank, to, key, std::move(tensors));
}

std::vector<at::Tensor> RankTeam::Receive(int64_t from, const std::string& key) {
  TORCH_CHECK(current.team != nullptr, "ranks send to each other in a training");
  RankTeam& team = *current.team;
  auto received = team.mailboxes_.Receive(from, current.rank, key, team.options_.timeout);
  if (received) return *std::move(received);
  current.was_ended = team.mailboxes_.is_closed();
  TORCH_CHECK(!current.was_ended, "another rank failed");
  const double seconds = std::chrono::duration<double>(team.options_.timeout).count();
  TORCH_CHECK(false, fmt::format("waited {} s for {} of rank {}", seconds, key, from));
}

int64_t RankTeam::CurrentRank() {
  return current.rank;
}

GroupMember RankTeam::CurrentGroup(std::string_view group) {
  if (const auto known = current.groups.find(group); known != current.groups.end())
    return known->second;
  TORCH_CHECK(current.team != nullptr, "group '", group, "' has no ranks: they run in a training");
  RankTeam& team = *current.team;
  const auto ranks = team.mesh_.GroupOf(group, current.rank);
  TORCH_CHECK(ranks.has_value(), ranks ? "" : ranks.error().message());
  const auto mine = std::ranges::find(*ranks, current.rank);
  const GroupMember member = {.meeting = &team.MeetingOf(group, *ranks),
                              .index = static_cast<size_t>(mine - ranks->begin())};
  current.groups.emplace(std::string(group), member);
  return member;
}

int64_t RankTeam::CurrentIndex(std::string_view group) {
  return static_cast<int64_t>(CurrentGroup(group).index);
}

}  // namespace strata
