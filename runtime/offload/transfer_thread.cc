#include "runtime/offload/transfer_thread.h"

#include <cstring>

namespace strata {

TransferThread::TransferThread() : thread_([this] { Work(); }) {}

TransferThread::~TransferThread() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  started_.notify_one();
  thread_.join();
}

TransferThread::Ticket TransferThread::Start(void* to, const void* from, size_t bytes) {
  Ticket ticket = 0;
  {
    const std::scoped_lock lock(mutex_);
    open_.push_back({.to = to, .from = from, .bytes = bytes});
    ticket = ++last_started_;
  }
  started_.notify_one();
  return ticket;
}

void TransferThread::Wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [&] { return last_completed_ >= ticket; });
}

void TransferThread::WaitForAll() {
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [&] { return last_completed_ == last_started_; });
}

void TransferThread::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    started_.wait(lock, [&] { return is_ending_ || !open_.empty(); });
    if (open_.empty()) return;
    const Copy copy = open_.front();
    open_.pop_front();
    lock.unlock();
    std::memcpy(copy.to, copy.from, copy.bytes);
    lock.lock();
    ++last_completed_;
    completed_.notify_all();
  }
}

}  // namespace strata
