#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "diff/policy/pins.h"
#include "ir/fingerprint.h"
#include "ir/graph.h"

namespace strata::viewer {

/// What a person said of the matches of two graphs is kept beside the file that has them, as
/// `strata diff --pins` reads it: `FILE.BEFORE-AFTER.pins.toml`, with the first 8 digits of the
/// fingerprints of the graphs.
std::string PinsPath(const std::string& file, Fingerprint before, Fingerprint after);

/// `file`: a trace, a log, a folder or a text. None: nothing is pinned. Errors: the pins cannot be
/// read.
Result<std::optional<Pins>> ReadPins(const std::string& file, const Graph& before,
                                     const Graph& after);

/// Writes the file, or removes it when nothing is pinned.
Status WritePins(const Pins& pins);

}  // namespace strata::viewer
