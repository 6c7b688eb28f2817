#pragma once
#include <string>

#include "base/json.h"
#include "ir/graph.h"
#include "passes/budget/memory_front.h"

namespace strata::cli {

/// A row per plan, with a bar as long as its peak.
std::string FrontText(const Graph& graph, const MemoryFront& front);

/// The same as the array of the key `front`.
void WriteFront(JsonWriter& json, const MemoryFront& front);

}  // namespace strata::cli
