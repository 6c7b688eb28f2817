#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/artifact_appender.h"
#include "store/trace_writer.h"

namespace strata {

/// The kind of the artifact that holds it.
inline constexpr std::string_view kRunEndKind = "end";

/// Says why a run ended before its end. Stores it as an artifact of kind `end`, a JSON object that
/// is also its attributes: `{"why":"interrupted: after step 3 of 10"}`.
Status AddRunEnd(TraceWriter& trace, RunId run, std::string_view why);
Status AppendRunEnd(ArtifactAppender& appender, RunId run, std::string_view why);

/// "": the run finished, or it ended without a reason, as by a kill.
std::string WhyEnded(const StoredRun& run);

}  // namespace strata
