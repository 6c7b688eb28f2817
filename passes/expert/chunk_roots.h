#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

/// Equal, or below: `layers.1.moe` is inside `layers.1`, `layers.10` is not.
bool IsInside(std::string_view module, std::string_view root);

/// "layers.3" of "layers.3.moe"; nothing of "layers".
std::string_view ModuleAround(std::string_view module);

/// The modules that a pattern selects: `layers.*` has the root `layers.1` for nodes of
/// `layers.1.moe.router`. Roots do not nest, as all have as many parts as the pattern.
class ChunkRoots {
 public:
  ChunkRoots(Graph& graph, std::string_view pattern);

  /// By number of parts, then by text.
  const std::vector<StrId>& roots() const { return roots_; }
  /// The root that the module of `node` is inside of; none.
  StrId RootOf(const Graph& graph, NodeId node) const;
  /// Keeps the roots with experts: those with an all-to-all; if there is none, those with nodes
  /// that are labelled as experts' work (attributes `EP`, `EP_token_exchange`), or that have a
  /// module `moe`. Errors: none is left; with `require_all_to_all` none has an all-to-all.
  Status KeepExperts(const Graph& graph, bool require_all_to_all);

 private:
  std::vector<StrId> roots_;
  std::unordered_map<StrId, StrId> root_of_;  // by module
};

/// A collective that moves tokens between the ranks of experts: every functional all-to-all.
bool IsTokenExchange(const Graph& graph, NodeId node);

/// Whether a part of the dotted path `module` is called `part`.
bool HasPart(std::string_view module, std::string_view part);

}  // namespace strata
