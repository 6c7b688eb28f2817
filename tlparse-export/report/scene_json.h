#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diff/history/lineage.h"
#include "diff/model/graph_diff.h"
#include "scene/cost_diff.h"
#include "scene/scene.h"
#include "tlparse-export/report/measures.h"
#include "tlparse-export/report/rank_sets.h"
#include "tlparse-export/report/texts.h"

namespace strata {

/// What is known of a scene's nodes beyond the difference itself; everything may be missing.
struct SceneContext {
  const Lineage* lineage = nullptr;  ///< its last snapshot is the after side
  const Measures* measures = nullptr;
  const RankFacts* ranks = nullptr;  ///< of the after side
  const CostComparison* costs = nullptr;
};

/// A scene with everything that the page shows of each node. Texts are numbers of `names` and
/// `lines`; columns have an entry per node; Δ: each number is the difference to the one before.
///
///     nodes                       how many
///     name Δ, op, type, phase, seq Δ, place, code, status, backward, distance,
///     cluster Δ, `life` Δ
///     was, tags, time, bytes, flops, stream, kernel, measured, ranks
///                                 [node, …], … of nodes that have one; time in ns a step,
///                                 kernel: its generated code, measured: bytes that it made
///     values                      [node, elements, NaN, infinite, least, greatest, mean], …
///     across                      [node, least, median, most, slowest rank], …: time of the ranks
///     cost                        [node, Δ ns, Δ bytes moved, Δ bytes at the peak], … of nodes
///                                 whose costs changed
///     costs                       without it no cost changed: [[before, after] of ns, of bytes
///                                 moved and of the peak], then by change, by module and by pass:
///                                 [what, where, places, Δ ns, Δ bytes moved, Δ peak], …
///     ranks_left_out              ranks differ, and are too large to be compared node by node
///     edges                       of each node, how many, then (to − from, status) of each
///     clusters, order Δ           see Scene
///     fields                      [node, [path, before, after, derived], …], …
///     via                         [node, how, confidence], …
///     made, gone                  [node, how, [nodes it was made from, or that stand for it]], …
///     hunks                       [pattern, title, where, [nodes]], …      relations
///     patterns                    with deviations: [where, what happened there, [hunks]]
struct SceneData {
  std::string core;
  /// `after`: of each node the number of its line in native text without types (of removed nodes
  /// the one before), Δ; `before`: [node, line, type], where the line or the type differs; `fx`:
  /// [node, side, line], where the FX line is not `name: "type" = torch.ops.op(…)`.
  std::string lines;
};
SceneData SceneJson(const GraphDiff& diff, const Scene& scene, const SceneContext& context,
                    Texts& names, Texts& lines);

}  // namespace strata
