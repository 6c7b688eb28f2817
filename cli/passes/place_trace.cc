#include "cli/passes/place_trace.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/config/config.h"
#include "runtime/train/placed_step.h"

namespace strata::cli {
namespace {

/// The fields of the configuration that make `mesh`.
Result<std::vector<std::string>> Degrees(const Mesh& mesh) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFields = {{
      {"dp_replicate", "data_parallel_replicate_degree"},
      {"fsdp", "data_parallel_shard_degree"},
      {"cp", "context_parallel_degree"},
      {"tp", "tensor_parallel_degree"},
      {"ep", "expert_parallel_degree"},
  }};
  std::vector<std::string> degrees;
  std::vector<bool> is_known(mesh.axes().size());
  for (const auto& [axis, field] : kFields) {
    const MeshAxis* found = mesh.Find(axis);
    degrees.push_back(fmt::format("parallelism.{}={}", field, found == nullptr ? 1 : found->size));
    for (const size_t part : mesh.PartsOf(axis))
      is_known[part] = true;
  }
  for (size_t axis = 0; axis < is_known.size(); ++axis) {
    if (!is_known[axis]) {
      return Error("no degree makes the axis '{}': mesh {}: name dp_replicate, fsdp, cp, tp and ep",
                   mesh.axes()[axis].name, mesh.Text());
    }
  }
  return degrees;
}

}  // namespace

Result<std::unique_ptr<Module>> TraceForPlacement(const std::string& config,
                                                  const std::vector<std::string>& overrides,
                                                  const Mesh& mesh) {
  std::vector<std::string> fields = overrides;
  STRATA_TRY(const std::vector<std::string> degrees, Degrees(mesh));
  fields.insert(fields.end(), degrees.begin(), degrees.end());
  STRATA_TRY(const TrainConfig loaded, LoadTrainConfig(config, fields));
  if (loaded.HasOwnModel()) {
    return Error("models of yours train on one rank: {}: there is nothing to place",
                 loaded.model_path);
  }
  return TraceUnplaced(loaded);
}

Result<int64_t> BatchSizeOfConfig(const std::string& config,
                                  const std::vector<std::string>& overrides) {
  STRATA_TRY(const TrainConfig loaded, LoadTrainConfig(config, overrides));
  return loaded.batch_size;
}

}  // namespace strata::cli
