#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/folder.h"
#include "store/trace_reader.h"

namespace strata {

/// The part of a trace to export.
struct ExportSelection {
  std::vector<RunId> runs;                ///< not empty
  std::optional<std::string> graph = {};  ///< this one only, without artifacts
};

struct ExportSummary {
  int64_t files = 0, records = 0, graphs = 0, passes = 0;
  int64_t wrapped = 0;  ///< records that tlparse would refuse as they are
};

/// Writes runs as logs of TORCH_TRACE that `tlparse --strict` takes and that import back to the
/// same graphs, passes and artifacts: `dedicated_log_torch_trace.log` for a single run of rank 0
/// whose log had no rank, else `dedicated_log_torch_trace_rank_<r>.log`. A further run of a rank
/// has
/// `_run_<id>` in its name, because tlparse reads one log per rank.
///
/// An imported run becomes the log that it was, but for checksums, ranks and what is wrapped
/// (log_writer.h). Runs of Strata become: per graph a compilation [0/<place of the graph>] with its
/// first text, `before_<pass>` and `after_<pass>`, the text that was executed, and metrics; outside
/// of compilations configuration, pipeline, steps, events and artifacts. Times count from midnight
/// of January 1st and are those of the passes.
Status ExportTorchTrace(TraceReader& trace, const ExportSelection& selection,
                        const AtomicFolder& folder, ExportSummary& summary);

/// The REF of a graph as `strata show` takes it: run and selector (`graph=joint,pass=3:after`).
using RefOf = std::function<std::string(const StoredRun& run, const std::string& selector)>;

/// Writes each graph of each run as FX text, `<run>/<NNN>_<graph>.txt`, what passes made of it as
/// `<run>/passes/<NNN>_<graph>.txt`, and `index.json`, which names a REF for each:
///
///     {"schema": "strata.export/1",
///      "files": [{"file": "1/001_joint.txt", "run": 1, "rank": 0, "graph": "joint",
///                 "ref": "T#run=1,graph=joint", "fingerprint": "…"}],
///      "passes": [{"run": 1, "rank": 0, "graph": "joint", "ref": "T#run=1,graph=joint,pass=0",
///                  "name": "dce", "status": "ok",
///                  "before": "1/passes/001_joint.txt", "after": "1/001_joint.txt"}]}
///
/// Such a folder imports back to the same graphs and passes (fx_folder.h).
Status ExportFx(TraceReader& trace, const ExportSelection& selection, const RefOf& ref_of,
                const AtomicFolder& folder, ExportSummary& summary);

}  // namespace strata
