#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/shapes.h"
#include "bench/turns.h"
#include "bench/worker.h"
#include "runtime/config/config.h"
#include "runtime/plan/plan.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// One of Strata's ways to run the step of a training.
class Strata final : public Contender {
 public:
  enum class Way : uint8_t { kEager, kGraphs, kProfiledGraphs };
  Strata(std::string name, const TrainConfig& config, int threads, std::string passes,
         const PlanOptions& plan, Way way);

  Status Create() override;
  /// Kernels are compiled, whatever the user's cache holds; processor time counts the compiler's.
  Result<FirstSteps> Begin() override;
  Result<std::vector<StepTime>> Run(int64_t steps) override;
  void End() override { trainer_.reset(); }

  const Trainer& trainer() const { return *trainer_; }

 private:
  Result<StepReport> Step();

  TrainConfig config_;
  int threads_;
  std::string passes_;
  PlanOptions plan_;
  Way way_;
  std::unique_ptr<Trainer> trainer_;
};

inline constexpr const char* kBitwise = "fused, bitwise";
inline constexpr const char* kProfiled = "bitwise, profiled";
inline constexpr const char* kFast = "fused, fast";
inline constexpr const char* kFull = "full, fast";
inline constexpr const char* kPlan = "plan, static";
inline constexpr const char* kGraph = "fused, graph";

/// Eagerly first, then those of the names above that the device has, and others.
Result<std::vector<std::unique_ptr<Strata>>> OurWays(const BenchShape& shape,
                                                     const TrainConfig& config, int threads);

}  // namespace strata::cli
