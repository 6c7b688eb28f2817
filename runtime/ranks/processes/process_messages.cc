#include "runtime/ranks/processes/process_messages.h"

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
constexpr uint32_t kMessageHeadTag = 16, kMessageBodyTag = 17;

/// What goes before the tensors of a message.
struct MessageHead {
  std::array<char, 64> key = {};
  uint64_t bytes = 0;  ///< of the body
};

std::span<std::byte> BytesOf(MessageHead& head) {
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
    const Tensor tensor = (given.is_non_overlapping_and_dense() ? given : given.contiguous()).cpu();
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
  MessageHead head;
  std::vector<std::byte> body;
};

}  // namespace

// --- Sending -------------------------------------------------------------------------------------

class ProcessMessages::Outbox {
 public:
  Outbox(GlooLinks& links, int64_t to, const std::atomic<milliseconds>& timeout)
      : thread_([this, &links, to, &timeout] { Move(links, to, timeout); }) {}
  ~Outbox() {
    {
      std::unique_lock lock(mutex_);
      ends_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, kPatience, [&] { return is_done_; });
      // After a failure no receiver takes what is left.
      messages_.clear();
      is_aborted_ = true;
      AbortMoving();
    }
    thread_.join();
  }

  /// None: all is well.
  std::optional<Outcome> Put(Message message) {
    {
      const std::lock_guard lock(mutex_);
      if (outcome_ != Outcome::kDone) return outcome_;
      messages_.push_back(std::move(message));
    }
    changed_.notify_all();
    return std::nullopt;
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(2);

  void Move(GlooLinks& links, int64_t to, const std::atomic<milliseconds>& timeout) {
    Outcome outcome = Outcome::kDone;
    while (outcome == Outcome::kDone) {
      Message message;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !messages_.empty(); });
        if (messages_.empty()) break;
        message = std::move(messages_.front());
        messages_.pop_front();
      }
      outcome = MoveOne(message, links, to, timeout.load());
    }
    const std::lock_guard lock(mutex_);
    outcome_ = outcome;
    messages_.clear();
    is_done_ = true;
    changed_.notify_all();
  }

  Outcome MoveOne(Message& message, GlooLinks& links, int64_t to, milliseconds patience) {
    const auto head = links.Send(to, kMessageHeadTag, BytesOf(message.head));
    const auto body = links.Send(to, kMessageBodyTag, message.body);
    SetMoving({head.get(), body.get()});
    Outcome outcome = head->Wait(patience);
    if (outcome == Outcome::kDone) outcome = body->Wait(patience);
    SetMoving({});
    return outcome;
  }
  void SetMoving(std::vector<Transfer*> transfers) {
    const std::lock_guard lock(mutex_);
    moving_ = std::move(transfers);
    if (is_aborted_) AbortMoving();
  }
  /// REQUIRES: the lock.
  void AbortMoving() {
    for (Transfer* const transfer : moving_)
      transfer->Abort();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  std::vector<Transfer*> moving_;  // those of the message on its way
  bool ends_ = false, is_done_ = false, is_aborted_ = false;
  Outcome outcome_ = Outcome::kDone;
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
    MessageHead head;
    wait(*links_.Receive(from, kMessageHeadTag, BytesOf(head)));
    std::vector<std::byte> body(head.bytes);
    wait(*links_.Receive(from, kMessageBodyTag, body));
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
