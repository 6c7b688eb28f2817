#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace strata {

struct DiffOptions {
  /// Pairs that are known beforehand, by name. They override everything else.
  std::vector<std::pair<std::string, std::string>> pins = {};
  /// Pairs that must not be made, by name; with an empty name the other node has no partner at all.
  std::vector<std::pair<std::string, std::string>> vetoes = {};
  /// Both graphs are snapshots of one trace: equal StableIds are the same node. Ignored where no
  /// node of one graph is a node of the other, or made from one.
  bool stable_ids = false;
  /// With `stable_ids`: provenance records of the trace's nodes. They show exactly what was
  /// replaced and copied.
  std::vector<Provenance> provenance = {};
  /// With `stable_ids`: also match by structure where ids and edges do not go together, and
  /// report where that contradicts the ids.
  bool contradictions = false;
  /// Also compare names, places in source, sequence numbers and other `meta.*` fields.
  bool meta = false;
};

}  // namespace strata
