#pragma once
#include <memory>

#include "base/result.h"
#include "ir/module.h"
#include "passes/core/pass.h"
#include "refs/recording/recording.h"

namespace strata::cli {

/// Proves after each pass that the graphs which it changed compute what they computed before: both
/// are evaluated exactly, as `strata prove` does. It needs no LibTorch and no weights. A line on
/// stderr for each graph; a graph that cannot be evaluated is a warning, not an error.
/// The verdicts are recorded, too. REQUIRES: the recording watches the passes before this does.
class ProveExactly final : public PassInstrumentation {
 public:
  explicit ProveExactly(Recording& recording) : recording_(recording) {}

  Status BeforePass(const PassRun& run, const Module& module) override;
  /// Errors: a value differs; the pass, the node and the relation are named.
  Status AfterPass(const PassRun& run, const Module& module) override;

 private:
  Recording& recording_;
  std::unique_ptr<Module> before_;
};

}  // namespace strata::cli
