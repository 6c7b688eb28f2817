#pragma once
#include <vector>

#include "tlparse-export/torch_trace/log.h"

namespace strata {

/// Fills the graphs and passes of a run from its records, and `graph_id` of the payloads.
///
/// `before_X` and the next `after_X` of the same compilation are a pass X. Its graph is the one of
/// the same compilation whose last text is that of `before_X`; outside of compilations, where there
/// is one graph, the last one; else a graph of its own. A half without its partner, and every other
/// record with a graph, is a graph with one moment.
void FindGraphs(std::vector<LogPayload>& payloads, LogRun& run);

}  // namespace strata
