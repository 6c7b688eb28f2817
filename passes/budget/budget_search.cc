#include "passes/budget/budget_search.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "ir/by_node.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/recompute.h"
#include "passes/memory/tag_memory.h"

namespace strata {
namespace {

bool IsForwardCall(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall && !IsBackward(graph, node);
}

/// Nodes that are one in all layers: the path inside the layer, the operator, and which of those.
using NodeClass = std::tuple<std::string, std::string, int>;

std::map<NodeClass, std::vector<NodeId>> ClassesOf(const Graph& graph) {
  std::map<std::tuple<int64_t, std::string, std::string>, int> counts;
  std::map<NodeClass, std::vector<NodeId>> classes;
  for (const NodeId node : graph.nodes()) {
    if (!IsForwardCall(graph, node)) continue;
    std::string path(ModuleOf(graph, node));
    const int64_t layer = LayerNumber(path);
    if (layer != kNotInLayers)
      path = "layer" + path.substr(std::min(path.size(), path.find('.', 7)));
    const std::string op(graph.op(node));
    const int count = counts[{layer, path, op}]++;
    classes[{path, op, count}].push_back(node);
  }
  return classes;
}

}  // namespace

BudgetSearch::BudgetSearch(const Module& module, GraphId graph, const MemoryCosts& costs,
                           Options options, PeakOracle oracle)
    : module_(module),
      graph_(module.graph(graph)),
      costs_(costs),
      options_(options),
      oracle_(std::move(oracle)),
      network_(graph_, costs) {
  std::set<int64_t> layers;
  for (const NodeId node : graph_.nodes())
    layers.insert(LayerNumber(ModuleOf(graph_, node)));
  layers.erase(kNotInLayers);
  layers_.assign(layers.begin(), layers.end());
}

/// Names of nodes are unique, and copies say whose copies they are.
void BudgetSearch::AddCosts(const Graph& changed, Price& price) const {
  std::map<std::string_view, NodeId> nodes;
  for (const NodeId node : graph_.nodes())
    nodes.emplace(graph_.name(node), node);
  for (const NodeId node : changed.nodes()) {
    const std::string_view from = changed.attribute(node, kRecomputedFromAttribute);
    if (!from.empty()) {
      price.us += costs_.RecomputeUs(nodes.at(from));
      ++price.num_recomputed;
    }
    if (changed.op(node) != kOffloadOp) continue;
    const TypeId type = changed.value(changed.result(node)).type;
    price.us += costs_.offload_us_per_byte *
                static_cast<double>(changed.module().types().Bytes(type).value_or(0));
    ++price.num_offloaded;
  }
}

BudgetedPlan BudgetSearch::PlanOf(MemoryPlanTags tags, const Price& price) {
  return {.tags = std::move(tags),
          .peak_bytes = price.peak_bytes,
          .us = price.us,
          .num_recomputed = price.num_recomputed,
          .num_offloaded = price.num_offloaded};
}

Result<BudgetSearch::Price> BudgetSearch::Measure(const MemoryPlanTags& tags) const {
  const std::unique_ptr<Module> copy = module_.Clone();
  Graph& graph = copy->graph(graph_.id());
  ApplyMemoryPolicy(graph, [&](const Graph&, NodeId node) { return tags[node]; });
  if (auto done = Recompute().Run(*copy); !done) return std::move(done).error();
  if (auto done = Offload(options_.copies).Run(*copy); !done) return std::move(done).error();
  Price price;
  AddCosts(graph, price);
  STRATA_TRY(price.peak_bytes, oracle_(*copy, graph_.id()));
  return price;
}

Result<BudgetSearch::Price> BudgetSearch::PriceOf(const MemoryPlanTags& tags) {
  if (const auto found = known_.find(tags.values()); found != known_.end()) return found->second;
  STRATA_TRY(const Price price, Measure(tags));
  known_.emplace(tags.values(), price);
  return price;
}

Result<BudgetedPlan> BudgetSearch::Priced(MemoryPlanTags tags) {
  STRATA_TRY(const Price price, PriceOf(tags));
  return PlanOf(std::move(tags), price);
}

std::optional<std::vector<NodeId>> BudgetSearch::FewChoices() const {
  const IdVector<NodeId, int64_t> offloadable = OffloadableBytes(graph_);
  std::vector<NodeId> nodes;
  size_t states = 1;
  for (const NodeId node : graph_.nodes()) {
    if (!IsForwardCall(graph_, node) || IsViewNode(graph_, node)) continue;
    states *= options_.offload && offloadable[node] > 0 ? 3 : 2;
    nodes.push_back(node);
    if (states > kMostStates) return std::nullopt;
  }
  return nodes;
}

Result<std::optional<BudgetedPlan>> BudgetSearch::FitOneByOne(const std::vector<NodeId>& nodes,
                                                              int64_t bytes) {
  const IdVector<NodeId, int64_t> offloadable = OffloadableBytes(graph_);
  MemoryPlanTags tags = ByNode(graph_, MemoryTag::kMustRecompute);
  for (const NodeId node : nodes)
    tags[node] = MemoryTag::kMustSave;
  std::optional<BudgetedPlan> best;
  for (;;) {
    STRATA_TRY(const Price price, PriceOf(tags));
    if (price.peak_bytes <= bytes && (!best || price.us < best->us)) best = PlanOf(tags, price);
    // The next combination, as a number whose digits are tags.
    size_t digit = 0;
    for (; digit < nodes.size(); ++digit) {
      MemoryTag& tag = tags[nodes[digit]];
      const bool can_offload = options_.offload && offloadable[nodes[digit]] > 0;
      if (tag == MemoryTag::kMustSave) {
        tag = MemoryTag::kMustRecompute;
        break;
      }
      if (tag == MemoryTag::kMustRecompute && can_offload) {
        tag = MemoryTag::kMustCpuOffload;
        break;
      }
      tag = MemoryTag::kMustSave;
    }
    if (digit == nodes.size()) return best;
  }
}

MemoryPlanTags BudgetSearch::Mix(const MemoryPlanTags& more, const MemoryPlanTags& fewer,
                                 size_t count) const {
  if (count >= layers_.size()) return fewer;
  MemoryPlanTags mixed = more;
  for (const NodeId node : graph_.nodes()) {
    const int64_t layer = LayerNumber(ModuleOf(graph_, node));
    if (layer != kNotInLayers && layer < layers_[count]) mixed[node] = fewer[node];
  }
  return mixed;
}

Result<std::optional<BudgetedPlan>> BudgetSearch::FitByNetwork(bool offloads, int64_t bytes) {
  STRATA_TRY(const std::vector<MemoryPlanTags> plans, network_.Front(offloads));
  const auto fits = [&](const MemoryPlanTags& tags) -> Result<bool> {
    STRATA_TRY(const Price price, PriceOf(tags));
    return price.peak_bytes <= bytes;
  };
  // Peaks fall along the plans, though not every one: `fitting` fits always.
  size_t fitting = plans.size();
  for (size_t i = plans.size(); i-- > 0 && fitting == plans.size();) {
    STRATA_TRY(const bool does, fits(plans[i]));
    if (does) fitting = i;
  }
  if (fitting == plans.size()) return std::optional<BudgetedPlan>();
  for (size_t first = 0; first < fitting;) {
    const size_t middle = (first + fitting) / 2;
    STRATA_TRY(const bool does, fits(plans[middle]));
    (does ? fitting : first) = does ? middle : middle + 1;
  }
  MemoryPlanTags best = plans[fitting];
  for (size_t first = 1, last = layers_.size(); fitting > 0 && first < last;) {
    const size_t middle = (first + last) / 2;
    MemoryPlanTags mixed = Mix(plans[fitting - 1], plans[fitting], middle);
    STRATA_TRY(const bool does, fits(mixed));
    if (does) best = std::move(mixed);
    (does ? last : first) = does ? middle : middle + 1;
  }
  STRATA_TRY(BudgetedPlan plan, Priced(std::move(best)));
  return std::optional(std::move(plan));
}

Result<BudgetedPlan> BudgetSearch::SaveMore(BudgetedPlan plan, int64_t bytes) {
  struct Gain {
    double us_per_byte = 0;
    const std::vector<NodeId>* nodes = nullptr;
  };
  const std::map<NodeClass, std::vector<NodeId>> classes = ClassesOf(graph_);
  std::vector<Gain> gains;
  for (const auto& [key, nodes] : classes) {
    double us = 0, size = 0;
    for (const NodeId node : nodes) {
      if (plan.tags[node] != MemoryTag::kMustRecompute || IsViewNode(graph_, node)) continue;
      us += costs_.RecomputeUs(node);
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        const TypeId type = graph_.value(graph_.result(node, i)).type;
        if (type.valid())
          size += static_cast<double>(graph_.module().types().Bytes(type).value_or(0));
      }
    }
    if (us > 0) gains.push_back({.us_per_byte = us / std::max(size, 1.0), .nodes = &nodes});
  }
  std::ranges::stable_sort(gains, std::ranges::greater(), &Gain::us_per_byte);
  int tries = 0;
  for (const Gain& gain : gains) {
    if (++tries > kMostRefinements) break;
    MemoryPlanTags more = plan.tags;
    for (const NodeId node : *gain.nodes) {
      if (more[node] == MemoryTag::kMustRecompute) more[node] = MemoryTag::kMustSave;
    }
    STRATA_TRY(const Price price, PriceOf(more));
    if (price.peak_bytes <= bytes && price.us < plan.us) plan = PlanOf(std::move(more), price);
  }
  return plan;
}

