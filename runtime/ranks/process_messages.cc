#include "runtime/ranks/process_messages.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>

#include <fmt/format.h>

namespace strata {
namespace {

using at::Tensor;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Outcome = GlooLinks::Outcome;
using Transfer = GlooLinks::Transfer;

// Collectives have the tags below (process_team.cc).
constexpr uint32_t kHeadTag = 16, kBodyTag = 17;

/// What goes before the tensors of a message.
struct Head {
  std::array<char, 64> key = {};
  uint64_t bytes = 0;  ///< of the body
};

std::span<std::byte> BytesOf(Head& head) {
  return std::as_writable_bytes(std::span(&head, 1));
}

/// A body is its number of tensors, then for each one type, number of sizes (-1: undefined), sizes,
/// strides and elements as they lie in memory.
class BodyWriter {
 public:
  explicit BodyWriter(const std::vector<Tensor>& tensors) {
    Put(static_cast<int64_t>(tensors.size()));
    for (const Tensor& tensor : tensors)
      Put(tensor);
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  void Put(int64_t number) { Append(&number, sizeof number); }
  void Put(const Tensor& given) {
    if (!given.defined()) {
      Put(int64_t{0});
      Put(int64_t{-1});
      return;
    }
    const Tensor tensor = given.is_non_overlapping_and_dense() ? given : given.contiguous();
    Put(static_cast<int64_t>(tensor.scalar_type()));
    Put(tensor.dim());
    for (const int64_t size : tensor.sizes())
      Put(size);
    for (const int64_t stride : tensor.strides())
      Put(stride);
    Append(tensor.const_data_ptr(), tensor.nbytes());
  }
  void Append(const void* data, size_t size) {
    const auto* const begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  std::vector<std::byte> bytes_;
};

class BodyReader {
 public:
  explicit BodyReader(const std::vector<std::byte>& bytes) : bytes_(bytes) {}

  std::vector<Tensor> Tensors() {
    std::vector<Tensor> tensors(static_cast<size_t>(Number()));
    for (Tensor& tensor : tensors)
      tensor = Next();
    return tensors;
  }

 private:
  int64_t Number() {
    int64_t number = 0;
    Read(&number, sizeof number);
    return number;
  }
  Tensor Next() {
    const auto type = static_cast<at::ScalarType>(Number());
    const int64_t dims = Number();
    if (dims < 0) return {};
    std::vector<int64_t> sizes, strides;
    for (std::vector<int64_t>* list : {&sizes, &strides})
      for (int64_t dim = 0; dim < dims; ++dim)
        list->push_back(Number());
    Tensor tensor = at::empty_strided(sizes, strides, type);
    Read(tensor.mutable_data_ptr(), tensor.nbytes());
    return tensor;
  }
  void Read(void* to, size_t size) {
    TORCH_CHECK(size <= bytes_.size() - at_, "a message ends early");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  const std::vector<std::byte>& bytes_;
  size_t at_ = 0;
};

struct Message {
  Head head;
  std::vector<std::byte> body;
};

}  // namespace

// --- Sending -------------------------------------------------------------------------------------

class ProcessMessages::Outbox {
 public:
  Outbox(GlooLinks& links, int64_t to, const std::atomic<milliseconds>& timeout)
      : thread_([queue = queue_, &links, to, &timeout] { Move(*queue, links, to, timeout); }) {}
  ~Outbox() {
    std::unique_lock lock(queue_->mutex);
    queue_->ends = true;
    queue_->changed.notify_all();
    const bool is_done = queue_->changed.wait_for(lock, kPatience, [&] { return queue_->is_done; });
    queue_->messages.clear();
    lock.unlock();
    // After a failure no receiver takes what is left; the thread then touches the queue alone.
    if (is_done) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

  /// None: all is well.
  std::optional<Outcome> Put(Message message) {
    {
      const std::lock_guard lock(queue_->mutex);
      if (queue_->outcome != Outcome::kDone) return queue_->outcome;
      queue_->messages.push_back(std::move(message));
    }
    queue_->changed.notify_all();
    return std::nullopt;
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(2);

  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Message> messages;
    bool ends = false, is_done = false;
    Outcome outcome = Outcome::kDone;
  };

  static void Move(Queue& queue, GlooLinks& links, int64_t to,
                   const std::atomic<milliseconds>& timeout) {
    while (true) {
      Message message;
      {
        std::unique_lock lock(queue.mutex);
        queue.changed.wait(lock, [&] { return queue.ends || !queue.messages.empty(); });
        if (queue.messages.empty()) return End(queue, Outcome::kDone);
        message = std::move(queue.messages.front());
        queue.messages.pop_front();
      }
      const milliseconds patience = timeout.load();
      const auto head = links.Send(to, kHeadTag, BytesOf(message.head));
      const auto body = links.Send(to, kBodyTag, message.body);
      Outcome outcome = head->Wait(patience);
      if (outcome == Outcome::kDone) outcome = body->Wait(patience);
      if (outcome == Outcome::kDone) continue;
      const std::lock_guard lock(queue.mutex);
      return End(queue, outcome);
    }
  }
  /// REQUIRES: the queue is locked.
  static void End(Queue& queue, Outcome outcome) {
    queue.outcome = outcome;
    queue.messages.clear();
    queue.is_done = true;
    queue.changed.notify_all();
  }

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

ProcessMessages::ProcessMessages(GlooLinks& links, WaitWatch& watch, int64_t rank)
    : links_(links), watch_(watch), rank_(rank) {}

ProcessMessages::~ProcessMessages() = default;

void ProcessMessages::Send(int64_t to, const std::string& key, const std::vector<Tensor>& tensors) {
  std::unique_ptr<Outbox>& outbox = outboxes_[to];
  if (!outbox) outbox = std::make_unique<Outbox>(links_, to, timeout_);
  Message message;
  message.body = BodyWriter(tensors).Take();
  TORCH_CHECK(key.size() < message.head.key.size(), "the name of a message is too long: ", key);
  std::ranges::copy(key, message.head.key.begin());
  message.head.bytes = message.body.size();
  if (const auto failure = outbox->Put(std::move(message)))
    Fail(to, fmt::format("sending {}", key), *failure);
}

// --- Receiving -----------------------------------------------------------------------------------

std::vector<Tensor> ProcessMessages::Receive(int64_t from, const std::string& key) {
  const std::string where = fmt::format("receiving {}", key);
  const auto deadline = steady_clock::now() + timeout_.load();
  const auto wait = [&](Transfer& transfer) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    const Outcome outcome = transfer.Wait(left);
    if (outcome != Outcome::kDone) Fail(from, where, outcome);
  };
  while (true) {
    if (auto early = early_.extract({from, key})) return std::move(early.mapped());
    watch_.Begin(from, where);
    Head head;
    wait(*links_.Receive(from, kHeadTag, BytesOf(head)));
    std::vector<std::byte> body(head.bytes);
    wait(*links_.Receive(from, kBodyTag, body));
    watch_.End();
    early_.emplace(std::pair(from, std::string(head.key.data())), BodyReader(body).Tensors());
  }
}

void ProcessMessages::Fail(int64_t other, const std::string& where, Outcome outcome) {
  const std::string text =
      outcome == Outcome::kLate
          ? fmt::format("waited {} s in {} for rank {}",
                        std::chrono::duration<double>(timeout_.load()).count(), where, other)
          : fmt::format("rank {} ended while rank {} waited for it in {}", other, rank_, where);
  const std::string whole = text + watch_.Chain(other);
  watch_.Fail(whole);
  TORCH_CHECK(false, whole);
}

}  // namespace strata
