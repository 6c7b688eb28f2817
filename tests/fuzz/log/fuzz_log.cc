#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tlparse-export/torch_trace/read/log_select.h"

// Any bytes are a log; what it says of graphs and passes is consistent, and every graph of it can
// be chosen.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(LooksLikeLog(text));
  const Result<LogContent> log = ReadLog(text, "fuzz.log");
  STRATA_CHECK(log.has_value());
  const Result<LogContent> strict = ReadLog(text, "fuzz.log", {.strict = true});
  STRATA_CHECK(strict.has_value() == (log->num_diagnostics == 0));
  for (const LogRun& run : log->runs) {
    for (const LogGraph& graph : run.graphs) {
      STRATA_CHECK(!graph.snapshots.empty());
      for (const LogSnapshot& snapshot : graph.snapshots) {
        STRATA_CHECK(log->payloads[static_cast<size_t>(snapshot.payload)].is_graph);
        static_cast<void>(log->Parse(run, graph, snapshot));
      }
      LogSelector selector;
      selector.rank = run.rank;
      selector.graph = graph.name;
      const auto choices = Choose(*log, selector);
      STRATA_CHECK(choices.has_value() && !choices->empty());
    }
    for (const LogPass& pass : run.passes) {
      STRATA_CHECK(pass.before < pass.after);
      STRATA_CHECK(pass.after < run.graphs[pass.graph].snapshots.size());
    }
  }
  return 0;
}
