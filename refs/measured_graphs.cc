#include "refs/measured_graphs.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "diff/code/code_diff.h"
#include "ir/fingerprint.h"
#include "store/merge.h"
#include "store/trace.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"
#include "tlparse-export/torch_trace/export/chrome_trace.h"
#include "tlparse-export/torch_trace/read/decompress.h"

namespace strata {
namespace {

using Nodes = std::vector<NodeId>;

/// What the compiler wrote for the graphs of one direction of a compilation.
struct CodeOfCompilation {
  std::string compilation;
  bool is_backward;
  NodesOfKernels kernels = {};
  std::vector<KernelCall> calls = {};  // in order
};

/// The last snapshot of a graph, with what its nodes are found by.
struct SearchedGraph {
  const History* history;
  int32_t graph;
  LoadedGraph loaded;
  std::map<std::string, Nodes> by_operator;  // `aten::mm`, in order of the program
  std::map<std::string, NodeId, std::less<>> by_name;
  CodeOfCompilation code;
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

Result<std::vector<CodeOfCompilation>> CodeOf(const History& history) {
  std::vector<CodeOfCompilation> all;
  for (size_t i = 0; i < history.code.size(); ++i) {
    const GeneratedCode& generated = history.code[i];
    const bool is_backward = generated.name.ends_with("_backward");
    STRATA_TRY(CodeText text, history.load_code(static_cast<int32_t>(i)));
    auto code = std::ranges::find_if(all, [&](const CodeOfCompilation& other) {
      return other.compilation == generated.compilation && other.is_backward == is_backward;
    });
    if (code == all.end()) code = all.insert(code, {generated.compilation, is_backward});
    for (auto& [name, nodes] : FindKernels(text)) {
      if (!nodes.empty()) code->kernels.try_emplace(name, nodes);
    }
    std::ranges::move(text.calls, std::back_inserter(code->calls));
  }
  return all;
}

/// The code of a graph: kernels of other compilations have the same names. Recordings do not say to
/// which compilation a graph belongs.
CodeOfCompilation FindCode(const std::vector<CodeOfCompilation>& all, const History& history,
                           int32_t graph, const Graph& program) {
  const bool is_log = !history.records.empty();
  const bool is_backward = std::ranges::any_of(program.nodes(), [&](NodeId id) {
    return program.node(id).kind == NodeKind::kPlaceholder &&
           program.name(id).starts_with("tangents_");
  });
  const CodeOfCompilation* best = nullptr;
  for (const CodeOfCompilation& code : all) {
    if (is_log && code.compilation != history.records[static_cast<size_t>(graph)].compilation)
      continue;
    if (best == nullptr || code.is_backward == is_backward) best = &code;
  }
  return best == nullptr ? CodeOfCompilation{} : *best;
}

Result<SearchedGraph> MakeCandidate(const History& history, int32_t graph, int32_t snapshot,
                                    const std::vector<CodeOfCompilation>& code) {
  SearchedGraph candidate{&history, graph, {}, {}, {}, {}};
  STRATA_TRY(candidate.loaded, history.load(snapshot));
  const Graph& program = candidate.loaded.graph();
  for (NodeId id : program.nodes()) {
    candidate.by_name.emplace(program.name(id), id);
    if (program.node(id).kind != NodeKind::kCall) continue;
    candidate.by_operator[ProfiledName(program.op(id))].push_back(id);
  }
  candidate.code = FindCode(code, history, graph, program);
  return candidate;
}

Result<std::vector<SearchedGraph>> CandidatesOf(const std::vector<History>& histories) {
  std::vector<SearchedGraph> candidates;
  for (const History& history : histories) {
    std::map<int32_t, int32_t> last;  // snapshot by graph
    for (const HistoryStep& step : history.steps)
      last[step.graph] = step.after;
    STRATA_TRY(const std::vector<CodeOfCompilation> code, CodeOf(history));
    for (const auto& [graph, snapshot] : last) {
      STRATA_TRY(candidates.emplace_back(), MakeCandidate(history, graph, snapshot, code));
    }
  }
  return candidates;
}

/// The kernel in an event's name: C++ kernels have the number of their graph around them. "": none.
std::string_view KernelIn(const NodesOfKernels& kernels, std::string_view event) {
  std::string_view best;
  for (const auto& [name, nodes] : kernels) {
    if (name == event) return name;
    if (event.ends_with(name) && name.size() > best.size()) best = name;
  }
  return best;
}

/// The operator that generated code calls, `aten::mm`: `extern_kernels.mm`, or
/// `torch.ops.aten.mm.default`. "": none.
std::string CalledOperator(std::string_view call) {
  constexpr std::string_view kExtern = "extern_kernels.", kOps = "torch.ops.";
  if (call.starts_with(kExtern)) return fmt::format("aten::{}", call.substr(kExtern.size()));
  return call.starts_with(kOps) ? ProfiledName(call.substr(kOps.size())) : "";
}

/// Fits calls of a trace to graphs.
class Fitter {
 public:
  explicit Fitter(const SearchedGraph& candidate) : candidate_(candidate) {}

