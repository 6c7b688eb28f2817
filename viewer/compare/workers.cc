#include "viewer/compare/workers.h"

#include <algorithm>
#include <utility>

namespace strata::viewer {

Workers::Workers(std::function<void()> wake, int threads)
    : wake_(std::move(wake)), most_ahead_(static_cast<size_t>(std::max(1, threads - 1))) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    for (auto& [slot, current] : current_)
      *current.outdated = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

void Workers::Post(const std::string& slot, Job job) {
  Add(slot, std::move(job), false);
}

void Workers::PostAhead(const std::string& slot, Job job) {
  Add(slot, std::move(job), true);
}

void Workers::Dispose(std::shared_ptr<const void> object) {
  if (object == nullptr) return;
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back({"",
                        std::make_shared<std::atomic<bool>>(true),
                        [object = std::move(object)](const Outdated&) { return Deliver(); },
                        {},
                        true});
  }
  ready_.notify_one();
}

void Workers::Add(const std::string& slot, Job job, bool ahead) {
  auto outdated = std::make_shared<std::atomic<bool>>(false);
  {
    const std::scoped_lock lock(mutex_);
    Current& current = current_[slot];
    if (current.outdated) *current.outdated = true;
    current = {outdated, ahead};
    std::erase_if(waiting_, [&](const Task& task) { return task.slot == slot; });
    waiting_.push_back({slot, std::move(outdated), std::move(job), {}, ahead});
  }
  ready_.notify_one();
}

void Workers::Cancel(const std::string& slot) {
  const std::scoped_lock lock(mutex_);
  const auto found = current_.find(slot);
  if (found == current_.end()) return;
  *found->second.outdated = true;
  current_.erase(found);
  std::erase_if(waiting_, [&](const Task& task) { return task.slot == slot; });
}

bool Workers::Poll() {
  std::deque<Task> done;
  {
    const std::scoped_lock lock(mutex_);
    done.swap(done_);
  }
  bool delivered = false;
  for (Task& task : done) {
    {
      const std::scoped_lock lock(mutex_);
      if (*task.outdated) continue;
      current_.erase(task.slot);
    }
    if (!task.deliver) continue;
    task.deliver();
    delivered = true;
  }
  // A comparison that nothing else holds takes long to destroy.
  if (!done.empty()) Dispose(std::make_shared<const std::deque<Task>>(std::move(done)));
  return delivered;
}

bool Workers::busy() const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(current_, [](const auto& entry) { return !entry.second.ahead; });
}

bool Workers::busy(const std::string& slot) const {
  const std::scoped_lock lock(mutex_);
  return current_.contains(slot);
}

std::deque<Workers::Task>::iterator Workers::Next() {
  return std::ranges::find_if(
      waiting_, [&](const Task& task) { return !task.ahead || running_ahead_ < most_ahead_; });
}

void Workers::Run() {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return ending_ || Next() != waiting_.end(); });
      if (ending_) return;
      const auto next = Next();
      task = std::move(*next);
      waiting_.erase(next);
      if (task.ahead) ++running_ahead_;
    }
    task.deliver = task.job(Outdated(task.outdated));
    task.job = {};
    {
      const std::scoped_lock lock(mutex_);
      if (task.ahead) --running_ahead_;
      if (*task.outdated) continue;
      done_.push_back(std::move(task));
    }
    wake_();
  }
}

}  // namespace strata::viewer
