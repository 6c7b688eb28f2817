#include "runtime/ranks/thread_team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/aten/generator.h"
#include "runtime/aten/threads.h"

namespace strata {
namespace {

/// How often a rank looks for the others before it sleeps: longer than they take to arrive when all
/// have a core, shorter than what a sleep costs.
constexpr int kLooks = 4000;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct ThreadTeam::Threads {
  std::mutex mutex;
  std::condition_variable has_work, is_done;
  const Work* work = nullptr;
  uint64_t round = 0;
  int64_t running = 0;
  bool ends = false;
  bool has_cores = false;  // one for each rank
  std::atomic<bool> has_failed = false;
  std::vector<std::atomic<bool>> was_ended;  // by rank: by another rank's failure
  std::vector<std::optional<Error>> errors;  // by rank: of those that failed by themselves
  std::mutex meetings_mutex;
  std::map<std::vector<int64_t>, std::unique_ptr<Meeting>> meetings;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<std::thread> threads;
};

// --- Groups --------------------------------------------------------------------------------------

/// Where the ranks of one group meet.
class ThreadTeam::Meeting {
 public:
  Meeting(ThreadTeam& team, std::vector<int64_t> ranks)
      : team_(team), ranks_(std::move(ranks)), members_(ranks_.size()), missing_(ranks_.size()) {}

  /// Waits for all members. Members post to alternating places: who reads an offer has left it when
  /// its owner posts the next but one.
  void Post(size_t index, Offer offer) {
    Member& member = members_[index];
    member.offers[member.posts++ % 2] = std::move(offer);
    Wait(index);
  }
  /// What a member posted when `index` did so last.
  const Offer& Of(size_t member, size_t index) const {
    return members_[member].offers[(members_[index].posts - 1) % 2];
  }
  void Wait(size_t index);
  /// Waits until no member reads what others posted.
  void Leave(size_t index) {
    Wait(index);
    members_[index].offers = {};
  }
  /// Ends the waits of all members.
  void WakeAll() {
    // A rank that saw no failure under the lock is waiting by now.
    {
      const std::lock_guard lock(mutex_);
    }
    all_here_.notify_all();
  }

 private:
  struct Member {
    std::array<Offer, 2> offers;
    uint64_t posts = 0;
    uint64_t rounds = 0;  // how often it came
  };
  [[noreturn]] void FailLate(size_t index) const;

  ThreadTeam& team_;
  std::vector<int64_t> ranks_;
  std::vector<Member> members_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::atomic<uint64_t> round_ = 0;
  size_t missing_;
};

void ThreadTeam::Meeting::Wait(size_t index) {
  Threads& threads = *team_.threads_;
  std::unique_lock lock(mutex_);
  const uint64_t round = round_.load(std::memory_order_relaxed);
  ++members_[index].rounds;
  if (--missing_ == 0) {
    missing_ = ranks_.size();
    round_.store(round + 1, std::memory_order_release);
    lock.unlock();
    all_here_.notify_all();
    return;
  }
  lock.unlock();
  const auto is_over = [&] { return round_.load(std::memory_order_acquire) != round; };
  // A thread that computes beside this one needs the core, and so do ranks that wait for one.
  const int looks = CurrentRank() < 0 || !threads.has_cores ? 0 : kLooks;
  for (int look = 0; look < looks; ++look) {
    if (is_over()) return;
    Relax();
  }
  lock.lock();
  const bool came = all_here_.wait_for(lock, team_.options_.timeout,
                                       [&] { return is_over() || threads.has_failed.load(); });
  if (is_over()) return;
  if (came) threads.was_ended[static_cast<size_t>(ranks_[index])] = true;
  TORCH_CHECK(!came, "another rank failed");
  FailLate(index);
}

/// REQUIRES: the mutex is locked.
void ThreadTeam::Meeting::FailLate(size_t index) const {
  std::vector<std::string> late;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (members_[i].rounds < members_[index].rounds) late.push_back(std::to_string(ranks_[i]));
  }
  const double seconds = std::chrono::duration<double>(team_.options_.timeout).count();
  TORCH_CHECK(false, fmt::format("waited {} s in {} for rank{} {}", seconds, Of(index, index).call,
                                 late.size() == 1 ? "" : "s", fmt::join(late, ", ")));
}

/// One rank's view of a meeting.
class ThreadTeam::Member final : public RankGroup {
 public:
  Member(Meeting& meeting, std::string name, std::vector<int64_t> ranks, size_t index)
      : RankGroup(std::move(name), std::move(ranks), index), meeting_(meeting) {}

