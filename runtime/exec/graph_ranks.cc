#include "runtime/exec/graph_ranks.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/ops.h"
#include "passes/placement/placement.h"
#include "runtime/ranks/thread_team.h"

namespace strata {
namespace {

using at::Tensor;

bool HasCollective(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](NodeId node) {
    return graph.node(node).kind == NodeKind::kCall && TraitsOf(graph.op(node)).collective;
  });
}

}  // namespace

bool HasGlobalTypes(const Graph& graph) {
  return !graph.attribute(graph.output(), kGlobalTypeAttribute).empty();
}

Result<std::optional<GraphRanks>> GraphRanks::Of(const Graph& graph) {
  const std::string_view text = graph.attribute(graph.output(), kMeshAttribute);
  if (text.empty()) return std::optional<GraphRanks>();
  if (!HasGlobalTypes(graph)) {
    if (!HasCollective(graph)) return std::optional<GraphRanks>();
    return Error(ErrorCode::kUnsupported,
                 "graph {} is a part of a graph of several ranks, which does not tell how they "
                 "hold its values: name the graph before the pass that cut it",
                 graph.name_text());
  }
  STRATA_TRY(Mesh mesh, Mesh::Parse(text));
  STRATA_TRY(const std::vector<Sharding> inputs, InputShardings(graph, mesh));
  GraphRanks ranks(graph, std::move(mesh));
  STRATA_TRY(ranks.outputs_, OutputShardings(graph, ranks.mesh_));
  const std::vector<NodeId> placeholders = graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i)
    ranks.inputs_.emplace_back(InputName(graph, placeholders[i]), inputs[i]);
  return std::optional<GraphRanks>(std::move(ranks));
}

Result<std::vector<NamedTensors>> GraphRanks::Share(const NamedTensors& whole) const {
  std::vector<NamedTensors> shared(static_cast<size_t>(mesh_.num_ranks()), whole);
  for (const auto& [name, sharding] : inputs_) {
    const auto found = whole.find(name);
    if (found == whole.end()) {
      return Error("no input '{}' of graph {} in the file: take that of train --dump-inputs", name,
                   graph_->name_text());
    }
    const Tensor& tensor = found->second;
    if (tensor.sizes() != at::IntArrayRef(sharding.sizes())) {
      return Error("input '{}' of graph {} is [{}] in the file, not [{}]: all ranks share it", name,
                   graph_->name_text(), fmt::join(tensor.sizes(), ", "),
                   fmt::join(sharding.sizes(), ", "));
    }
    for (size_t rank = 0; rank < shared.size(); ++rank)
      shared[rank][name] = sharding.Shard(tensor, static_cast<int64_t>(rank));
  }
  return shared;
}

Result<std::vector<NamedTensors>> GraphRanks::Draw(uint64_t seed) const {
  const auto num_ranks = static_cast<uint64_t>(mesh_.num_ranks());
  std::vector<NamedTensors> parts;
  for (uint64_t part = 0; part < num_ranks; ++part) {
    STRATA_TRY(NamedTensors drawn, DrawInputs(*graph_, seed * num_ranks + part));
    parts.push_back(std::move(drawn));
  }
  std::vector<NamedTensors> drawn(parts.size(), parts.front());
  for (const auto& [name, sharding] : inputs_) {
    for (size_t rank = 0; rank < drawn.size(); ++rank) {
      const auto part = static_cast<size_t>(sharding.PartOf(static_cast<int64_t>(rank)));
      drawn[rank][name] = parts[part].at(name);
    }
  }
  return drawn;
}

Result<GraphRun> GraphRanks::Run(const std::vector<NamedTensors>& inputs, int threads) const {
  std::vector<GraphRun> of_ranks(inputs.size());
  ThreadTeam team(mesh_, {.threads = threads});
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    const auto index = static_cast<size_t>(rank);
    STRATA_TRY(of_ranks[index], RunGraph(*graph_, inputs[index]));
    return Ok();
  }));
  const auto gather = [&](const Sharding& sharding, auto&& part_of) {
    std::vector<Tensor> parts;
    for (const GraphRun& run : of_ranks)
      parts.push_back(part_of(run));
    return sharding.Gather(parts);
  };
  GraphRun whole = of_ranks.front();
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    if (!outputs_[i]) continue;
    whole.outputs[i].tensor =
        gather(*outputs_[i], [&](const GraphRun& run) { return run.outputs[i].tensor; });
  }
  for (size_t i = 0; i < whole.inputs.size(); ++i) {
    const Sharding& sharding = inputs_[i].second;
    GraphRun::Input& input = whole.inputs[i];
    input.tensor = gather(sharding, [&](const GraphRun& run) { return run.inputs[i].tensor; });
    if (!input.before.defined()) continue;
    input.before = gather(sharding, [&](const GraphRun& run) { return run.inputs[i].before; });
  }
  return whole;
}

}  // namespace strata
