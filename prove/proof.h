#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/symbol_sizes.h"
#include "prove/diagnosis/diagnosis.h"
#include "prove/evaluation/evaluator.h"
#include "prove/precision.h"
#include "prove/sizes/chosen_sizes.h"

namespace strata::prove {

enum class Verdict : uint8_t {
  kProven,    ///< every paired value and every output is equal
  kDiffers,   ///< a value differs
  kUnproven,  ///< could not be evaluated, or the graphs have other inputs
};
std::string_view ToString(Verdict verdict);

/// A value of the graph after a pass that is not what it was before.
struct Finding {
  std::string node;        ///< after the pass; "" for an output without a node
  std::string reference;   ///< the node before the pass
  std::string graph = {};  ///< that has the node; "": the one that was compared
  std::string reference_graph = {};
  std::string module;             ///< "layers.3.attention"
  std::string what;               ///< "1/2 of the expected value", "13 of 64 elements differ", …
  Diagnosis diagnosis;            ///< the kind of bug, as far as the graphs show it
  std::vector<std::string> from;  ///< new nodes that it is computed from
};

/// What a proof takes for granted.
struct Assumption {
  std::string text;
  bool is_inferred = true;  ///< from the graphs; else the user states it
  friend bool operator==(const Assumption&, const Assumption&) = default;
};

struct Proof {
  Verdict verdict = Verdict::kProven;
  int64_t values = 0;             ///< compared
  int64_t not_kept = 0;           ///< values that were not compared: see max_kept_words
  int64_t evaluations = 0;        ///< calls of operators, in both graphs
  std::vector<Finding> findings;  ///< in program order, at most `max_findings`
  std::string reason;             ///< kUnproven: why
  /// Operators without a definition. They are the same function of the same operands in both
  /// graphs; nothing else is known of them.
  std::vector<std::string> opaque;
  /// The graphs were too large: the proof is of the same program with these sizes, old and new. One
  /// number may be several sizes.
  std::set<std::pair<int64_t, int64_t>> reduced_sizes;
  /// Sizes that are symbols without a hint, as in logs: the proof is of the graphs with these.
  SymbolSizes chosen_sizes = {};
  std::vector<Assumption> assumptions = {};
  std::string mesh = {};  ///< of the ranks whose logs were compared
  /// Of the model, and of them those that are the same as one that was evaluated: their values are
  /// equal because its are.
  int64_t layers = 0, layers_left_out = 0;
  /// Calls of large graphs that a pass left as they were, on operands that are proven to be equal.
  int64_t unchanged = 0;
  /// kProven, with `lists_precision`: where the graphs round numbers otherwise.
  std::vector<PrecisionChange> precision;
};

struct ProofOptions {
  uint64_t seed = 1;
  /// Nodes with equal StableIds have equal values. Otherwise only outputs and written inputs are
  /// compared.
  bool stable_ids = false;
  size_t max_findings = 20;
  /// Of values that are kept to compare those of nodes, and to set others right by: 256 MB. Of more
  /// values hashes are kept; after one that differs, values of nodes are not compared, outputs and
  /// written inputs are.
  size_t max_kept_words = size_t{1} << 25;
  /// Of a graph of a pipeline stage: graphs that compute what it reads
  /// (prove/evaluation/rank_inputs.h).
  std::vector<const Graph*> makers = {};
  /// Of operators on all ranks in one graph. Of graphs with more, if they have StableIds, what a
  /// pass did not change is left out, and layers but one of each kind.
  int64_t max_calls = 10'000;
  /// Of graphs with reduced sizes: where one set of sizes needs more, two sets are tried.
  double max_products = 1e9;
  /// Results of narrow types are rounded, so that a sum of rounded numbers is not the rounded sum.
  bool rounds = false;
  /// A graph before that is not lowered computes what its types say; else the proof is unproven.
  bool checks_sizes = false;
  /// Ranks begin with equal copies of inputs whose placements are replicas, as they do in a run.
  /// Otherwise other inputs on each rank are drawn, and more is proven.
  bool has_replicas = false;
  /// A proven pass is evaluated again, with rounding.
  bool lists_precision = false;
  /// A quarter of the floating-point numbers of inputs are 0.
  bool has_zeros = false;
};

/// Adds what is wrong with a node of the graph after a pass, unless there are `max_findings`.
/// `was_there`: whether the graph before has a node with this id.
void AddFinding(const Graph& after, NodeId node, std::string_view reference, std::string what,
                Diagnosis diagnosis, const ProofOptions& options,
                const std::function<bool(StableId)>& was_there, Proof& proof);

/// The evaluation of the graph after a pass failed at `node`, while that of the graph before did
/// not. An operator that fails in PyTorch too is a finding. Errors: it is not, and nothing was
/// found before it.
Status AddFailure(const Graph& before, const Graph& after, NodeId node, const Error& error,
                  const ProofOptions& options, const std::function<bool(StableId)>& was_there,
                  Proof& proof);

/// A difference decides nothing where the graphs call an operator of which nothing is known on
/// other operands: the results may be equal. Makes such a proof unproven, with the operators.
void CheckOpaqueCalls(const OpaqueCalls& before, const OpaqueCalls& after, Proof& proof);

/// Proves something of graphs whose symbolic sizes have numbers (prove/sizes/chosen_sizes.h); with
/// others if operators refuse the first.
Proof WithSizes(std::span<const Graph* const> graphs,
                const std::function<Proof(const GraphsWithSizes&)>& prove);

/// Evaluates both graphs on equal random inputs, in exact arithmetic, and compares values of nodes
/// with equal StableIds, outputs by position, and what is written to inputs. A value that differs
/// is set right before the evaluation goes on, so that consequences are not found again.
///
/// A false verdict "proven" has a probability of at most degree / 2^61 for each compared element
/// (Schwartz, 1980; Zippel, 1979), where the degree of a value counts the products since the last
/// function that is not a polynomial.
Proof Prove(const Graph& before, const Graph& after, const ProofOptions& options);

}  // namespace strata::prove
