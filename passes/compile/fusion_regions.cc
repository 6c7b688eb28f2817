#include "passes/compile/fusion_regions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "ir/by_node.h"
#include "ir/module.h"
#include "passes/compile/pointwise.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/written_memory.h"

namespace strata {
namespace {

/// A search for cycles that gets this far is given up, and the regions stay apart.
constexpr size_t kMaxVisited = 4000;

bool HasElements(std::span<const int64_t> counts) {
  return !counts.empty() && std::ranges::find(counts, 0) == counts.end();
}

}  // namespace

FusionRegions::FusionRegions(const Graph& graph, const FusionOptions& options)
    : graph_(graph),
      options_(options),
      samples_(SampleSizes(graph.module())),
      position_(PositionsOf(graph)),
      before_(ByNode<std::vector<NodeId>>(graph)),
      after_(before_),
      chunk_(ByNode<int32_t>(graph)),
      can_fuse_(ByNode(graph, false)),
      is_reshape_(can_fuse_),
      region_of_(ByNode(graph, -1)) {
  OrderMemory();
  FindChunks();
  for (const NodeId node : graph_.nodes()) {
    const FusionKind kind = FusionKindOf(graph_, node, options_.exact, samples_);
    is_reshape_[node] = kind == FusionKind::kReshape;
    can_fuse_[node] = (kind == FusionKind::kPointwise || kind == FusionKind::kReduction) &&
                      HasElements(Elements(graph_.result(node))) &&
                      (!Mutates(graph_, node) || MayFuseInPlace(node));
  }
  Grow();
  Sink();
  Keep();
}

FusionRegions::Counts FusionRegions::Elements(ValueId value) const {
  const TypeId id = graph_.value(value).type;
  if (!id.valid()) return {};
  Counts counts;
  for (const SymbolSizes& sample : samples_) {
    const auto sizes = NumbersOf(graph_.module(), graph_.module().types()[id].sizes, sample);
    if (!sizes) return {};
    counts.push_back(
        std::accumulate(sizes->begin(), sizes->end(), int64_t{1}, std::multiplies<>()));
  }
  return counts;
}

FusionRegions::Counts FusionRegions::Quotient(const Counts& a, const Counts& b) {
  Counts quotient;
  for (size_t i = 0; i < a.size(); ++i) {
    if (b[i] == 0 || a[i] % b[i] != 0) return {};
    quotient.push_back(a[i] / b[i]);
  }
  return quotient;
}

void FusionRegions::FindChunks() {
  std::map<std::tuple<std::string_view, std::string_view, Phase>, int32_t> numbers;
  for (const NodeId node : graph_.nodes()) {
    if (graph_.attribute(node, kChunkRoleAttribute) != kBodyRole) continue;
    const std::tuple chunk(graph_.attribute(node, kChunkedRegionAttribute),
                           graph_.attribute(node, kChunkIdAttribute), graph_.node(node).phase);
    chunk_[node] =
        numbers.try_emplace(chunk, static_cast<int32_t>(numbers.size()) + 1).first->second;
  }
}

std::optional<NodeId> FusionRegions::MemberBehind(ValueId value, int32_t region) const {
  NodeId def = graph_.value(value).def;
  while (region_of_[def] != region) {
    if (!is_reshape_[def]) return std::nullopt;
    def = graph_.value(graph_.args(def)[0].value()).def;
  }
  return def;
}

FusionRegions::Group FusionRegions::Single(NodeId node) const {
  const ValueId result = graph_.result(node);
  Group group{.members = {node},
              .elements = Elements(result),
              .columns = {},
              .phase = graph_.node(node).phase,
              .chunk = chunk_[node],
              .writes_input = WrittenInput(node).has_value(),
              .is_rowlike = false};
  const Type& type = graph_.module().types()[graph_.value(result).type];
  group.is_rowlike = !type.sizes.empty() && std::ranges::max(group.elements) > 1 &&
                     graph_.module().dims().AsConst(type.sizes.back()) == 1;
  if (FusionKindOf(graph_, node, options_.exact, samples_) == FusionKind::kReduction) {
    const Counts reduced = Elements(graph_.args(node)[0].value());
    if (reduced == group.elements) {  // softmax: a row for a row
      const Type& input = graph_.module().types()[graph_.value(graph_.args(node)[0].value()).type];
      group.columns.clear();
      for (const SymbolSizes& sample : samples_)
        group.columns.push_back(*NumberOf(graph_.module(), input.sizes.back(), sample));
    } else {
      group.columns = Quotient(reduced, group.elements);
    }
    group.elements = reduced;
  }
  return group;
}

/// The union of two groups, if sizes and phases allow one kernel.
std::optional<FusionRegions::Group> FusionRegions::Union(const Group& a, const Group& b) const {
  if (a.phase != b.phase || a.chunk != b.chunk) return std::nullopt;
  const Group& large = a.elements >= b.elements ? a : b;
  const Group& small = a.elements >= b.elements ? b : a;
  Group all = large;
  all.writes_input = a.writes_input || b.writes_input;
  if (large.elements != small.elements) {
    const Counts columns = Quotient(large.elements, small.elements);
    if (!small.columns.empty() || !small.is_rowlike || columns.empty()) return std::nullopt;
    if (!large.columns.empty() && large.columns != columns) return std::nullopt;
    all.columns = columns;
  } else {
    if (!large.columns.empty() && !small.columns.empty() && large.columns != small.columns) {
      return std::nullopt;
    }
    all.columns = std::max(large.columns, small.columns);
    all.is_rowlike = large.is_rowlike && small.is_rowlike;
  }
  const bool has_columns = !all.columns.empty();
  if (has_columns && (std::ranges::min(all.columns) == 1 || all.writes_input)) return std::nullopt;
  all.members.insert(all.members.end(), small.members.begin(), small.members.end());
  std::ranges::sort(all.members, {}, [&](NodeId node) { return position_[node]; });
  if (CountArguments(all) > static_cast<size_t>(options_.max_arguments) || HasCycle(all) ||
      (all.chunk != 0 && DelaysReader(all))) {
    return std::nullopt;
  }
  return all;
}

size_t FusionRegions::CountArguments(const Group& group) const {
  std::set<ValueId> arguments;
  for (const NodeId node : group.members) {
    graph_.ForEachOperand(node, [&](ValueId value) { arguments.insert(value); });
    arguments.insert(graph_.result(node));
  }
  // An upper bound: values that are read only inside are not counted.
  size_t count = 0;
  for (const ValueId value : arguments) {
    const NodeId def = graph_.value(value).def;
    const bool is_inside = std::ranges::find(group.members, def) != group.members.end();
    bool is_read_outside = !is_inside;
    for (const Use use : graph_.uses(value)) {
      is_read_outside =
          is_read_outside || std::ranges::find(group.members, use.user) == group.members.end();
    }
    count += is_read_outside ? 1 : 0;
  }
  return count;
}

std::vector<NodeId> FusionRegions::ReadersOf(NodeId node) const {
  std::vector<NodeId> readers = after_[node];
  for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
    for (const Use use : graph_.uses(graph_.result(node, i)))
      readers.push_back(use.user);
  }
  return readers;
}

