#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// A connection to a training that runs with `--control`, by the lines of docs/control.md. Use from
/// one thread.
class ControlClient {
 public:
  /// An answer to the command with this id.
  struct Answer {
    int64_t id = 0;
    bool ok = false;
    std::string text;  ///< lines for people; of an error the message
    std::string data;  ///< a JSON object
  };

  /// Waits up to `seconds` for the socket, or until `gives_up`. Errors: no training listens.
  static Result<std::unique_ptr<ControlClient>> Connect(const std::string& path, double seconds,
                                                        const std::function<bool()>& gives_up = {});
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  /// Sends a command; returns its id. Errors: the training has ended.
  Result<int64_t> Send(std::string_view command);
  /// The next answer; none: there is none within `milliseconds`. Answers come in any order.
  /// Errors: the training has ended; what came is not an answer.
  Result<std::optional<Answer>> Receive(int milliseconds);

 private:
  explicit ControlClient(int socket) : socket_(socket) {}

  const int socket_;
  int64_t last_id_ = 0;
  std::string pending_;  // what came after the last whole line
};

/// Reads a line that a training sent. Errors: it is not an answer.
Result<ControlClient::Answer> ParseControlAnswer(std::string_view line);

}  // namespace strata
