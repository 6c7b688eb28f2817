#pragma once
#include <string>
#include <utility>

#include "base/interrupt.h"
#include "passes/core/pass.h"

namespace strata::cli {

/// Takes the interrupt of who runs passes, and ends the pipeline before the next pass: a live trace
/// is then ended as an interrupted one, and stands alone, without a log beside it.
class StopBetweenPasses final : public PassInstrumentation {
 public:
  StopBetweenPasses()
      : request_("strata: stopping at the next step or pass; again to stop at once\n") {}
  /// Prints `told` instead when the interrupt comes.
  explicit StopBetweenPasses(std::string told) : request_(std::move(told)) {}

  Status BeforePass(const PassRun& run, const Module& module) override;

  const StopRequest& request() const { return request_; }

 private:
  StopRequest request_;
};

}  // namespace strata::cli
