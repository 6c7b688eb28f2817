#include "tlparse-export/torch_trace/import/count_by_diff.h"

#include "diff/diff.h"

namespace strata {

Result<ChangeCounts> CountByDiff(const Graph& before, const Graph& after) {
  STRATA_TRY(const GraphDiff diff, Diff(before, after));
  const DiffSummary& summary = diff.summary;
  return ChangeCounts{.inserted = summary.inserted,
                      .deleted = summary.deleted,
                      .changed = int64_t{summary.changed} + summary.derived,
                      .moved = summary.moved};
}

}  // namespace strata
