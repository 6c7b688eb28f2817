#include "tlparse-export/torch_trace/read/log_select.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/selector.h"
#include "base/suggest.h"
#include "base/text.h"

namespace strata {
namespace {

Error NoGraphs(const LogContent& log) {
  return Error(ErrorCode::kNotFound, "no graphs: {}: 'strata ls' shows what the log has", log.path);
}

Error NotThere(const LogContent& log, std::string_view kind, std::string_view name,
               std::vector<std::string> there) {
  std::vector<std::string> names;
  for (std::string& n : there) {
    if (std::ranges::find(names, n) == names.end()) names.push_back(std::move(n));
  }
  constexpr size_t kShown = 12;
  const std::string has =
      names.empty() ? "the log has none" : fmt::format("the log has {}", Enumerate(names, kShown));
  const bool is_number = kind == "run" || kind == "rank";
  return Error(ErrorCode::kNotFound, "no {} '{}': {}: {}{}", kind, name, log.path, has,
               is_number ? std::string() : DidYouMean(name, names));
}

bool IsPass(const std::string& wanted, const LogPass& pass) {
  constexpr std::string_view kEllipsis = "…";
  if (wanted == pass.name || wanted == std::to_string(pass.index)) return true;
  return wanted.ends_with(kEllipsis) &&
         pass.name.starts_with(wanted.substr(0, wanted.size() - kEllipsis.size()));
}

struct Run {
  const LogRun* run;
  int64_t id;
};

Result<std::vector<Run>> ChooseRuns(const LogContent& log, const LogSelector& selector) {
  std::vector<Run> runs;
  std::vector<std::string> ids, ranks;
  for (size_t i = 0; i < log.runs.size(); ++i) {
    const Run run{&log.runs[i], static_cast<int64_t>(i) + 1};
    ids.push_back(std::to_string(run.id));
    ranks.push_back(std::to_string(run.run->rank));
    const bool fits = (!selector.run || *selector.run == run.id) &&
                      (!selector.rank || *selector.rank == run.run->rank);
    if (fits) runs.push_back(run);
  }
  if (!runs.empty()) return runs;
  if (selector.rank) return NotThere(log, "rank", std::to_string(*selector.rank), ranks);
  if (selector.run) return NotThere(log, "run", std::to_string(*selector.run), ids);
  return NoGraphs(log);
}

/// Whether a graph begins with a snapshot of an earlier graph.
bool IsElsewhere(const LogRun& run, size_t graph) {
  const size_t record = run.graphs[graph].snapshots[0].record;
  return std::ranges::any_of(std::span(run.graphs).first(graph), [&](const LogGraph& other) {
    return std::ranges::find(other.snapshots, record, &LogSnapshot::record) !=
           other.snapshots.end();
  });
}

Result<std::vector<LogChoice>> ChoosePasses(const LogContent& log, const std::vector<Run>& runs,
                                            const LogSelector& selector) {
  std::vector<LogChoice> choices;
  std::vector<std::string> names;
  for (const Run& run : runs) {
    for (const LogPass& pass : run.run->passes) {
      names.push_back(pass.name);
      const std::string& graph = run.run->graphs[pass.graph].name;
      if (!IsPass(*selector.pass, pass) || (selector.graph && *selector.graph != graph)) continue;
      choices.push_back({run.run, pass.graph, selector.before ? pass.before : pass.after,
                         fmt::format("run={},graph={},pass={}:{}", run.id, SelectorValue(graph),
                                     pass.index, selector.before ? "before" : "after")});
    }
  }
  if (choices.empty()) return NotThere(log, "pass", *selector.pass, std::move(names));
  return choices;
}

}  // namespace

Result<std::vector<LogChoice>> Choose(const LogContent& log, const LogSelector& selector) {
  STRATA_TRY(const std::vector<Run> runs, ChooseRuns(log, selector));
  if (selector.pass) return ChoosePasses(log, runs, selector);

  std::vector<LogChoice> choices, records;
  std::vector<std::string> names;
  for (const Run& run : runs) {
    for (size_t i = 0; i < run.run->graphs.size(); ++i) {
      const LogGraph& graph = run.run->graphs[i];
      names.push_back(graph.name);
      if (!selector.graph || *selector.graph == graph.name) {
        choices.push_back({run.run, i, graph.snapshots.size() - 1,
                           fmt::format("run={},graph={}", run.id, SelectorValue(graph.name))});
      }
      for (size_t m = 0; m < graph.snapshots.size() && selector.graph; ++m) {
        const std::string& record = run.run->records[graph.snapshots[m].record].name;
        const bool continues = m == 0 && IsElsewhere(*run.run, i);
        if (record != *selector.graph || continues) continue;
        records.push_back(
            {run.run, i, m, fmt::format("run={},graph={}", run.id, SelectorValue(record))});
      }
    }
  }
  if (!choices.empty()) return choices;
  if (!records.empty()) return records;
  if (!selector.graph) return NoGraphs(log);
  return NotThere(log, "graph", *selector.graph, std::move(names));
}

}  // namespace strata
