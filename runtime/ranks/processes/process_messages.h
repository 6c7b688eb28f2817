#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/ranks/processes/gloo_links.h"
#include "runtime/ranks/processes/wait_watch.h"

namespace strata {

/// Tensors on their way between processes: Mailboxes (point_to_point.h) over Gloo. A thread for
/// each receiver moves what was sent, so that no rank waits for a receiver; a message waits where
/// it was sent until its receiver asks.
class ProcessMessages {
 public:
  /// REQUIRES: `links` and `watch` outlive this.
  ProcessMessages(GlooLinks& links, WaitWatch& watch, int64_t rank);
  ProcessMessages(const ProcessMessages&) = delete;
  ProcessMessages& operator=(const ProcessMessages&) = delete;
  /// Waits up to two seconds for messages that receivers still take.
  ~ProcessMessages();

  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  /// Copies the tensors and does not wait. Throws (c10::Error) when an earlier message to `to` was
  /// not taken in time, or `to` ended.
  void Send(int64_t to, const std::string& key, const std::vector<at::Tensor>& tensors);
  /// Throws (c10::Error) when nothing comes in time, or `from` ended.
  std::vector<at::Tensor> Receive(int64_t from, const std::string& key);

 private:
  class Outbox;
  [[noreturn]] void Fail(int64_t other, const std::string& where, GlooLinks::Outcome outcome);

  GlooLinks& links_;
  WaitWatch& watch_;
  int64_t rank_;
  std::atomic<std::chrono::milliseconds> timeout_{std::chrono::milliseconds(0)};
  std::map<int64_t, std::unique_ptr<Outbox>> outboxes_;                            // by receiver
  std::multimap<std::pair<int64_t, std::string>, std::vector<at::Tensor>> early_;  // by sender, key
};

}  // namespace strata
