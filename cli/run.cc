#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/ref.h"
#include "ir/file.h"
#include "runtime/torch/values.h"

namespace strata::cli {
namespace {

struct RunFlags {
  std::string ref;
  std::optional<std::string> inputs, outputs;
  int64_t seed = 0;
};

Result<bool> ParseFlags(Args args, RunFlags& out) {
  Flags flags("run", "executes a graph as it was recorded");
  flags.Positional("REF", &out.ref, "the graph");
  flags.Option("--inputs", "FILE", &out.inputs,
               "safetensors, named as the inputs: of train --dump-inputs (default: made up)");
  flags.Option("--seed", "N", &out.seed, "of the inputs that are made up");
  flags.Option("--outputs", "FILE", &out.outputs, "write the outputs, named as their nodes");
  flags.Example(
      "strata run 't.strata#graph=step' --inputs in.safetensors --outputs out.safetensors");
  return flags.Parse(args);
}

/// `mean  0.25  min …  max …`, over the finite elements.
std::string Summary(const at::Tensor& tensor) {
  std::string sizes = fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
  if (tensor.numel() == 0 || tensor.is_complex()) return sizes;
  const at::Tensor numbers = tensor.to(at::kDouble);
  const at::Tensor finite = numbers.masked_select(at::isfinite(numbers));
  const int64_t others = numbers.numel() - finite.numel();
  if (finite.numel() == 0) return fmt::format("{}  {} not finite", sizes, others);
  std::string text =
      fmt::format("{}  min {:.6g}  max {:.6g}  mean {:.6g}", sizes, finite.min().item<double>(),
                  finite.max().item<double>(), finite.mean().item<double>());
  return others == 0 ? text : fmt::format("{}  {} not finite", text, others);
}

}  // namespace

Result<Exit> RunRun(Args args) {
  RunFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Snapshot snapshot, LoadRef(flags.ref));
  NamedTensors inputs;
  if (flags.inputs) {
    STRATA_TRY(inputs, LoadTensors(*flags.inputs));
  } else {
    STRATA_TRY(inputs, DrawInputs(snapshot.graph(), static_cast<uint64_t>(flags.seed)));
  }
  STRATA_TRY(const auto outputs, RunGraph(snapshot.graph(), inputs));
  std::string table;
  for (const auto& [name, tensor] : outputs)
    table += fmt::format("{}  {}\n", name, Summary(tensor));
  if (flags.outputs) STRATA_RETURN_IF_ERROR(SaveTensors(*flags.outputs, outputs));
  STRATA_RETURN_IF_ERROR(WriteFile("-", table));
  return Exit::kOk;
}

}  // namespace strata::cli
