#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/result.h"
#include "store/trace.h"

/// What a report says, apart from how it looks.
namespace strata {

/// A graph at one moment, or the difference of two, ready to draw; see scene_json.h.
struct ReportDetail {
  std::string title;  ///< of its graph or pass, for the list of what was left out
  std::string json;   ///< empty: left out
};

struct ReportMoment {
  int64_t nodes = 0;
  std::string fingerprint;
};

struct ReportPass {
  int32_t index = 0;
  std::string name, options, graph, status;  ///< status: "ok", "unchanged", "failed"
  int64_t wall_ns = 0;
  ReportMoment before, after;
  ChangeCounts counts;
  int64_t derived = 0;
  std::string error, reproduce;
  std::string selector;  ///< of a REF, without the file
  int32_t detail = -1;   ///< index into ReportModel::details; -1: nothing changed
};

struct ReportGraph {
  std::string name;
  ReportMoment last;
  std::string selector;
  int32_t detail = -1;  ///< -1: seen in a pass
};

struct ReportRun {
  int64_t id = 0;
  std::string kind, status, source, command, pipeline;
  int32_t rank = 0, world = 1;
  std::vector<ReportGraph> graphs;
  std::vector<ReportPass> passes;
  std::vector<ExecutedRange> executed;
  std::vector<std::string> executed_selectors;  ///< of the snapshot that each range ran
  std::vector<StepRecord> steps;
  std::vector<ArtifactInfo> artifacts;
};

struct ReportModel {
  std::string title;
  std::vector<ReportRun> runs;
  std::vector<ReportDetail> details;
};

struct ReportOptions {
  std::string title;                           ///< "": the trace's file name
  size_t max_detail_bytes = size_t{96} << 20;  ///< of all details together, before compression
};

/// Reads a trace and compares the graphs around every pass that changed something.
Result<ReportModel> MakeReport(TraceReader& trace, const ReportOptions& options = {});

/// The report as one HTML file: no network, no other files, data compressed inside.
Result<std::string> ReportHtml(const ReportModel& model);

}  // namespace strata
