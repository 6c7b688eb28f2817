#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tlparse-export/torch_trace/read/byte_source.h"

namespace strata {

/// True for a folder that `strata export --fx` wrote: its `index.json` says so.
bool IsFxFolder(const std::string& folder);

/// The runs of such a folder, in its order. Errors: its index cannot be read, or names no graph.
Result<std::vector<int64_t>> RunsOfFxFolder(const std::string& folder);

/// A log made from one run: each graph as it came, each pass as a pair of records. Graphs have
/// compilations of their own, so that passes find them. Files outside of the folder are not read.
Result<std::unique_ptr<ByteSource>> OpenFxFolder(const std::string& folder, int64_t run);

}  // namespace strata
