#pragma once
#include <string>

#include "store/trace_reader.h"

namespace strata::cli {

/// The runs of a trace for people: graphs, passes with what they did, executed plans, artifacts.
std::string ListText(const TraceReader& trace);

/// The same as `strata.ls/1` (docs/json.md).
std::string ListJson(const TraceReader& trace);

}  // namespace strata::cli
