#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "diff/model/diff_options.h"
#include "ir/fingerprint.h"

namespace strata {

/// What a person knows of two graphs, kept in a file beside them:
///
///     before = "6af4cbe5e67fe762625b0dc91f5c9b66"   # fingerprints of the graphs that are meant
///     after = "2d4139e46554a32688e12fb48fb4eea1"
///     same = [["view", "reshape"]]                  # this node is that node
///     never = [["add_3", "add_9"], ["mul", ""]]     # these are not; `mul` has no partner at all
struct Pins {
  std::optional<Fingerprint> before, after;
  std::vector<std::pair<std::string, std::string>> same, never;
  std::string file;
};

/// Errors: not TOML, unknown keys, no fingerprint.
Result<Pins> ParsePins(std::string_view text, std::string_view file);
/// The text that ParsePins reads.
std::string PrintPins(const Pins& pins);

/// Says that both are one node. What was said of either of them goes.
void PinSame(Pins& pins, const std::string& before, const std::string& after);
/// Says that they are not the same; with an empty name, that the other one has no counterpart.
void PinNever(Pins& pins, const std::string& before, const std::string& after);
/// Drops what is said of a node; an empty name stands for none.
void Unpin(Pins& pins, const std::string& before, const std::string& after);

/// Adds the pins to `options`. Names must exist while the pins' graphs are these two; of stale pins
/// those are taken whose names still exist. Returns warnings: pins that say no graphs, stale ones,
/// those left out.
std::vector<std::string> UsePins(const Pins& pins, const Graph& before, const Graph& after,
                                 DiffOptions& options);

}  // namespace strata
