#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "prove/proof.h"

namespace strata::prove {

/// A bug of parallel programs as an edit of a correct lowered graph.
struct Mutation {
  std::string_view name;    ///< "drop-all-reduce"
  std::string_view effect;  ///< "each rank keeps its summand"
  /// Edits the graph at `node`. False: not a site of the mutation; nothing is changed.
  bool (*apply)(Graph& graph, NodeId node);
  /// What a finding may call it: the first that names it best. kOther counts as wrong.
  std::array<BugKind, 3> kinds = {};
};
std::span<const Mutation> Mutations();

/// What the proof of a pass says of a mutant of the graph after it.
enum class MutantOutcome : uint8_t {
  kCaught,      ///< a value differs, or is rounded otherwise by a mutation of precision
  kRefused,     ///< an operator of the mutant cannot be evaluated: sizes that do not fit
  kEquivalent,  ///< proven, and every rank returns, and rounds, what it did for any inputs
  kEscaped,     ///< proven, but a rank returns something else for inputs that ranks do not share
};

struct MutantResult {
  MutantOutcome outcome = MutantOutcome::kCaught;
  /// The first finding is at an edited node, at a value that is returned instead of another, or at
  /// the first consumer that the graph before the pass has, too.
  bool is_near = false;
  bool is_class_right = false;  ///< the first finding has one of the kinds of the mutation
  /// What the rules of placement say of it (prove/static/placement_check.h), if the pass is
  /// `lower`.
  bool is_checked_by_rules = false, is_refuted_by_rules = false;
  Diagnosis diagnosis;  ///< of the first finding
  std::string node;     ///< of the first finding
  std::string what;     ///< of the first finding
};

/// Applies a mutation to a copy of `after` and proves the pass again. None: the mutation does not
/// apply to `site`. REQUIRES: `after` is lowered and proven.
std::optional<MutantResult> TryMutant(const Graph& before, const Graph& after,
                                      const Mutation& mutation, NodeId site,
                                      const ProofOptions& options);

}  // namespace strata::prove
