#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/trace_reader.h"
#include "tlparse-export/report/log_tables.h"
#include "tlparse-export/torch_trace/export/compile_events.h"

/// What a report says, apart from how it looks.
namespace strata {

/// A piece of data of the page, compressed: `data-0` is the first scene, `lines-0` its printed
/// lines, `names-0` and `texts-0` the first of the texts that scenes and lines refer to, `facts`
/// what is counted of each graph.
struct ReportPart {
  std::string id;
  std::string packed;  ///< as Pack makes it
};

struct ReportSnapshot {
  int64_t nodes = 0;
  std::string fingerprint;
  std::string program = {};  ///< see RankProgramsOf; "": the fingerprint
  int32_t facts = -1;        ///< index into the list of the part `facts`; -1: not counted
  int64_t peak = 0;          ///< bytes; 0: not known
  double flops = 0;
};

/// What a pass did, at one or many places: a pattern, or a single hunk.
struct ReportCause {
  std::string title, where;
  std::vector<std::pair<std::string, std::string>> except;  ///< a place, and what happened there
  int64_t places = 1, nodes = 0;
  ChangeCounts counts;
};

struct ReportPass {
  int32_t index = 0;
  std::string name, options, graph, status;  ///< status: "ok", "unchanged", "failed"
  int64_t wall_ns = 0;
  ReportSnapshot before, after;
  ChangeCounts counts;
  int64_t derived = 0;
  std::vector<ReportCause> causes;  ///< most nodes first, a few
  std::string error, reproduce;
  std::string proof;     ///< the recorded verdict; "": none
  std::string selector;  ///< of a REF, without the file
  int32_t detail = -1;   ///< number of its scene; -1: nothing changed
};

struct ReportGraph {
  std::string name;
  ReportSnapshot last;
  std::string selector;
  int32_t detail = -1;  ///< -1: seen in a pass
};

/// How one graph of a compilation became another one.
struct ReportStage {
  std::string from, graph;  ///< names
  ReportSnapshot before, after;
  ChangeCounts counts;
  int64_t derived = 0;
  std::string selector;  ///< of `graph`
  std::string base;      ///< selector of `from`
  bool compared = true;  ///< false: the graphs are too large, see kNodesOfStages
  int32_t detail = -1;   ///< -1: equal, or not compared
};

/// How the graph of one rank differs from that of another one at the same place.
struct ReportRankPair {
  std::string name, graph;
  int32_t index = -1;  ///< of the pass; -1: none
  int64_t run = 0;     ///< of `after`
  ReportSnapshot before, after;
  ChangeCounts counts;
  int64_t derived = 0;
  std::string selector, base;  ///< of both sides
  int32_t detail = -1;         ///< -1: not compared, see kNodesOfRanks
};

struct ReportRun {
  int64_t id = 0;
  std::string kind, status, source, command, pipeline;
  int32_t rank = 0, world = 1;
  bool is_of_all_ranks = false;  ///< see RunInfo
  std::string ranks;             ///< "rank 1 of 4", "ranks 0..3"
  std::vector<ReportGraph> graphs;
  std::vector<ReportPass> passes;
  std::vector<ReportStage> stages;
  std::vector<ExecutedRange> executed;
  std::vector<CompileEvent> events;             ///< what went wrong in compilations
  std::vector<std::string> executed_selectors;  ///< of the snapshot that each range ran
  std::vector<StepRecord> steps;
};

/// Generated code that differs between two runs.
struct ReportCode {
  std::string title;  ///< `inductor_output_code [0/0]: 2 kernels differ`
  std::string text;   ///< each kernel, and its lines
};

struct ReportModel {
  std::string title;
  std::vector<ReportRun> runs;
  std::vector<ReportRankPair> rank_pairs;  ///< every two different graphs of a place
  std::vector<ReportPart> parts;
  std::vector<ReportCode> code;
  std::vector<LogTable> log_tables;   ///< where the logs of ranks diverge
  std::vector<std::string> barcodes;  ///< of each scene, also of those left out
  std::vector<std::string> left_out;  ///< what did not fit, in words
  std::string figure;                 ///< SVG without styles, shown on the first page; "": none
  std::string memory_markup = {};     ///< HTML below the view Memory: a picture of plans
};

/// Comparing graphs of a log that no pass joins takes half a second for about as many nodes, of
/// both sides: beyond this sum, stages of a run are listed only.
inline constexpr int64_t kNodesOfStages = 20'000;
/// So do ranks that differ: beyond this sum the page says that nodes of them were not compared.
inline constexpr int64_t kNodesOfRanks = 20'000;

struct ReportOptions {
  std::string title;                    ///< "": the trace's file name
  size_t max_bytes = size_t{25} << 20;  ///< of the page; what does not fit is left out by name
};

/// Reads a trace and compares the graphs around every pass that changed something.
Result<ReportModel> MakeReport(TraceReader& trace, const ReportOptions& options = {});

/// The report as one HTML file: no network, no other files, data compressed inside.
Result<std::string> ReportHtml(const ReportModel& model);

/// Runs, passes and what else the page shows at once, as JSON.
std::string MainJson(const ReportModel& model);

}  // namespace strata
