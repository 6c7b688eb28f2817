#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace strata {

/// Tensors on their way from one rank of a process to another. A message has a key; messages of
/// equal sender, receiver and key arrive in the order in which they were sent. Any thread may call
/// any function.
class Mailboxes {
 public:
  Mailboxes();
  ~Mailboxes();
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;

  /// Does not wait. The receiver gets these very tensors: neither side writes to them afterwards.
  void Send(int64_t from, int64_t to, const std::string& key, std::vector<at::Tensor> tensors);
  /// Waits for a message; none: `Close` was called, or nothing came in time.
  std::optional<std::vector<at::Tensor>> Receive(int64_t from, int64_t to, const std::string& key,
                                                 std::chrono::milliseconds timeout);
  /// Ends all waits, now and later.
  void Close();
  bool is_closed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata
