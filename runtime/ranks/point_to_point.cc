#include "runtime/ranks/point_to_point.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace strata {

struct Mailboxes::State {
  using Key = std::tuple<int64_t, int64_t, std::string>;  // from, to, key
  std::mutex mutex;
  std::condition_variable has_news;
  std::map<Key, std::deque<std::vector<at::Tensor>>> boxes;
  bool is_closed = false;
};

Mailboxes::Mailboxes() : state_(std::make_unique<State>()) {}
Mailboxes::~Mailboxes() = default;

void Mailboxes::Send(int64_t from, int64_t to, const std::string& key,
                     std::vector<at::Tensor> tensors) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->boxes[{from, to, key}].push_back(std::move(tensors));
  }
  state_->has_news.notify_all();
}

std::optional<std::vector<at::Tensor>> Mailboxes::Receive(int64_t from, int64_t to,
                                                          const std::string& key,
                                                          std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  const State::Key box = {from, to, key};
  state_->has_news.wait_for(lock, timeout,
                            [&] { return state_->is_closed || state_->boxes.contains(box); });
  const auto found = state_->boxes.find(box);
  if (state_->is_closed || found == state_->boxes.end()) return std::nullopt;
  std::vector<at::Tensor> tensors = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) state_->boxes.erase(found);
  return tensors;
}

void Mailboxes::Close() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
  }
  state_->has_news.notify_all();
}

bool Mailboxes::is_closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_closed;
}

}  // namespace strata
