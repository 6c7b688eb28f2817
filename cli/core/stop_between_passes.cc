#include "cli/core/stop_between_passes.h"

namespace strata::cli {

Status StopBetweenPasses::BeforePass(const PassRun& run, const Module& /*module*/) {
  if (!request_.came()) return Ok();
  return Error("interrupted: before pass {} '{}': a trace holds the passes before it", run.index,
               run.name);
}

}  // namespace strata::cli