  /// How well the graph explains what ran: items whose nodes are known, and those that contradict.
  std::pair<int64_t, int64_t> Score(const CompiledCalls& calls) const {
    int64_t known = 0, unknown = 0;
    for (const CompiledCalls::Item& item : calls.items)
      ++(IsKnown(item) ? known : unknown);
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
    Times nodes;
    for (const CompiledCalls::Item& item : calls.items) {
      if (!AddItem(item, calls.calls, nodes))
        measured.table.rest.push_back({item.name, static_cast<int64_t>(item.us * 1e3)});
    }
    if (calls.unseen_us > 0) {
      measured.table.rest.push_back(
          {"not seen by the profiler", static_cast<int64_t>(calls.unseen_us * 1e3)});
    }
    for (auto& [id, node] : nodes)
      measured.table.nodes.push_back(node);
    return measured;
  }

 private:
  using Times = std::map<StableId, NodeStatistics>;

  /// Adds the time of an item to its nodes. False: none is known.
  bool AddItem(const CompiledCalls::Item& item, int64_t calls, Times& times) const {
    const std::vector<Nodes> places = NodesByPlace(item);
    for (size_t i = 0; i < places.size(); ++i)
      Share(item.us_of_place[i], places[i], calls, times);
    if (!places.empty()) return true;
    const Nodes nodes = NodesOfKernel(item);
    if (!nodes.empty()) Share(item.us, nodes, calls, times);
    return !nodes.empty();
  }

  void Share(double us, const Nodes& nodes, int64_t calls, Times& times) const {
    for (NodeId id : nodes) {
      const StableId stable_id = candidate_.loaded.graph().node(id).stable_id;
      NodeStatistics& node = times[stable_id];
      node.node = stable_id;
      node.calls = calls;
      node.time_ns += static_cast<int64_t>(us / static_cast<double>(nodes.size()) * 1e3);
    }
  }

  bool IsKnown(const CompiledCalls::Item& item) const {
    return !NodesByPlace(item).empty() || !NodesOfKernel(item).empty();
  }

  /// The nodes of each place at which an item runs in a call: of the calls in the code, else of an
  /// operator the nodes in order. Empty: not known, or not as many.
  std::vector<Nodes> NodesByPlace(const CompiledCalls::Item& item) const {
    const auto op = FindOperator(item.name);
    const bool is_operator = op != candidate_.by_operator.end();
    const std::string_view kernel =
        is_operator ? std::string_view() : KernelIn(candidate_.code.kernels, item.name);
    std::vector<Nodes> places;
    for (const KernelCall& call : candidate_.code.calls) {
      const bool fits = is_operator ? CalledOperator(call.name) == op->first : call.name == kernel;
      if (fits) places.push_back(is_operator ? Among(op->second, call) : NodesNamed(call.nodes));
    }
    const auto count = static_cast<size_t>(item.per_call);
    const bool has_unknown =
        std::ranges::any_of(places, [](const Nodes& nodes) { return nodes.empty(); });
    if (places.size() == count && !has_unknown) return places;
    places.clear();
    if (!is_operator || op->second.size() != count) return places;
    for (NodeId id : op->second)
      places.push_back({id});
    return places;
  }

