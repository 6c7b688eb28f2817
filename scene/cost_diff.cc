#include "scene/cost_diff.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "diff/graph/module_path.h"
#include "diff/match/labels.h"
#include "diff/pattern/layers.h"
#include "diff/pattern/titles.h"
#include "scene/cost.h"
#include "scene/memory.h"

namespace strata {
namespace {

/// Sums over the nodes of a diff.
class Adder {
 public:
  Adder(const GraphDiff& diff, const SideCosts& before, const SideCosts& after)
      : diff_(diff), before_(before), after_(after) {}

  void AddBefore(EntityId id, CostChange& change) const {
    change.us -= before_.us[id];
    change.bytes -= before_.bytes[id];
    change.peak -= before_.peak[id];
  }
  void AddAfter(EntityId id, CostChange& change) const {
    change.us += after_.us[id];
    change.bytes += after_.bytes[id];
    change.peak += after_.peak[id];
  }
  void AddPair(PairId id, CostChange& change) const {
    AddBefore(diff_.pairs[id].before, change);
    AddAfter(diff_.pairs[id].after, change);
  }
  void AddHunk(const Hunk& hunk, CostChange& change) const {
    for (EntityId id : hunk.deleted)
      AddBefore(id, change);
    for (EntityId id : hunk.inserted)
      AddAfter(id, change);
    for (PairId id : hunk.pairs)
      AddPair(id, change);
  }

