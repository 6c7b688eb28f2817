#include "prove/evaluation/rank_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/module.h"
#include "passes/pipeline/slots.h"
#include "passes/placement/placement.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/inputs.h"
#include "prove/evaluation/rank_evaluator.h"

namespace strata::prove {
namespace {

using OnRanks = std::vector<Value>;
using SavedValues = std::map<StageSlot, OnRanks>;

/// What an input is that a graph of the same stage computes; none: another input.
std::optional<StageSlot> SavedSlotOf(const Graph& graph, NodeId placeholder) {
  auto slot = ParseStageSlot(graph.attribute(placeholder, kSlotAttribute));
  if (!slot || (slot->kind != StageSlot::Kind::kSaved && slot->kind != StageSlot::Kind::kKept))
    return std::nullopt;
  return *std::move(slot);
}

/// An integer, or of a size that depends on data.
bool DependsOnOthers(const Graph& graph, NodeId placeholder) {
  const TypeId id = graph.value(graph.result(placeholder)).type;
  if (!id.valid()) return false;
  const Module& module = graph.module();
  const Type& type = module.types()[id];
  if (type.kind == TypeKind::kSymInt || DomainOf(type.dtype) == Domain::kInteger) return true;
  return std::ranges::any_of(type.sizes, [&](DimId dim) { return !module.dims().Hint(dim); });
}

bool NeedsMakers(const Graph& graph) {
  return std::ranges::any_of(graph.placeholders(), [&](NodeId node) {
    return SavedSlotOf(graph, node) && DependsOnOthers(graph, node);
  });
}

uint64_t SeedOfRank(uint64_t seed, int64_t rank) {
  constexpr uint64_t kStride = 0x9e3779b97f4a7c15;  // far from the next seed
  return seed + static_cast<uint64_t>(rank) * kStride;
}

/// The first of the ranks that hold an input as `rank` does.
class Replicas {
 public:
  Replicas(const Graph& graph, NodeId placeholder, const Mesh& mesh, bool has_replicas)
      : mesh_(mesh) {
    const std::string_view type = graph.attribute(placeholder, kGlobalTypeAttribute);
    if (!has_replicas || type.empty()) return;
    Module module;
    placements_ = module.types()[module.types().Parse(type)].placements;
    if (placements_.size() != mesh.axes().size()) placements_.clear();
  }

  int64_t FirstLike(int64_t rank) const {
    if (placements_.empty()) return rank;
    std::vector<int64_t> coordinates = mesh_.Coordinates(rank);
    for (size_t axis = 0; axis < placements_.size(); ++axis)
      if (placements_[axis].kind == Placement::Kind::kReplicate) coordinates[axis] = 0;
    return mesh_.RankAt(coordinates);
  }

 private:
  const Mesh& mesh_;
  Placements placements_;  // by axis; none: every rank has its own
};

/// Saved values where there are any, random ones otherwise.
Result<std::vector<Values>> InputsWith(const SavedValues& saved, const Graph& graph,
                                       const Mesh& mesh, uint64_t seed, bool has_replicas) {
  STRATA_RETURN_IF_ERROR(CheckWork(graph, mesh.num_ranks()));
  std::vector<Values> ranks(static_cast<size_t>(mesh.num_ranks()));
  for (const NodeId node : graph.placeholders()) {
    const std::optional<StageSlot> slot = SavedSlotOf(graph, node);
    const auto found = slot ? saved.find(*slot) : saved.end();
    const Replicas replicas(graph, node, mesh, has_replicas);
    for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
      Values& inputs = ranks[static_cast<size_t>(rank)];
      if (found != saved.end()) {
        inputs.push_back(CopyOf(found->second[static_cast<size_t>(rank)]));
      } else {
        const int64_t first = replicas.FirstLike(rank);
        STRATA_TRY(inputs.emplace_back(), MakeInput(graph, node, SeedOfRank(seed, first), first));
      }
    }
  }
  return ranks;
}

}  // namespace

Result<Mesh> MeshToEvaluate(const Graph& graph) {
  const std::string_view text = graph.attribute(graph.output(), kMeshAttribute);
  if (text.empty()) return Mesh();
  STRATA_TRY(Mesh mesh, Mesh::Parse(text));
  if (mesh.num_ranks() <= kMaxRanks) return mesh;
  return Error("{} ranks are more than a proof evaluates, which is {}", mesh.num_ranks(),
               kMaxRanks);
}

Result<std::vector<Values>> InputsOnRanks(const Graph& graph, const Mesh& mesh, uint64_t seed,
                                          std::span<const Graph* const> makers, bool has_replicas) {
  SavedValues saved;
  if (!makers.empty() && NeedsMakers(graph)) {
    for (const Graph* maker : makers) {
      STRATA_TRY(const std::vector<Values> inputs,
                 InputsWith(saved, *maker, mesh, seed, has_replicas));
      STRATA_TRY(const StageSlots slots, StageSlotsOf(*maker));
      RankEvaluator evaluator(*maker, mesh, seed);
      auto outputs = evaluator.Run(inputs);
      if (!outputs)
        return std::move(outputs).error().In("graph " + std::string(maker->name_text()));
      for (size_t i = 0; i < slots.outputs.size(); ++i) {
        OnRanks& values = saved[slots.outputs[i]];
        values.clear();
        for (const Values& of_rank : *outputs)
          values.push_back(of_rank[i]);
      }
    }
  }
  return InputsWith(saved, graph, mesh, seed, has_replicas);
}

}  // namespace strata::prove
