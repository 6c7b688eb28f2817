#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "refs/ref.h"

namespace strata {

/// A node of a graph of a history, at one snapshot.
struct HistoryNode {
  const History* history = nullptr;
  int32_t graph = 0;  ///< index into History::graphs
  int32_t snapshot =
      0;  ///< index of the last snapshot, among those that were asked for, that has it
  std::string name;
};

/// The node that `wanted` names: a name, also without the bodies that the node is in; `#` and a
/// stable id; a module path; or a module path, a colon and an operator; before all of these the
/// name of a graph and a colon. `ref` selects the graph and the pass. One node in graphs that were
/// made from each other counts once. Of a compilation that was restarted, graphs of the last
/// attempt that has the node come before those of the others, which never ran.
///
/// Errors: no such graph, pass or node; several nodes, which the message lists.
/// REQUIRES: `histories` outlive the result.
Result<HistoryNode> FindHistoryNode(const std::vector<History>& histories, const Ref& ref,
                                    std::string_view wanted);

}  // namespace strata