/// Whether something outside both reads the group and is read by it. Other groups are one step:
/// what reads a member of one comes after all of it.
bool FusionRegions::HasCycle(const Group& group) const {
  const std::set<NodeId> inside(group.members.begin(), group.members.end());
  const int32_t end = position_[group.members.back()];
  std::set<NodeId> visited;
  std::vector<NodeId> open;
  const auto visit = [&](NodeId node) {
    const int32_t region = region_of_[node];
    if (region < 0) {
      if (position_[node] < end && visited.insert(node).second) open.push_back(node);
      return;
    }
    for (const NodeId member : groups_[static_cast<size_t>(region)].members) {
      if (!inside.contains(member) && visited.insert(member).second) open.push_back(member);
    }
  };
  // A view of a member is looked through by members: it is on the way out only for others.
  const auto visit_readers = [&](NodeId node) {
    for (const NodeId reader : ReadersOf(node)) {
      if (!inside.contains(reader)) visit(reader);
    }
  };
  const auto is_view_of_inside = [&](NodeId node) {
    while (is_reshape_[node]) {
      node = graph_.value(graph_.args(node)[0].value()).def;
      if (inside.contains(node)) return true;
    }
    return false;
  };
  for (const NodeId member : group.members)
    visit_readers(member);
  while (!open.empty()) {
    if (visited.size() > kMaxVisited) return true;
    const NodeId node = open.back();
    open.pop_back();
    if (position_[node] < end || region_of_[node] >= 0) {
      const bool is_view = is_view_of_inside(node);
      for (const NodeId reader : ReadersOf(node)) {
        if (inside.contains(reader)) {
          if (!is_view) return true;
        } else {
          visit(reader);
        }
      }
    }
  }
  return false;
}

