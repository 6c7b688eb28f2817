#include "refs/measured_graphs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "diff/code/code_diff.h"
#include "ir/fingerprint.h"
#include "store/merge.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tlparse-export/torch_trace/export/chrome_trace.h"
#include "tlparse-export/torch_trace/read/decompress.h"

namespace strata {
namespace {

using Nodes = std::vector<NodeId>;

/// The last snapshot of a graph, with what its nodes are found by.
struct SearchedGraph {
  const History* history;
  int32_t graph;
  LoadedGraph loaded;
  std::map<std::string, Nodes> by_operator;  // `aten::mm`, in order of the program
  std::map<std::string, NodeId, std::less<>> by_name;
};

/// `aten::mm` of `aten.mm.default`, as the profiler writes it.
std::string ProfiledName(std::string_view op) {
  const size_t library = op.find('.');
  if (library == std::string_view::npos) return "";
  const size_t overload = op.find('.', library + 1);
  return std::string(op.substr(0, library)) + "::" +
         std::string(op.substr(library + 1, overload == std::string_view::npos
                                                ? std::string_view::npos
                                                : overload - library - 1));
}

Result<SearchedGraph> MakeCandidate(const History& history, int32_t graph, int32_t snapshot) {
  SearchedGraph candidate{&history, graph, {}, {}, {}};
  STRATA_TRY(candidate.loaded, history.load(snapshot));
  const Graph& program = candidate.loaded.graph();
  for (NodeId id : program.nodes()) {
    candidate.by_name.emplace(program.name(id), id);
    if (program.node(id).kind != NodeKind::kCall) continue;
    candidate.by_operator[ProfiledName(program.op(id))].push_back(id);
  }
  return candidate;
}

Result<std::vector<SearchedGraph>> CandidatesOf(const std::vector<History>& histories) {
  std::vector<SearchedGraph> candidates;
  for (const History& history : histories) {
    std::map<int32_t, int32_t> last;  // snapshot by graph
    for (const HistoryStep& step : history.steps)
      last[step.graph] = step.after;
    for (const auto& [graph, snapshot] : last) {
      STRATA_TRY(candidates.emplace_back(), MakeCandidate(history, graph, snapshot));
    }
  }
  return candidates;
}

/// The nodes of a history's kernels.
Result<NodesOfKernels> KernelsOf(const History& history) {
  NodesOfKernels kernels;
  for (size_t i = 0; i < history.code.size(); ++i) {
    STRATA_TRY(const CodeText code, history.load_code(static_cast<int32_t>(i)));
    for (auto& [name, nodes] : FindKernels(code)) {
      if (!nodes.empty()) kernels.try_emplace(name, nodes);
    }
  }
  return kernels;
}

/// The kernel in an event's name: C++ kernels have the number of their graph around them.
const std::vector<std::string>* NodesOfKernel(const NodesOfKernels& kernels,
                                              std::string_view event) {
  if (const auto exact = kernels.find(event); exact != kernels.end()) return &exact->second;
  const std::pair<const std::string, std::vector<std::string>>* best = nullptr;
  for (const auto& kernel : kernels) {
    const bool is_longer = best == nullptr || kernel.first.size() > best->first.size();
    if (is_longer && event.ends_with(kernel.first)) best = &kernel;
  }
  return best == nullptr ? nullptr : &best->second;
}

/// Fits calls of a trace to graphs.
class Fitter {
 public:
  Fitter(const SearchedGraph& candidate, const NodesOfKernels& kernels)
      : candidate_(candidate), kernels_(kernels) {}

  /// How well the graph explains what ran: items whose nodes are known, and those that contradict.
  std::pair<int64_t, int64_t> Score(const CompiledCalls& calls) const {
    int64_t known = 0, unknown = 0;
    for (const CompiledCalls::Item& item : calls.items)
      ++(NodesOf(item).empty() ? unknown : known);
    return {known, -unknown};
  }

  MeasuredGraph Measure(const CompiledCalls& calls) const {
    const Graph& graph = candidate_.loaded.graph();
    MeasuredGraph measured;
    measured.run = candidate_.history->ref;
    measured.name = candidate_.history->graphs[static_cast<size_t>(candidate_.graph)];
    measured.graph = candidate_.loaded;
    measured.table.graph = measured.name;
    measured.table.fingerprint = FingerprintOf(graph);
    measured.table.first_step = 1;
    measured.table.last_step = measured.table.steps = calls.calls;
    std::map<StableId, NodeStatistics> nodes;
    for (const CompiledCalls::Item& item : calls.items) {
      const Nodes found = NodesOf(item);
      if (found.empty()) measured.rest.push_back({item.name, static_cast<int64_t>(item.us * 1e3)});
      const bool is_operator = found.size() == item.us_of_place.size() && IsOperator(item);
      for (size_t i = 0; i < found.size(); ++i) {
        const double us =
            is_operator ? item.us_of_place[i] : item.us / static_cast<double>(found.size());
        NodeStatistics& node = nodes[graph.node(found[i]).stable_id];
        node.node = graph.node(found[i]).stable_id;
        node.calls = calls.calls;
        node.time_ns += static_cast<int64_t>(us * 1e3);
      }
    }
    if (calls.unseen_us > 0) {
      measured.rest.push_back(
          {"not seen by the profiler", static_cast<int64_t>(calls.unseen_us * 1e3)});
    }
    for (auto& [id, node] : nodes)
      measured.table.nodes.push_back(node);
    return measured;
  }