 private:
  const GraphDiff& diff_;
  const SideCosts &before_, &after_;
};

std::vector<CostChange> Sorted(std::vector<CostChange> changes) {
  std::erase_if(changes, IsNone);
  std::ranges::stable_sort(changes, std::greater<>(), [](const CostChange& c) {
    return std::tuple(std::abs(c.us), std::abs(c.bytes), std::abs(c.peak));
  });
  return changes;
}

std::vector<CostChange> ByPattern(const GraphDiff& diff, const Adder& adder) {
  std::vector<CostChange> changes;
  const Titles titles(diff);
  std::set<PairId> in_hunks;
  for (const Hunk& hunk : diff.hunks) {
    in_hunks.insert(hunk.pairs.begin(), hunk.pairs.end());
    if (hunk.pattern.valid()) continue;
    CostChange& change = changes.emplace_back();
    change.what = titles.OfHunk(hunk);
    adder.AddHunk(hunk, change);
  }
  for (const Pattern& pattern : diff.patterns) {
    CostChange& change = changes.emplace_back();
    change.what = pattern.title;
    change.where = pattern.where;
    change.places = static_cast<int64_t>(pattern.hunks.size());
    for (HunkId hunk : pattern.hunks)
      adder.AddHunk(diff.hunks[hunk], change);
  }
  CostChange& same = changes.emplace_back();
  same.what = "nodes that did not change";
  same.places = 0;
  for (PairId id : IdsOf(diff.pairs)) {
    if (!in_hunks.contains(id)) adder.AddPair(id, same);
  }
  return Sorted(std::move(changes));
}

/// Modules of equal layers together: `layers.{0..31}.attention`.
std::vector<CostChange> ByModule(const GraphDiff& diff, const Adder& adder) {
  const Layers before(diff.before, Labels(diff.before, KnownTypeFields(diff.before)));
  const Layers after(diff.after, Labels(diff.after, KnownTypeFields(diff.after)));
  struct Module {
    CostChange change;
    std::set<std::string> paths;
  };
  std::map<std::string, Module> modules;  // by shape
  const auto at = [&](std::string_view path) -> CostChange& {
    Module& module = modules[ModulePathShape(path)];
    module.paths.emplace(path);
    return module.change;
  };
  for (PairId id : IdsOf(diff.pairs))
    adder.AddPair(id, at(before.path(diff.pairs[id].before)));
  for (EntityId id : diff.deleted)
    adder.AddBefore(id, at(before.path(id)));
  for (EntityId id : diff.inserted)
    adder.AddAfter(id, at(after.path(id)));
  std::vector<CostChange> changes;
  for (auto& [shape, module] : modules) {
    module.change.places = static_cast<int64_t>(module.paths.size());
    const std::vector<std::string> paths(module.paths.begin(), module.paths.end());
    module.change.what = shape.empty() ? "outside of modules" : GeneralizeModulePaths(paths).where;
    changes.push_back(std::move(module.change));
  }
  return Sorted(std::move(changes));
}

/// By the pass that made the nodes.
std::vector<CostChange> ByPass(const GraphDiff& diff, const SideCosts& before,
                               const SideCosts& after, const Adder& adder) {
  std::map<std::string, CostChange> passes;
  const auto at = [&](const SideCosts& side, EntityId id) -> CostChange& {
    CostChange& change = passes[side.pass.empty() ? "" : side.pass[id]];
    change.places = 0;
    return change;
  };
  for (EntityId id : diff.before.ids())
    adder.AddBefore(id, at(before, id));
  for (EntityId id : diff.after.ids())
    adder.AddAfter(id, at(after, id));
  std::vector<CostChange> changes;
  if (passes.size() < 2) return changes;  // no pass made a node
  for (auto& [pass, change] : passes) {
    change.what = pass.empty() ? "nodes that no pass made" : pass;
    changes.push_back(std::move(change));
  }
  return Sorted(std::move(changes));
}

std::vector<CostChange> ByNode(const GraphDiff& diff, const Adder& adder) {
  std::vector<CostChange> changes;
  for (PairId id : IdsOf(diff.pairs)) {
    const Pair& pair = diff.pairs[id];
    CostChange& change = changes.emplace_back();
    const std::string before = diff.before.name(pair.before), after = diff.after.name(pair.after);
    change.what = before == after ? before : fmt::format("{} → {}", before, after);
    change.where = OperatorOf(diff.after, pair.after);
    adder.AddPair(id, change);
  }
  for (EntityId id : diff.deleted) {
    CostChange& change = changes.emplace_back();
    change.what = fmt::format("− {}", diff.before.name(id));
    change.where = OperatorOf(diff.before, id);
    adder.AddBefore(id, change);
  }
  for (EntityId id : diff.inserted) {
    CostChange& change = changes.emplace_back();
    change.what = fmt::format("+ {}", diff.after.name(id));
    change.where = OperatorOf(diff.after, id);
    adder.AddAfter(id, change);
  }
  return Sorted(std::move(changes));
}

double Sum(const IdVector<EntityId, double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum;
}

/// Of the graph's own nodes: a node with a body, as a fused kernel, moves its operands and results.
IdVector<EntityId, double> BytesMoved(const Listing& listing) {
  IdVector<EntityId, double> bytes(listing.ids().size(), 0);
  const Graph& root = listing.root();
  for (EntityId id : listing.ids()) {
    const bool is_own = listing.graph(id).id() == root.id();
    if (is_own && !listing[id].element.valid()) bytes[id] = BytesMovedBy(root, listing[id].node);
  }
  return bytes;
}

/// The bytes of each node that live when the graph holds most.
IdVector<EntityId, double> HeldAtPeak(const Listing& listing) {
  IdVector<EntityId, double> held(listing.ids().size(), 0);
  const Graph& graph = listing.root();
  for (const MemoryProfile::Holder& holder : ProfileMemory(graph).holders) {
    EntityId id = listing.FindValue(graph.id(), holder.value);
    if (!id.valid()) id = listing.Find(graph.id(), graph.value(holder.value).def);
    if (id.valid()) held[id] += static_cast<double>(holder.bytes);
  }
  return held;
}

}  // namespace

bool IsNone(const CostChange& change) {
  return std::abs(change.us) < 5e-4 && change.bytes == 0 && change.peak == 0;
}

SideCosts CostsOf(const Listing& listing, const StatisticsTable& table) {
  SideCosts costs;
  costs.us.assign(listing.ids().size(), 0);
  costs.bytes = BytesMoved(listing);
  costs.peak = HeldAtPeak(listing);
  std::map<StableId, const NodeStatistics*> nodes;
  for (const NodeStatistics& node : table.nodes)
    nodes.emplace(node.node, &node);
  for (EntityId id : listing.ids()) {
    const Entity& entity = listing[id];
    if (entity.element.valid()) continue;
    const auto found = nodes.find(listing.graph(id).node(entity.node).stable_id);
    if (found == nodes.end()) continue;
    costs.us[id] = static_cast<double>(found->second->time_ns) / 1e3 /
                   static_cast<double>(std::max<int64_t>(table.steps, 1));
  }
  return costs;
}

CostDiff DiffCosts(const GraphDiff& diff, const SideCosts& before, const SideCosts& after) {
  const Adder adder(diff, before, after);
  CostDiff costs;
  costs.us_before = Sum(before.us) + before.rest_us;
  costs.us_after = Sum(after.us) + after.rest_us;
  costs.bytes_before = Sum(before.bytes);
  costs.bytes_after = Sum(after.bytes);
  costs.peak_before = Sum(before.peak);
  costs.peak_after = Sum(after.peak);
  costs.patterns = ByPattern(diff, adder);
  CostChange rest;
  rest.what = "kernels of no known node";
  rest.us = after.rest_us - before.rest_us;
  if (before.rest_us != 0 || after.rest_us != 0) costs.patterns.push_back(std::move(rest));
  costs.modules = ByModule(diff, adder);
  costs.passes = ByPass(diff, before, after, adder);
  costs.nodes = ByNode(diff, adder);
  return costs;
}

CostComparison ShapeCosts(const GraphDiff& diff) {
  CostComparison costs;
  costs.before = CostsOf(diff.before, StatisticsTable());
  costs.after = CostsOf(diff.after, StatisticsTable());
  costs.changes = DiffCosts(diff, costs.before, costs.after);
  return costs;
}

}  // namespace strata
