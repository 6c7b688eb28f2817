#include "diff/compare/stated_paths.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "diff/graph/type_text.h"
#include "ir/stated_path.h"

namespace strata {
namespace {

/// The inputs of the program by the path that they state; none where two state one path.
std::map<std::string, EntityId> InputsByPath(const Listing& listing) {
  std::map<std::string, EntityId> inputs;
  for (EntityId id : listing.scopes()[Listing::kProgram].ids) {
    if (listing[id].kind != EntityKind::kInput) continue;
    const std::string path = StatedPath(listing.root(), listing[id].node);
    if (path.empty()) continue;
    const auto [at, is_new] = inputs.try_emplace(path, id);
    if (!is_new) at->second = {};
  }
  std::erase_if(inputs, [](const auto& input) { return !input.second.valid(); });
  return inputs;
}

using PathOf = std::map<EntityId, std::string>;

/// The computations of the program that read inputs of `path_of`, by their operator and the paths
/// that they read, in order.
std::map<std::string, std::vector<EntityId>> ReadersOfPaths(const Listing& listing,
                                                            const PathOf& path_of) {
  std::map<std::string, std::vector<EntityId>> readers;
  const Graph& graph = listing.root();
  for (EntityId id : listing.scopes()[Listing::kProgram].ids) {
    const Entity& entity = listing[id];
    if (entity.kind != EntityKind::kCompute || entity.element.valid()) continue;
    std::string key(listing.target(id));
    bool reads_any = false;
    for (const ValueId operand : graph.operands(entity.node)) {
      const auto path = path_of.find(listing.FindValue(graph.id(), operand));
      if (path == path_of.end()) continue;
      key += ' ' + path->second;
      reads_any = true;
    }
    if (reads_any) readers[std::move(key)].push_back(id);
  }
  return readers;
}

bool HaveOneType(const Listing& before, EntityId a, const Listing& after, EntityId b) {
  const TypeText x = TypeTextOf(before, a), y = TypeTextOf(after, b);
  return !Differ(x.dtype, y.dtype) && !Differ(x.shape, y.shape);
}

}  // namespace

PinnedPairs PairsOfPaths(const GraphDiff& diff, PathEvidence evidence) {
  const auto before = InputsByPath(diff.before);
  if (before.empty()) return {};
  const auto after = InputsByPath(diff.after);
  std::vector<std::pair<EntityId, EntityId>> pairs;
  PathOf path_of_before, path_of_after;
  for (const auto& [path, a] : before) {
    const auto found = after.find(path);
    if (found == after.end() || !HaveOneType(diff.before, a, diff.after, found->second)) continue;
    pairs.emplace_back(a, found->second);
    path_of_before.emplace(a, path);
    path_of_after.emplace(found->second, path);
  }
  if (evidence == PathEvidence::kReaders) {
    const auto readers_after = ReadersOfPaths(diff.after, path_of_after);
    for (const auto& [key, readers] : ReadersOfPaths(diff.before, path_of_before)) {
      const auto found = readers_after.find(key);
      if (found == readers_after.end() || found->second.size() != readers.size()) continue;
      for (size_t i = 0; i < readers.size(); ++i)
        pairs.emplace_back(readers[i], found->second[i]);
    }
  }
  const bool any_against = std::ranges::any_of(pairs, [&](const auto& pair) {
    const PairId id = diff.pair_of_before[pair.first];
    return !id.valid() || diff.pairs[id].after != pair.second;
  });
  PinnedPairs names;
  if (!any_against) return names;
  for (const auto& [a, b] : pairs)
    names.emplace_back(diff.before.name(a), diff.after.name(b));
  return names;
}

int32_t CountTouched(const GraphDiff& diff) {
  const auto num_pairs = std::ranges::count_if(
      diff.pairs, [](const Pair& pair) { return pair.status.changed || pair.status.moved; });
  return static_cast<int32_t>(diff.inserted.size() + diff.deleted.size()) +
         static_cast<int32_t>(num_pairs);
}

int32_t CountChanges(const GraphDiff& diff) {
  auto changes = static_cast<int32_t>(diff.inserted.size() + diff.deleted.size());
  std::set<std::pair<std::string_view, std::string_view>> redirected;
  // Whether the field is more than a redirection that another node has, too.
  const auto is_new = [&](const FieldDiff& field) {
    if (field.derived || field.path.starts_with("meta.")) return false;
    const bool redirects = field.path.starts_with("operands[") && field.before && field.after;
    return !redirects || redirected.emplace(*field.before, *field.after).second;
  };
  for (const Pair& pair : diff.pairs) {
    // All fields are looked at: each may be the first of its kind.
    const auto num_new = std::ranges::count_if(pair.fields, is_new);
    changes += num_new > 0 || pair.status.moved ? 1 : 0;
  }
  return changes;
}

void MarkAsInputs(const PinnedPairs& pins, GraphDiff& diff) {
  for (const auto& [before, after] : pins) {
    const PairId id = diff.pair_of_before[diff.before.FindName(before)];
    if (!id.valid()) continue;
    const bool is_input = diff.before[diff.pairs[id].before].kind == EntityKind::kInput;
    diff.pairs[id].via = is_input ? Via::kInput : Via::kLocal;
    diff.pairs[id].confidence = 0.999;
  }
}

}  // namespace strata
