#pragma once
#include <string>
#include <string_view>

#include "passes/core/collectives.h"

namespace strata {

// A group may have several communicators, whose collectives run beside each other: `fsdp#ag` has
// the ranks of `fsdp`. Mesh::GroupAxes ignores the purpose.

inline constexpr std::string_view kGatherPurpose = "ag";
inline constexpr std::string_view kExpertPurpose = "ep";

inline std::string ExtraGroup(std::string_view group, std::string_view purpose) {
  return std::string(group) + '#' + std::string(purpose);
}

/// Whether a launch uses a communicator with a purpose.
inline bool HasExtraGroup(const Graph& graph, NodeId launch) {
  return GroupOf(graph, launch).find('#') != std::string_view::npos;
}

}  // namespace strata
