#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace strata::viewer {

/// Whether a job is outdated: a newer job took its slot. A job asks between its steps and returns
/// early.
class Outdated {
 public:
  explicit Outdated(std::shared_ptr<const std::atomic<bool>> flag) : flag_(std::move(flag)) {}
  explicit operator bool() const { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<const std::atomic<bool>> flag_;
};

/// Threads for work that may take longer than a frame: loading, comparing, layout, search. Each job
/// has a slot; a new job makes the earlier one of its slot outdated. What a job returns runs on the
/// thread that calls Poll, unless the job is outdated by then.
class Workers {
 public:
  using Deliver = std::function<void()>;
  using Job = std::function<Deliver(const Outdated&)>;

  /// `wake` is called from a worker when Poll has something to deliver.
  explicit Workers(std::function<void()> wake, int threads = 3);
  /// Waits for jobs that run; nothing is delivered any more.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Post(const std::string& slot, Job job);
  /// As Post, a job that the user does not wait for: busy() leaves it out. One thread is kept free
  /// of such jobs, also of those that are outdated and still running.
  void PostAhead(const std::string& slot, Job job);
  /// Releases what takes long to destroy, on a worker.
  void Dispose(std::shared_ptr<const void> object);
  /// Makes the job of `slot` outdated, if there is one.
  void Cancel(const std::string& slot);

  /// Delivers what has finished. True when something was delivered.
  bool Poll();
  /// A job is waiting, running or not delivered yet; those of PostAhead are left out.
  bool busy() const;
  /// The same of one slot.
  bool busy(const std::string& slot) const;

 private:
  struct Task {
    std::string slot;
    std::shared_ptr<std::atomic<bool>> outdated;
    Job job;
    Deliver deliver;
    bool ahead = false;
  };
  struct Current {
    std::shared_ptr<std::atomic<bool>> outdated;
    bool ahead = false;
  };
  void Add(const std::string& slot, Job job, bool ahead);
  /// The first of waiting_ that may run; end(): none.
  std::deque<Task>::iterator Next();
  void Run();

  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Task> waiting_, done_;
  std::map<std::string, Current> current_;  // by slot
  size_t running_ahead_ = 0, most_ahead_ = 1;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strata::viewer
