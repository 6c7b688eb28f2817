#include "runtime/ranks/comm_thread.h"

#include <utility>

#include <c10/core/InferenceMode.h>

#include "runtime/aten/threads.h"

namespace strata {

CommThread::CommThread(int threads) : thread_([this, threads] { Loop(threads); }) {}

CommThread::~CommThread() {
  Drain();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommThread::Loop(int threads) {
  const c10::InferenceMode no_autograd;
  SetThreads(threads);
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || (!queue_.empty() && !is_running_); });
    if (ends_) return;
    RunNext(lock);
  }
}

/// REQUIRES: the queue is not empty, nothing is running.
void CommThread::RunNext(Lock& lock) {
  const Work work = std::move(queue_.front());
  queue_.pop_front();
  if (!thrown_) {
    is_running_ = true;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    is_running_ = false;
    thrown_ = thrown;
  }
  ++done_;
  changed_.notify_all();
}

void CommThread::Launch(const void* result, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
    queue_.push_back(std::move(work));
    tickets_[result] = ++launched_;
  }
  changed_.notify_all();
}

void CommThread::WaitFor(uint64_t ticket) {
  Lock lock(mutex_);
  while (done_ < ticket) {
    if (!queue_.empty() && !is_running_) {
      RunNext(lock);
    } else {
      changed_.wait(lock);
    }
  }
  if (thrown_) std::rethrow_exception(thrown_);
}

void CommThread::Wait(const void* result) {
  const auto found = tickets_.find(result);
  if (found == tickets_.end()) return;
  const uint64_t ticket = found->second;
  tickets_.erase(found);
  WaitFor(ticket);
}

void CommThread::WaitForAll() {
  tickets_.clear();
  WaitFor(launched_);
}

void CommThread::Drain() noexcept {
  try {
    WaitForAll();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    thrown_ = nullptr;
  }
}

}  // namespace strata
