#pragma once
#include <memory>
#include <string>

#include "tlparse-export/torch_trace/read/byte_source.h"

namespace strata {

/// True for a folder with `raw.jsonl`, or with folders named after compilations, `-_0_0_0`.
bool IsTlparseFolder(const std::string& folder);

/// A log made from what tlparse wrote: the records of `raw.jsonl` with the payloads that stand in
/// files of their own, and `chromium_events.json`. Payloads that it shows as web pages only are
/// gone: their records stay. Without `raw.jsonl`, the files of the compilations are artifacts by
/// their names. Files outside of the folder are not read.
Result<std::unique_ptr<ByteSource>> OpenTlparseFolder(const std::string& folder);

}  // namespace strata
