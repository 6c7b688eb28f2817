#include "ir/seeded_draws.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

constexpr std::string_view kSeeds = "prims.inductor_seeds.default";
constexpr std::string_view kLookup = "prims.inductor_lookup_seed.default";
constexpr std::string_view kSeededRandom = "prims.inductor_random.default";
constexpr std::string_view kSeededIntegers = "prims.inductor_randint.default";

bool IsCallOf(const Graph& graph, NodeId node, std::string_view op) {
  return graph.node(node).kind == NodeKind::kCall && graph.op(node) == op;
}

bool HasSeed(const Graph& graph, NodeId node) {
  return IsCallOf(graph, node, kSeededRandom) || IsCallOf(graph, node, kSeededIntegers);
}

/// Integers from `low` to below `high`. "": bounds that are not literals.
std::string IntegersOf(const Arg& low, const Arg& high) {
  if (low.kind() != ArgKind::kInt || high.kind() != ArgKind::kInt) return "";
  return fmt::format("integers {} {}", low.as_int(), high.as_int());
}

/// "": the call draws in another way.
std::string DistributionOf(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  const std::span<const Arg> args = graph.args(node);
  if (op == "aten.rand.default") return "rand";
  if (op == "aten.randn.default") return "randn";
  if (op == kSeededRandom && args.size() == 3 && args[2].kind() == ArgKind::kString)
    return std::string(graph.module().str(args[2].str()));
  if (op == "aten.randint.default" && args.size() == 2) return IntegersOf(Arg::Int(0), args[0]);
  if (op == "aten.randint.low" && args.size() == 3) return IntegersOf(args[0], args[1]);
  if (op == kSeededIntegers && args.size() == 4) return IntegersOf(args[0], args[1]);
  return "";
}

/// "rand f32[2,3,]": distribution and type of what a call draws. "": it draws in another way.
std::string DrawText(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || graph.node(node).num_results != 1) return "";
  const std::string distribution = DistributionOf(graph, node);
  const TypeId id = graph.value(graph.result(node)).type;
  if (distribution.empty() || !id.valid()) return "";
  const Type& type = graph.module().types()[id];
  std::string text = fmt::format("{} {}[", distribution, ShortName(type.dtype));
  for (const DimId size : type.sizes)
    text += graph.module().dims().ToString(size) + ",";
  return text + "]";
}

/// The seed that a call reads: the name of the seeds, and which of them. "": another value.
std::pair<std::string_view, int64_t> SeedOf(const Graph& graph, NodeId random) {
  const std::span<const Arg> args = graph.args(random);
  const size_t position = graph.op(random) == kSeededRandom ? 1 : 3;
  if (position >= args.size() || !args[position].is_value()) return {};
  const NodeId lookup = graph.value(args[position].value()).def;
  if (!IsCallOf(graph, lookup, kLookup) || graph.args(lookup).size() != 2) return {};
  const Arg &seeds = graph.args(lookup)[0], &index = graph.args(lookup)[1];
  if (!seeds.is_value() || index.kind() != ArgKind::kInt) return {};
  return {graph.value_name(seeds.value()), index.as_int()};
}

}  // namespace

SeededDraws::SeededDraws(const Graph& before, std::span<const Graph* const> after) {
  bool is_paired = true;
  std::vector<std::string> drawn;  // by seed
  for (const NodeId node : before.nodes()) {
    is_paired = is_paired && !HasSeed(before, node);  // calls with seeds are the same in both
    if (!TraitsOf(before, node).random) continue;
    draws_.push_back(node);
    drawn.push_back(DrawText(before, node));
  }
  std::set<std::string_view> seeds;
  std::set<size_t> used;
  for (const Graph* graph : after) {
    for (const NodeId node : graph->nodes()) {
      if (!HasSeed(*graph, node)) {
        const bool draws = graph->node(node).kind == NodeKind::kCall &&
                           TraitsOf(*graph, node).random && !IsCallOf(*graph, node, kSeeds);
        is_paired = is_paired && !draws;
        continue;
      }
      const auto [name, index] = SeedOf(*graph, node);
      const auto seed = static_cast<size_t>(index);
      is_paired = is_paired && !name.empty() && seed < drawn.size() && !drawn[seed].empty() &&
                  drawn[seed] == DrawText(*graph, node);
      seeds.insert(name);
      used.insert(seed);
      seed_of_[graph].emplace(node, seed);
    }
  }
  if (!is_paired || seeds.size() != 1 || used.size() != draws_.size()) draws_.clear();
}

std::string SeededDraws::Text() const {
  return fmt::format("calls with seeds draw what the {} random calls before drew, in order",
                     draws_.size());
}

bool SeededDraws::IsDraw(NodeId node) const {
  return std::ranges::find(draws_, node) != draws_.end();
}

NodeId SeededDraws::DrawOf(const Graph& after, NodeId node) const {
  const auto of_graph = seed_of_.find(&after);
  if (empty() || of_graph == seed_of_.end()) return {};
  const auto seed = of_graph->second.find(node);
  return seed == of_graph->second.end() ? NodeId{} : draws_[seed->second];
}

bool IsSeed(const Graph& graph, NodeId node) {
  return IsCallOf(graph, node, kSeeds) || IsCallOf(graph, node, kLookup);
}

}  // namespace strata
