#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/ranks/processes/process_place.h"
#include "runtime/ranks/rank_team.h"

namespace strata {

/// The store in which the processes of a run find each other, on this machine's loopback address:
/// that of a launcher, which outlives every rank.
class ProcessStore {
 public:
  /// At a free port. Errors: the system gives none.
  static Result<ProcessStore> Open();
  ProcessStore(ProcessStore&&) noexcept;
  ~ProcessStore();

  uint16_t port() const;

 private:
  struct State;
  explicit ProcessStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// How the processes of a run reach each other: messages over Gloo between every two, and small
/// values in the store.
class GlooLinks {
 public:
  enum class Outcome : uint8_t {
    kDone,
    kLate,  ///< not within the time
    kGone,  ///< the connection was closed
  };
  /// A message on its way.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    /// After another outcome than kDone, messages of all processes fail.
    virtual Outcome Wait(std::chrono::milliseconds timeout) = 0;
    /// Ends `Wait` of a message that is sent, also one that begins later, from any thread.
    virtual void Abort() = 0;
  };

  /// Waits until all processes are connected. Errors: they do not come in time, no address.
  static Result<std::unique_ptr<GlooLinks>> Connect(const ProcessPlace& place,
                                                    std::chrono::milliseconds timeout);
  ~GlooLinks();

  /// Messages with equal tags from one process to another arrive in their order, into buffers of
  /// their size, which live until `Wait`.
  std::unique_ptr<Transfer> Send(int64_t rank, uint32_t tag, ByteSpan bytes);
  std::unique_ptr<Transfer> Receive(int64_t rank, uint32_t tag, std::span<std::byte> bytes);

  /// False: the store cannot be reached, perhaps because the process that has it is gone.
  bool Put(const std::string& key, std::string_view value);
  /// None also when the store cannot be reached.
  std::optional<std::string> Find(const std::string& key);

 private:
  struct State;
  explicit GlooLinks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata
