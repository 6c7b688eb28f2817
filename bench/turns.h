#pragma once
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/worker.h"

namespace strata::cli {

/// Milliseconds of a clock.
double Now(clockid_t clock);

/// One way to run the step of a training.
class Contender {
 public:
  explicit Contender(std::string name) : name(std::move(name)) {}
  virtual ~Contender() = default;
  /// Makes the model, unless it is made.
  virtual Status Create() { return Ok(); }
  virtual Result<FirstSteps> Begin() = 0;
  virtual Result<std::vector<StepTime>> Run(int64_t steps) = 0;
  /// Releases all memory; no call may follow.
  virtual void End() = 0;

  std::string name;
  FirstSteps first;
  int64_t planned_bytes = 0;  ///< what the plan says of first.peak_bytes; 0: no plan
  std::optional<int64_t> most_planned_bytes;  ///< and whatever sizes are read from data
  std::vector<StepTime> slices;               ///< medians of one turn each
  double product_share = 0;  ///< of its nodes' time that products and attention take; 0: no profile
};
using Contenders = std::vector<std::unique_ptr<Contender>>;

/// All take turns, so that they see the same neighbours: in a round each does a slice of steps,
/// whose first warms the caches and does not count.
Status TakeTurns(std::span<const std::unique_ptr<Contender>> contenders, int64_t rounds,
                 double slice_ms);

double Quantile(std::vector<double> values, double share);
double Median(const std::vector<StepTime>& times, double StepTime::* of);

/// How many times as long as another it took, round by round.
struct Ratio {
  double median = 0, low = 0, high = 0;  ///< low and high: quartiles
  std::string Text() const;              ///< `0.71 [0.69 0.74]`
};
Ratio RatioOf(const Contender& a, const Contender& b, double StepTime::* of);

/// Prints a value beside what it may be at most, and whether it is.
void PrintGate(std::string_view what, double value, double limit, std::string_view spread = "");
void PrintGate(std::string_view what, const Ratio& ratio, double limit);

}  // namespace strata::cli
