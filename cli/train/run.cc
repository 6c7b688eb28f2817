#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/same_file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "refs/ref.h"
#include "runtime/aten/operator_library.h"
#include "runtime/aten/threads.h"
#include "runtime/exec/graph_ranks.h"
#include "runtime/exec/graph_run.h"
#include "runtime/exec/profile.h"

namespace strata::cli {
namespace {

struct RunFlags {
  std::string ref;
  std::optional<std::string> inputs, outputs;
  int64_t seed = 0, threads = 0;
  std::vector<std::string> operators;
};

Result<bool> ParseFlags(Args args, RunFlags& out) {
  Flags flags(
      "run",
      "executes a recorded graph; one of several ranks on all of them, as threads, each on its "
      "part of the inputs");
  flags.Positional("REF", &out.ref, "the graph");
  flags.Option("--inputs", "FILE", &out.inputs,
               "safetensors file with the names of the inputs, from train --dump-inputs (default: "
               "synthetic)");
  flags.Option("--seed", "N", &out.seed, "seed of synthetic inputs");
  flags.Option("--outputs", "FILE", &out.outputs,
               "write the outputs, by node name, and the inputs that the graph wrote");
  flags.Threads(&out.threads);
  flags.Operators(&out.operators);
  flags.Example(
      "strata run 't.strata#graph=step' --inputs in.safetensors --outputs out.safetensors");
  return flags.Parse(args);
}

/// `[2, 3]  min 0.5  max 2  mean 1.25`, over the finite elements.
std::string Summary(const at::Tensor& tensor) {
  std::string text = fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
  const ValueStatistics values = Measure(tensor);
  const int64_t others = values.nan_count + values.inf_count;
  if (values.elements > others) {
    text +=
        fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", values.min, values.max, values.mean);
  }
  return others == 0 ? text : fmt::format("{}  {} not finite", text, others);
}

/// A graph of several ranks runs on all of them; its results are wholes, too.
Result<GraphRun> RunSnapshot(const Graph& graph, const RunFlags& flags) {
  std::optional<NamedTensors> given;
  if (flags.inputs) {
    STRATA_TRY(given, LoadTensors(*flags.inputs));
  }
  const auto seed = static_cast<uint64_t>(flags.seed);
  STRATA_TRY(const std::optional<GraphRanks> ranks, GraphRanks::Of(graph));
  if (!ranks) {
    if (given) return RunGraph(graph, *given);
    STRATA_TRY(const NamedTensors drawn, DrawInputs(graph, seed));
    return RunGraph(graph, drawn);
  }
  STRATA_TRY(const std::vector<NamedTensors> inputs,
             given ? ranks->Share(*given) : ranks->Draw(seed));
  const auto num_ranks = static_cast<int>(ranks->mesh().num_ranks());
  return ranks->Run(inputs, std::max(1, NumThreads() / num_ranks));
}

}  // namespace

Result<Exit> RunRun(Args args) {
  RunFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  if (flags.outputs) {
    STRATA_TRY(const Ref ref, ParseRef(flags.ref));
    STRATA_RETURN_IF_ERROR(CheckOutputs(
        std::vector<NamedPath>{{"--outputs", *flags.outputs}},
        std::vector<NamedPath>{{"REF", ref.file}, {"--inputs", flags.inputs.value_or("")}}));
  }
  SetThreads(ChooseThreads(flags.threads));
  STRATA_RETURN_IF_ERROR(LoadOperators(flags.operators));
  STRATA_TRY(const Snapshot snapshot, LoadRef(flags.ref));
  STRATA_TRY(const GraphRun run, RunSnapshot(snapshot.graph(), flags));
  const std::vector<std::pair<std::string, at::Tensor>> results = run.Results();
  std::string table;
  for (const auto& [name, tensor] : results)
    table += fmt::format("{}  {}\n", name, Summary(tensor));
  if (flags.outputs) STRATA_RETURN_IF_ERROR(SaveTensors(*flags.outputs, results));
  STRATA_RETURN_IF_ERROR(WriteFile("-", table));
  return Exit::kOk;
}

}  // namespace strata::cli