/// Whether a node that reads the group, over views, stands before its last member.
bool FusionRegions::DelaysReader(const Group& group) const {
  const std::set<NodeId> inside(group.members.begin(), group.members.end());
  const int32_t end = position_[group.members.back()];
  std::vector<NodeId> open = group.members;
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const NodeId reader : ReadersOf(node)) {
      if (inside.contains(reader) || position_[reader] > end) continue;
      if (!is_reshape_[reader]) return true;
      open.push_back(reader);
    }
  }
  return false;
}

void FusionRegions::Grow() {
  for (const NodeId node : graph_.nodes()) {
    if (!can_fuse_[node]) continue;
    Group group = Single(node);
    std::vector<int32_t> producers;  // latest first
    const auto add = [&](NodeId def) {
      while (is_reshape_[def])
        def = graph_.value(graph_.args(def)[0].value()).def;
      const int32_t region = region_of_[def];
      if (region >= 0 && std::ranges::find(producers, region) == producers.end()) {
        producers.push_back(region);
      }
    };
    graph_.ForEachOperand(node, [&](ValueId value) { add(graph_.value(value).def); });
    std::ranges::sort(producers, std::ranges::greater(), [&](int32_t region) {
      return position_[groups_[static_cast<size_t>(region)].members.back()];
    });
    std::vector<int32_t> joined;
    for (const int32_t region : producers) {
      if (auto all = Union(group, groups_[static_cast<size_t>(region)])) {
        group = std::move(*all);
        joined.push_back(region);
      }
    }
    const auto home = static_cast<int32_t>(groups_.size());
    for (const int32_t region : joined)
      groups_[static_cast<size_t>(region)].members.clear();
    for (const NodeId member : group.members)
      region_of_[member] = home;
    groups_.push_back(std::move(group));
  }
}

/// Moves a member to the region that alone reads it, where that needs no value that is not written
/// anyway: `exp_avg * step_size` goes to the update that reads it, not through memory.
void FusionRegions::Sink() {
  const std::vector<NodeId> order = graph_.nodes().Snapshot();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const NodeId node = *it;
    const int32_t home = region_of_[node];
    if (home < 0 || groups_[static_cast<size_t>(home)].members.size() < 2) continue;
    int32_t target = -1;
    bool is_alone = !Mutates(graph_, node);
    for (const NodeId reader : ReadersOf(node)) {
      const int32_t region = region_of_[reader];
      is_alone = is_alone && region >= 0 && region != home && (target < 0 || target == region);
      target = region;
    }
    if (!is_alone || target < 0) continue;
    bool needs_nothing_new = true;
    graph_.ForEachOperand(node, [&](ValueId value) {
      const NodeId def = graph_.value(value).def;
      if (region_of_[def] != home) return;
      bool is_stored = WrittenInput(def).has_value();
      for (const NodeId reader : ReadersOf(def)) {
        is_stored = is_stored || (reader != node && region_of_[reader] != home);
      }
      needs_nothing_new = needs_nothing_new && is_stored;
    });
    if (!needs_nothing_new) continue;
    Group& from = groups_[static_cast<size_t>(home)];
    std::erase(from.members, node);
    region_of_[node] = -1;
    if (auto all = Union(groups_[static_cast<size_t>(target)], Single(node))) {
      groups_[static_cast<size_t>(target)] = std::move(*all);
      region_of_[node] = target;
    } else {
      from.members.push_back(node);
      std::ranges::sort(from.members, {}, [&](NodeId n) { return position_[n]; });
      region_of_[node] = home;
    }
  }
}

void FusionRegions::Dissolve(int32_t region) {
  for (const NodeId member : regions_[static_cast<size_t>(region)])
    region_of_[member] = -1;
}

void FusionRegions::Keep() {
  std::ranges::fill(region_of_, -1);
  std::erase_if(groups_, [&](const Group& group) {
    return static_cast<int64_t>(group.members.size()) < std::max<int64_t>(options_.min_nodes, 1);
  });
  std::ranges::sort(groups_, {},
                    [&](const Group& group) { return position_[group.members.front()]; });
  for (Group& group : groups_) {
    for (const NodeId member : group.members)
      region_of_[member] = static_cast<int32_t>(regions_.size());
    regions_.push_back(std::move(group.members));
  }
}

}  // namespace strata