Result<BudgetedPlan> BudgetSearch::Fit(int64_t bytes) {
  std::optional<BudgetedPlan> best;
  if (const auto nodes = FewChoices()) {
    STRATA_TRY(best, FitOneByOne(*nodes, bytes));
  } else {
    for (const bool offloads : {false, true}) {
      if (offloads && !options_.offload) continue;
      STRATA_TRY(std::optional<BudgetedPlan> plan, FitByNetwork(offloads, bytes));
      if (plan && (!best || plan->us < best->us)) best = std::move(plan);
    }
    if (best) {
      STRATA_TRY(best, SaveMore(*std::move(best), bytes));
    }
  }
  if (best) return *std::move(best);
  const auto smallest = std::ranges::min_element(
      known_, {}, [](const auto& entry) { return entry.second.peak_bytes; });
  return Error(
      "no plan holds the memory budget: graph {}: {} bytes; the smallest peak that was found is {} "
      "bytes: raise the budget",
      graph_.name_text(), bytes, smallest->second.peak_bytes);
}

Result<std::vector<BudgetedPlan>> BudgetSearch::Front() {
  std::vector<BudgetedPlan> all;
  for (const bool offloads : {false, true}) {
    if (offloads && !options_.offload) continue;
    STRATA_TRY(const std::vector<MemoryPlanTags> plans, network_.Front(offloads));
    for (size_t i = 0; i < plans.size(); ++i) {
      for (const size_t half : {layers_.size() / 2, layers_.size()}) {
        STRATA_TRY(BudgetedPlan plan,
                   Priced(Mix(plans[i == 0 ? 0 : i - 1], plans[i], std::max<size_t>(half, 1))));
        all.push_back(std::move(plan));
      }
    }
  }
  std::ranges::stable_sort(
      all, {}, [](const BudgetedPlan& plan) { return std::pair(plan.peak_bytes, plan.us); });
  std::vector<BudgetedPlan> front;
  for (BudgetedPlan& plan : all) {
    if (front.empty() || plan.us < front.back().us) front.push_back(std::move(plan));
  }
  return front;
}

}  // namespace strata