 private:
  bool IsOperator(const CompiledCalls::Item& item) const {
    return FindOperator(item.name) != candidate_.by_operator.end();
  }

  /// The nodes of a profiled operator. Inductor runs some in place: `all_reduce_` of `all_reduce`.
  std::map<std::string, Nodes>::const_iterator FindOperator(const std::string& name) const {
    const auto found = candidate_.by_operator.find(name);
    if (found != candidate_.by_operator.end() || !name.ends_with('_')) return found;
    return candidate_.by_operator.find(name.substr(0, name.size() - 1));
  }

  Nodes NodesOf(const CompiledCalls::Item& item) const {
    if (const auto found = FindOperator(item.name); found != candidate_.by_operator.end()) {
      const bool fits = static_cast<int64_t>(found->second.size()) == item.per_call;
      return fits ? found->second : Nodes();
    }
    Nodes nodes;
    const std::vector<std::string>* names = NodesOfKernel(kernels_, item.name);
    if (names == nullptr) return nodes;
    for (const std::string& name : *names) {
      const auto node = candidate_.by_name.find(name);
      if (node != candidate_.by_name.end()) nodes.push_back(node->second);
    }
    return nodes;
  }

  const SearchedGraph& candidate_;
  const NodesOfKernels& kernels_;
};

}  // namespace

Result<std::vector<MeasuredGraph>> MeasureByChrome(const std::vector<History>& histories,
                                                   const std::string& chrome_path) {
  STRATA_TRY(std::string bytes, ReadFile(chrome_path));
  STRATA_TRY(const std::string text, Decompress(std::move(bytes), chrome_path));
  STRATA_TRY(const std::vector<ChromeEvent> events, ReadChromeTrace(text, chrome_path));
  STRATA_TRY(const std::vector<SearchedGraph> candidates, CandidatesOf(histories));
  std::map<const History*, NodesOfKernels> kernels;
  for (const History& history : histories) {
    STRATA_TRY(kernels[&history], KernelsOf(history));
  }
  std::vector<MeasuredGraph> measured;
  std::set<const SearchedGraph*> taken;
  for (const CompiledCalls& calls : FindCompiledCalls(events)) {
    const SearchedGraph* best = nullptr;
    std::pair<int64_t, int64_t> best_score{0, 0};
    for (const SearchedGraph& candidate : candidates) {
      // Of graphs before and after the same passes, the later one ran.
      const auto score = Fitter(candidate, kernels.at(candidate.history)).Score(calls);
      if (score.first == 0 || taken.contains(&candidate) || score < best_score) continue;
      best = &candidate;
      best_score = score;
    }
    if (best == nullptr) continue;
    taken.insert(best);
    measured.push_back(Fitter(*best, kernels.at(best->history)).Measure(calls));
  }
  if (measured.empty()) {
    return Error(
        "no compiled graph that the log knows: {}: profile calls of torch.compile of the "
        "program that wrote the log",
        chrome_path);
  }
  return measured;
}

Status StoreTimes(const std::string& path, const std::vector<MeasuredGraph>& graphs) {
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
  STRATA_TRY(const std::unique_ptr<TraceWriter> with_times,
             TraceWriter::Create(path, TraceWriter::Mode::kAside));
  for (const StoredRun& run : trace->runs()) {
    STRATA_TRY(const RunId id, CopyRun(*trace, run, run.info, *with_times));
    const std::string ref = fmt::format("{}#run={}", path, static_cast<int64_t>(run.id));
    for (const MeasuredGraph& measured : graphs) {
      if (measured.run != ref) continue;
      STRATA_RETURN_IF_ERROR(AddNodeStatistics(*with_times, id, measured.table));
    }
  }
  return with_times->Finish();
}

Result<std::vector<StatisticsTable>> RecordedTimes(const Ref& ref) {
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(ref.file));
  std::vector<StatisticsTable> all;
  for (const StoredRun& run : trace->runs()) {
    if (ref.run && static_cast<int64_t>(run.id) != *ref.run) continue;
    STRATA_TRY(std::vector<StatisticsTable> tables, LoadNodeStatistics(*trace, run));
    std::ranges::move(tables, std::back_inserter(all));
  }
  return all;
}

Result<StatisticsTable> RecordedTimes(const Ref& ref, const Graph& graph) {
  STRATA_TRY(std::vector<StatisticsTable> tables, RecordedTimes(ref));
  const auto last = std::ranges::find(tables.rbegin(), tables.rend(), FingerprintOf(graph),
                                      &StatisticsTable::fingerprint);
  if (last == tables.rend()) return NoRecordedTimes(ref.text);
  return std::move(*last);
}

Error NoRecordedTimes(const std::string& ref) {
  return Error("no times of this graph: {}: record them with strata train --profile N --trace",
               ref);
}

}  // namespace strata
