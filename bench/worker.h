#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata::cli {

/// Milliseconds that one step took.
struct StepTime {
  double cpu = 0;   ///< of the processor, all threads
  double wall = 0;  ///< on the clock
};

/// The first steps: what they lose, how long the first took with all that comes before it (trace,
/// passes, plan, or what a peer does), what they need.
struct FirstSteps {
  double first_wall = 0, first_cpu = 0;  ///< seconds
  int64_t peak_bytes = 0;                ///< most that a step needs at once
  std::vector<double> losses;
};

/// A process that trains on request, and lives as long as this object. It answers each line on its
/// stdin by a line of JSON on its stdout:
///
///     begin   {"first_wall_s": 1.2, "first_cpu_s": 1.1, "peak_bytes": 4096, "losses": [5.1, 5.0]}
///     run N   {"times_ms": [[processor time, wall time], …]}, of N steps
///
/// and ends with its stdin.
class Worker {
 public:
  struct Command {
    std::vector<std::string> words;           ///< the program, looked up in PATH, and its arguments
    std::vector<std::string> variables = {};  ///< `NAME=VALUE`, beside those of this process
    std::string log;                          ///< file for its stderr
  };
  static Result<std::unique_ptr<Worker>> Start(Command command);
  ~Worker();

  // Errors: it ended; with the last line of its stderr.

  Status Send(std::string_view order);
  /// What the order `begin` gave. Once, before `run`.
  Result<FirstSteps> ReceiveFirstSteps();
  /// What an order `run` gave.
  Result<std::vector<StepTime>> ReceiveTimes();

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata::cli
