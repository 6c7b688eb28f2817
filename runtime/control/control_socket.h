#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// A line that a client sent.
struct ControlRequest {
  std::string id = "null";  ///< as JSON
  std::string command;
};

/// Reads a line without its end into `request`. Errors: no JSON object with an `id` and a
/// `command`; the id is there if it could be read.
Status ReadControlRequest(std::string_view line, ControlRequest& request);

/// A Unix socket over which programs of the same user control this one, by the lines of
/// docs/control.md: one JSON object with `id` and `command` a line, one answer for each, with the
/// same `id`, in any order.
class ControlSocket {
 public:
  /// Writes the answer to one request; may be called later, from any thread, and once.
  using Answer = std::function<void(bool ok, std::string_view text, std::string_view json)>;
  struct Handler {
    std::function<void(std::string_view command, Answer answer)> execute;
    std::function<void()> last_client_left;
  };

  /// Creates the socket, readable and writable by its user alone, and serves clients on threads of
  /// its own. Errors: a path too long for a socket; a file with this name, or the socket
  /// of a running program. The socket of a program that has ended is replaced.
  static Result<std::unique_ptr<ControlSocket>> Open(const std::string& path, Handler handler);
  /// Removes the socket and ends the connections.
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  struct State;
  explicit ControlSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata
