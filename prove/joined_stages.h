#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "prove/stage_signature.h"

namespace strata::prove {

/// A graph of a pipeline stage, whose inputs and outputs have slots (passes/pipeline/slots.h), or
/// one that a rank of a pipeline runs.
struct StagePart {
  int64_t stage = 0;
  const Graph* graph = nullptr;
};

/// By a node that a pass copied: what it is a copy of.
using Originals = std::map<StableId, StableId>;
/// Of what passes recorded of their nodes.
Originals OriginalsOf(std::span<const Provenance> provenance);

/// A graph and those that were cut out of it, in an order in which they can run. Each reads what
/// slots of parts before it name, or inputs of `whole`.
struct StageCut {
  const Graph* whole = nullptr;  ///< without slots, or a graph of `stage`
  int64_t stage = 0;
  std::span<const StagePart> parts;
  Originals originals = {};  ///< of nodes of the parts; none: nodes are not compared
  Returned returned = Returned::kStep;
  /// Parts run on ranks of their own: each has its own copy of an input that several read.
  bool on_own_ranks = false;
};

/// Of nodes that are a sum or mean over ranks of their own.
inline constexpr std::string_view kSumOverPartsAttribute = "sum_over_parts";

struct JoinedStages {
  std::unique_ptr<Module> module;
  GraphId whole;  ///< as it was; what ranks of their own all return is returned for each
  GraphId id;     ///< all parts
  std::vector<std::string> missing;  ///< outputs of `whole` that no part computes
  /// A collective over parts that one of them waits for and another does not call; "": there is
  /// none. The graph is not complete then.
  std::string unmatched_node, unmatched_call;
  std::string other_node;  ///< what another part waits for then; "": nothing

  const Graph& graph() const { return module->graph(id); }
};

/// All parts as one graph with the inputs and outputs of `whole`: what one part saves for another
/// is read where it is made. A node is named `stage1.forward/mm_4`. A copy of a node of `whole` has
/// its StableId, once for each; other nodes keep their own. A sum over ranks of an axis that
/// `whole` does not have is the sum over the parts, which run side by side up to where they wait
/// for it.
///
/// Errors: an input that no part before it makes, bodies of one name that differ, another
/// collective over parts than a sum or mean.
/// REQUIRES: StableIds are unique in all graphs together.
Result<JoinedStages> JoinStages(const StageCut& cut);

}  // namespace strata::prove
