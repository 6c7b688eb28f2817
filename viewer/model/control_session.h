#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace strata::viewer {

/// What is known of a training under control.
struct ControlState {
  enum class Phase : uint8_t { kConnecting, kRunning, kStopped, kFinished, kFailed };
  Phase phase = Phase::kConnecting;
  std::string error;   ///< kFailed: why; else what the last command said against it
  std::string reason;  ///< why it stopped
  std::string pass;    ///< the next one, while passes run
  int64_t steps_done = 0, steps = 0;
  std::optional<double> loss;                  ///< of the last step
  std::string graph, node, op, module, where;  ///< the node that was executed last; "": none
  int64_t nodes_done = 0;                      ///< of the step that is running
  std::string saved;                           ///< what `save` answered; "": nothing was saved
  int64_t stops = 0;  ///< how often it stopped: what was read before may have changed

  struct Breakpoint {
    int64_t id = 0;
    std::string at;  ///< "node mm_3"
  };
  std::vector<Breakpoint> breakpoints;

  /// A value at the stop.
  struct Value {
    std::string name;
    std::string error;  ///< it cannot be read; "": it was
    std::string dtype, sizes;
    std::vector<std::pair<std::string, std::string>> statistics;  ///< ("least", "-1.5"), …
    std::vector<int64_t> counts;  ///< of equal intervals between least and greatest

    /// Elements in rows and columns.
    struct Matrix {
      std::string slice;  ///< "[0:4, :]"; "": means of rectangles of the whole value
      std::string error;  ///< there is no such slice; "": there is
      int64_t columns = 0;
      std::vector<double> elements;  ///< row by row; those that are not finite are NaN
    };
    std::optional<Matrix> matrix;
  };
  std::optional<Value> value;  ///< the last one that was asked for

  /// What the user asked, and what was answered; oldest first, the last few.
  std::vector<std::string> transcript;
};
std::string_view ToString(ControlState::Phase phase);  ///< "connecting", "running", …

/// Takes the answer to `command` into the state. `data`: a JSON object as docs/control.md has it;
/// what is not is left out.
void TakeAnswer(const std::string& command, bool ok, const std::string& text,
                const std::string& data, ControlState& state);

/// A connection to a training under control, on a thread of its own; no caller waits for it. Its
/// end lets the training run on without breakpoints.
class ControlSession {
 public:
  /// `wake` is called from that thread when the state has changed.
  ControlSession(std::string path, std::function<void()> wake);
  ~ControlSession();
  ControlSession(const ControlSession&) = delete;
  ControlSession& operator=(const ControlSession&) = delete;

  const std::string& path() const { return path_; }
  /// Sends a command of docs/control.md. `typed`: command and answer are shown to the user.
  void Send(std::string command, bool typed = false);
  /// What is known now.
  ControlState state() const;
  /// Changes whenever the state does.
  uint64_t version() const { return version_; }

 private:
  struct Command {
    std::string text;
    bool typed = false;
  };
  void Run();
  void Change(const std::function<void(ControlState&)>& change);

  const std::string path_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::deque<Command> waiting_;
  ControlState state_;
  std::atomic<uint64_t> version_ = 0;
  std::atomic<bool> ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace strata::viewer
