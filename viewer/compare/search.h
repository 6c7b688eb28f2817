#pragma once
#include <string>
#include <vector>

#include "viewer/compare/comparison.h"
#include "viewer/compare/document.h"

namespace strata::viewer {

/// What a search found.
struct SearchHits {
  std::vector<SceneNodeId> nodes;   ///< in scene order
  std::vector<SubjectId> subjects;  ///< passes and graphs by name
};

/// Nodes whose name, operator, module, type or attribute matches `text`: a regular expression in
/// either case; an invalid expression stands for its own characters. A test of a property finds the
/// nodes that pass it: `bytes>1e6`, `flops>=2e9`, `dtype=bf16`, `phase=backward`, `status=added`.
std::vector<SceneNodeId> SearchNodes(const Comparison& comparison, const std::string& text);

/// Passes and graphs whose name, graph or options match.
std::vector<SubjectId> SearchSubjects(const Contents& contents, const std::string& text);

}  // namespace strata::viewer
