#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata::cli {

/// A small model on several ranks, whose graphs `strata bench prove` edits.
struct ProofLayout {
  std::string_view model;  ///< "llama3"
  int64_t dp_replicate = 1, fsdp = 1, cp = 1, tp = 1, ep = 1, pp = 1;
  std::string_view schedule = {};  ///< of a pipeline
  std::string_view settings = {};  ///< further words that `strata trace --set` takes

  /// "llama3 fsdp=2 tp=2 compile.memory_policy=full"
  std::string Name() const;
};

/// Each axis alone and with others, ways to save memory, experts, and schedules of pipelines.
std::span<const ProofLayout> ProofLayouts();

/// Traces it, in a process of its own, to the file `trace`; other files go to `folder`.
/// Errors: this build cannot trace; what tracing says.
Status TraceLayout(const ProofLayout& layout, const std::string& folder, const std::string& trace);

}  // namespace strata::cli