  std::vector<ByteSpan> Exchange(Offer offer) override {
    offer.call += fmt::format(" over {}", name());
    meeting_.Post(index(), std::move(offer));
    CheckCalls();
    const Offer& mine = meeting_.Of(index(), index());
    std::vector<ByteSpan> received;
    for (size_t i = 0; i < size(); ++i) {
      received.push_back(meeting_.Of(i, index()).parts[index()]);
      TORCH_CHECK(received[i].size() == mine.expects[i], mine.call, ": rank ", ranks()[i],
                  " gives ", received[i].size(), " bytes, ", mine.expects[i], " are expected");
    }
    return received;
  }

  void Leave() override { meeting_.Leave(index()); }

 private:
  void CheckCalls() const {
    const auto call = [&](size_t i) -> const std::string& { return meeting_.Of(i, index()).call; };
    const auto describe = [&](size_t i) {
      const std::string& node = meeting_.Of(i, index()).node;
      return fmt::format("rank {} {}{}{}", ranks()[i], call(i), node.empty() ? "" : " in ", node);
    };
    for (size_t i = 0; i < size(); ++i) {
      if (call(i) == call(index())) continue;
      TORCH_CHECK(false, "ranks call different collectives: ", describe(std::min(i, index())), "; ",
                  describe(std::max(i, index())));
    }
  }

  Meeting& meeting_;
};

// --- Threads -------------------------------------------------------------------------------------

ThreadTeam::ThreadTeam(Mesh mesh, const Options& options)
    : RankTeam(std::move(mesh)), options_(options), threads_(std::make_unique<Threads>()) {
  const auto count = static_cast<size_t>(size());
  threads_->errors.resize(count);
  threads_->has_cores = size() <= PhysicalCores();
  threads_->was_ended = std::vector<std::atomic<bool>>(count);
  for (const int64_t rank : local_ranks())
    threads_->threads.emplace_back([this, rank] { WorkLoop(rank); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(threads_->mutex);
    threads_->ends = true;
  }
  threads_->has_work.notify_all();
  for (std::thread& thread : threads_->threads)
    thread.join();
}

std::vector<int64_t> ThreadTeam::local_ranks() const {
  std::vector<int64_t> ranks(static_cast<size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Status ThreadTeam::Run(const Work& work) {
  STRATA_CHECK(CurrentRank() < 0, "a rank cannot give work to all ranks");
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

void ThreadTeam::WorkLoop(int64_t rank) {
  BindThread(rank);
  SetThreads(options_.threads);
  UseOwnGenerator();
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
    const auto index = static_cast<size_t>(rank);
    if (!status && !threads.was_ended[index]) threads.errors[index] = std::move(status).error();
    if (--threads.running == 0) threads.is_done.notify_all();
  }
}

/// Ends the waits of all ranks.
void ThreadTeam::Fail() {
  threads_->has_failed = true;
  mailboxes_.Close();
  const std::lock_guard lock(threads_->meetings_mutex);
  for (const auto& [ranks, meeting] : threads_->meetings)
    meeting->WakeAll();
}

void ThreadTeam::SendFrom(int64_t rank, int64_t to, const std::string& key,
                          std::vector<at::Tensor> tensors) {
  mailboxes_.Send(rank, to, key, std::move(tensors));
}

std::vector<at::Tensor> ThreadTeam::ReceiveAt(int64_t rank, int64_t from, const std::string& key) {
  auto received = mailboxes_.Receive(from, rank, key, options_.timeout);
  if (received) return *std::move(received);
  const bool is_ended = mailboxes_.is_closed();
  if (is_ended) threads_->was_ended[static_cast<size_t>(rank)] = true;
  TORCH_CHECK(!is_ended, "another rank failed");
  const double seconds = std::chrono::duration<double>(options_.timeout).count();
  TORCH_CHECK(false, fmt::format("waited {} s for {} of rank {}", seconds, key, from));
}

RankGroup& ThreadTeam::JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) {
  const std::lock_guard lock(threads_->meetings_mutex);
  std::unique_ptr<Meeting>& meeting = threads_->meetings[ranks];
  if (!meeting) meeting = std::make_unique<Meeting>(*this, ranks);
  return *threads_->members.emplace_back(
      std::make_unique<Member>(*meeting, std::move(name), std::move(ranks), index));
}

}  // namespace strata
