#include "cli/train/train_profiles.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "refs/pipeline_actions.h"
#include "store/node_statistics.h"

namespace strata::cli {

Status RecordStep(Recording& recording, const StepReport& report) {
  if (recording.trace() == nullptr) return Ok();
  std::vector<TraceWriter::Executed> executed;
  for (const StepReport::Executed& plan : report.executed)
    executed.push_back({.graph = plan.graph, .fingerprint = plan.fingerprint});
  return recording.trace()->RecordStep(recording.run(),
                                       {.step = report.metrics.step,
                                        .loss = report.metrics.loss,
                                        .grad_norm = report.metrics.grad_norm,
                                        .wall_ns = report.wall.count()},
                                       executed);
}

Status RecordProfiles(Recording& recording, const Trainer& trainer, int64_t first_step,
                      bool has_values, const std::function<bool(int64_t step)>& is_profiled) {
  if (recording.trace() == nullptr) return Ok();
  int64_t last_step = trainer.steps_done();
  while (first_step < last_step && !is_profiled(first_step))
    ++first_step;
  while (first_step < last_step && !is_profiled(last_step))
    --last_step;
  int64_t steps = 0;
  for (int64_t step = first_step; step <= last_step; ++step)
    steps += is_profiled(step) ? 1 : 0;
  std::set<std::string> measured;
  for (const GraphProfile& profile : trainer.Profiles()) {
    StatisticsTable table{.graph = profile.graph,
                          .fingerprint = profile.fingerprint,
                          .first_step = first_step,
                          .last_step = last_step,
                          .steps = std::max<int64_t>(steps, 1),
                          .rank = profile.rank,
                          .nodes = {}};
    for (const auto& [id, node] : profile.nodes) {
      table.nodes.push_back({.node = id,
                             .calls = node.calls,
                             .time_ns = node.time.count(),
                             .bytes = node.bytes,
                             .has_values = has_values,
                             .elements = node.values.elements,
                             .nan_count = node.values.nan_count,
                             .inf_count = node.values.inf_count,
                             .min = node.values.min,
                             .max = node.values.max,
                             .mean = node.values.mean});
    }
    std::ranges::sort(table.nodes, {}, &NodeStatistics::node);
    const bool is_first = measured.insert(table.graph).second;
    STRATA_RETURN_IF_ERROR((is_first ? AddNodeStatistics : AddRankStatistics)(
        *recording.trace(), recording.run(), table));
  }
  return Ok();
}

Status RecordActions(Recording& recording, const Trainer& trainer,
                     std::chrono::steady_clock::time_point start) {
  if (recording.trace() == nullptr || trainer.MeasuredActions().empty()) return Ok();
  const auto begin =
      std::chrono::duration_cast<std::chrono::nanoseconds>(start.time_since_epoch()).count();
  return recording.trace()->AddEvents(
      recording.run(),
      ActionEvents(trainer.MeasuredActions(), trainer.steps_done(), static_cast<double>(begin)));
}

Status RecordKernels(Recording& recording, const Trainer& trainer) {
  if (recording.trace() == nullptr) return Ok();
  for (const GraphKernels& graph : trainer.Kernels()) {
    const bool has_pieces = graph.kernels.back().piece > 0;
    std::string text = has_pieces ? "first\tlast\tmodule\tpiece\n" : "first\tlast\tmodule\n";
    for (const KernelAnnotation& kernels : graph.kernels) {
      text += fmt::format("{}\t{}\t{}", kernels.first, kernels.last, kernels.module);
      text += has_pieces ? fmt::format("\t{}\n", kernels.piece) : "\n";
    }
    const auto added = recording.trace()->AddArtifact(recording.run(), graph.graph + ".kernels.tsv",
                                                      "kernel_annotations", text);
    if (!added) return added.error();
  }
  return Ok();
}

}  // namespace strata::cli