  /// The nodes of an operator, `nodes`, that a call computes: it is mapped to views before it, too.
  Nodes Among(const Nodes& nodes, const KernelCall& call) const {
    Nodes found = NodesNamed(call.nodes);
    std::erase_if(found, [&](NodeId id) { return std::ranges::find(nodes, id) == nodes.end(); });
    return found;
  }

  /// All nodes of a kernel.
  Nodes NodesOfKernel(const CompiledCalls::Item& item) const {
    const NodesOfKernels& kernels = candidate_.code.kernels;
    const auto kernel = kernels.find(KernelIn(kernels, item.name));
    if (kernel == kernels.end() || FindOperator(item.name) != candidate_.by_operator.end())
      return {};
    return NodesNamed(kernel->second);
  }

  Nodes NodesNamed(const std::vector<std::string>& names) const {
    Nodes nodes;
    for (const std::string& name : names) {
      const auto node = candidate_.by_name.find(name);
      if (node != candidate_.by_name.end()) nodes.push_back(node->second);
    }
    return nodes;
  }

  /// The nodes of a profiled operator. Inductor runs some in place: `all_reduce_` of `all_reduce`.
  std::map<std::string, Nodes>::const_iterator FindOperator(const std::string& name) const {
    const auto found = candidate_.by_operator.find(name);
    if (found != candidate_.by_operator.end() || !name.ends_with('_')) return found;
    return candidate_.by_operator.find(name.substr(0, name.size() - 1));
  }

  const SearchedGraph& candidate_;
};

}  // namespace

Result<std::vector<MeasuredGraph>> MeasureByChrome(const std::vector<History>& histories,
                                                   const std::string& chrome_path) {
  STRATA_TRY(std::string bytes, ReadFile(chrome_path));
  STRATA_TRY(const std::string text, Decompress(std::move(bytes), chrome_path));
  STRATA_TRY(const std::vector<ChromeEvent> events, ReadChromeTrace(text, chrome_path));
  STRATA_TRY(const std::vector<SearchedGraph> candidates, CandidatesOf(histories));
  std::vector<MeasuredGraph> measured;
  std::set<const SearchedGraph*> taken;
  for (const CompiledCalls& calls : FindCompiledCalls(events)) {
    const SearchedGraph* best = nullptr;
    std::pair<int64_t, int64_t> best_score{0, 0};
    for (const SearchedGraph& candidate : candidates) {
      // Of graphs before and after the same passes, the later one ran.
      const auto score = Fitter(candidate).Score(calls);
      if (score.first == 0 || taken.contains(&candidate) || score < best_score) continue;
      best = &candidate;
      best_score = score;
    }
    if (best == nullptr) continue;
    taken.insert(best);
    measured.push_back(Fitter(*best).Measure(calls));
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
  if (!LooksLikeTrace(ref.file)) return NoRecordedTimes(ref.text);
  STRATA_TRY(std::vector<StatisticsTable> tables, RecordedTimes(ref));
  const auto last = std::ranges::find(tables.rbegin(), tables.rend(), FingerprintOf(graph),
                                      &StatisticsTable::fingerprint);
  if (last == tables.rend()) return NoRecordedTimes(ref.text);
  return std::move(*last);
}

Error NoRecordedTimes(const std::string& ref) {
  return Error(
      "no times of this graph: {}: record them with strata train --profile N --trace, or give a "
      "trace of torch.profiler: --chrome of strata profile, --chrome-before and --chrome-after of "
      "strata diff",
      ref);
}

}  // namespace strata
