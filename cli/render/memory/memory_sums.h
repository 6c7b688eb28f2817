#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "ir/graph.h"

namespace strata::cli {

/// What one module or one line of code holds: at the peak, and from forward for backward.
struct MemorySum {
  std::string key;  ///< a module path, or "file:line"; "": neither is known
  int64_t alive_bytes = 0;
  int64_t saved_bytes = 0;
};

/// "runtime/models/layers.cc:78" of the code that a node comes from; "": not known.
std::string SourceLine(const Graph& graph, NodeId node);

enum class SumOver { kModule, kLine };

/// By bytes alive at the peak, then by saved bytes, most first. The sums of all rows are
/// `MemoryProfile::peak` and `SavedBytes`.
std::vector<MemorySum> SumMemory(const Graph& graph, SumOver over);

/// Two tables, by module and by line, of at most `shown` rows each, 0 for all.
std::string MemorySumsText(const Graph& graph, size_t shown);

/// The same tables with both sides of each row that differs, by change of the bytes at the peak,
/// then of saved bytes, most first.
std::string MemorySumChangesText(const Graph& before, const Graph& after, size_t shown);

/// The keys `by_module` and `by_line`.
void WriteMemorySums(JsonWriter& json, const Graph& graph);

}  // namespace strata::cli
