#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/core/pass.h"
#include "runtime/config/config.h"

namespace strata {

/// The passes of a training: those of the pipeline `text` that the configuration does not switch
/// off. With several ranks `place` and `lower` are inserted after the cleanup passes at the start,
/// unless the text has `place`; and `bucket-transformer-blocks` before the passes that make
/// kernels. A memory policy inserts `tag-memory` and `recompute` before both.
///
/// Errors: those of the text, a name that no pass has, passes and keys that contradict each other.
Result<std::vector<std::unique_ptr<Pass>>> TrainingPasses(const TrainConfig& config,
                                                          std::string_view text);

}  // namespace strata
