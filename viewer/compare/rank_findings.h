#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace strata::viewer {

/// "0–4, 6". REQUIRES: `numbers` ascend.
std::string RangesText(const std::vector<int32_t>& numbers);

/// Places at which the ranks of a trace would not meet, a line each; empty: they meet everywhere,
/// or two runs have one rank. What cannot be compared is a line as well. Slow: for a worker.
std::vector<std::string> FindCollectiveMismatches(const std::string& trace);

}  // namespace strata::viewer
