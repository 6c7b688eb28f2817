#include "cli/render/cost_text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"
#include "diff/graph/module_path.h"
#include "diff/match/labels.h"
#include "diff/pattern/layers.h"
#include "diff/pattern/titles.h"

namespace strata::cli {
namespace {

/// Sums over the nodes of a diff.
class Adder {
 public:
  Adder(const GraphDiff& diff, const SideCosts& before, const SideCosts& after)
      : diff_(diff), before_(before), after_(after) {}

  void AddBefore(EntityId id, CostChange& change) const {
    change.us -= before_.us[id];
    change.bytes -= before_.bytes[id];
  }
  void AddAfter(EntityId id, CostChange& change) const {
    change.us += after_.us[id];
    change.bytes += after_.bytes[id];
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
  std::erase_if(changes, [](const CostChange& c) { return std::abs(c.us) < 5e-4 && c.bytes == 0; });
  std::ranges::stable_sort(changes, std::greater<>(), [](const CostChange& c) {
    return std::pair(std::abs(c.us), std::abs(c.bytes));
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

void AppendList(std::string_view title, const std::vector<CostChange>& changes, size_t shown,
                std::string& out) {
  if (changes.empty()) return;
  out += fmt::format("\n{}\n", title);
  const size_t end = shown == 0 ? changes.size() : std::min(shown, changes.size());
  const bool any_bytes =
      std::ranges::any_of(changes, [](const CostChange& change) { return change.bytes != 0; });
  for (const CostChange& change : std::span(changes).first(end)) {
    out += fmt::format("  {:>+10.1f} us", change.us);
    if (any_bytes) out += fmt::format("  {:>+14.0f} bytes", change.bytes);
    out += change.places > 1 ? fmt::format("  {:>4}×", change.places) : "       ";
    out += fmt::format("  {}", Visible(change.what));
    if (!change.where.empty()) out += fmt::format("  {}", Visible(change.where));
    out += '\n';
  }
  if (end < changes.size()) out += fmt::format("  … {} more\n", changes.size() - end);
}

void WriteList(JsonWriter& json, std::string_view key, const std::vector<CostChange>& changes) {
  json.Break(2).Key(key).BeginArray();
  for (const CostChange& change : changes) {
    json.Break(4).BeginObject().Field("what", change.what).Field("where", change.where);
    json.Field("places", change.places).Field("us", change.us);
    json.Field("bytes", change.bytes).EndObject();
  }
  json.EndArray();
}

}  // namespace

SideCosts CostsOf(const Listing& listing, const StatisticsTable& table) {
  SideCosts costs;
  costs.us.assign(listing.ids().size(), 0);
  costs.bytes.assign(listing.ids().size(), 0);
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
    costs.bytes[id] = static_cast<double>(found->second->bytes);
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
  costs.patterns = ByPattern(diff, adder);
  CostChange rest;
  rest.what = "kernels of no known node";
  rest.us = after.rest_us - before.rest_us;
  if (before.rest_us != 0 || after.rest_us != 0) costs.patterns.push_back(std::move(rest));
  costs.modules = ByModule(diff, adder);
  costs.nodes = ByNode(diff, adder);
  return costs;
}

std::string CostText(const CostDiff& costs, size_t shown) {
  std::string out = fmt::format("time   {:.1f} → {:.1f} us a step  ({:+.1f})\n", costs.us_before,
                                costs.us_after, costs.us_after - costs.us_before);
  if (costs.bytes_before != 0 || costs.bytes_after != 0) {
    out += fmt::format("bytes  {:.0f} → {:.0f} made in a step  ({:+.0f})\n", costs.bytes_before,
                       costs.bytes_after, costs.bytes_after - costs.bytes_before);
  }
  AppendList("by change", costs.patterns, shown, out);
  AppendList("by module", costs.modules, shown, out);
  AppendList("by node", costs.nodes, shown, out);
  return out;
}

std::string CostJson(const CostDiff& costs, const std::string& before_ref,
                     const std::string& after_ref) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.cost/1");
  json.Break(2).Key("before").BeginObject().Field("ref", before_ref);
  json.Field("us", costs.us_before).Field("bytes", costs.bytes_before).EndObject();
  json.Break(2).Key("after").BeginObject().Field("ref", after_ref);
  json.Field("us", costs.us_after).Field("bytes", costs.bytes_after).EndObject();
  WriteList(json, "changes", costs.patterns);
  WriteList(json, "modules", costs.modules);
  WriteList(json, "nodes", costs.nodes);
  json.Break(0).EndObject();
  return out + "\n";
}

}  // namespace strata::cli
