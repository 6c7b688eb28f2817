#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ir/graph.h"
#include "prove/joined_stages.h"
#include "prove/proof.h"

namespace strata::prove {

/// A bug of parallel programs as an edit of a correct lowered graph.
struct Mutation {
  std::string_view name;    ///< "drop-all-reduce"
  std::string_view effect;  ///< "each rank keeps its summand"
  /// Edits the graph at `node`. False: not a site of the mutation; nothing is changed.
  bool (*apply)(Graph& graph, NodeId node);
  /// What a finding may call it: the first that names it best. kOther counts as wrong.
  std::array<BugKind, 4> kinds = {};
  bool is_of_cuts = false;  ///< of what graphs of a cut pass to each other
};
std::span<const Mutation> Mutations();

/// What the proof of a pass says of a mutant of the graph after it.
enum class MutantOutcome : uint8_t {
  kCaught,   ///< a value differs, or is rounded otherwise by a mutation of precision
  kRefused,  ///< an operator of the mutant cannot be evaluated: sizes that do not fit
  /// Proven, and every rank returns, and rounds, what it did, for any inputs whose placements hold:
  /// replicas are equal.
  kEquivalent,
  kEscaped,  ///< proven, but a rank returns something else for such inputs
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

/// Mutants of the graphs that were cut out of one.
class CutMutants {
 public:
  /// REQUIRES: the cut is proven; its graphs and its list of parts outlive this.
  static Result<CutMutants> Make(const StageCut& cut);

  /// Applies a mutation to a copy of a part and proves the cut again. None: the mutation does not
  /// apply to `site`, a node of the part.
  std::optional<MutantResult> Try(size_t part, const Mutation& mutation, NodeId site,
                                  const ProofOptions& options) const;

 private:
  CutMutants(const StageCut& cut, JoinedStages joined) : cut_(cut), joined_(std::move(joined)) {}

  StageCut cut_;
  JoinedStages joined_;
};

}  // namespace strata::prove
