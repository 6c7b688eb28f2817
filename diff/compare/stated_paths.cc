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

bool HaveOneType(const Listing& before, EntityId a, const Listing& after, EntityId b) {
  const TypeText x = TypeTextOf(before, a), y = TypeTextOf(after, b);
  return !Differ(x.dtype, y.dtype) && !Differ(x.shape, y.shape);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> PairsOfPaths(const GraphDiff& diff) {
  const auto before = InputsByPath(diff.before);
  if (before.empty()) return {};
  const auto after = InputsByPath(diff.after);
  std::vector<std::pair<std::string, std::string>> pairs;
  bool any_against = false;
  for (const auto& [path, a] : before) {
    const auto found = after.find(path);
    if (found == after.end()) continue;
    const EntityId b = found->second;
    if (!HaveOneType(diff.before, a, diff.after, b)) continue;
    const PairId pair = diff.pair_of_before[a];
    any_against |= !pair.valid() || diff.pairs[pair].after != b;
    pairs.emplace_back(diff.before.name(a), diff.after.name(b));
  }
  if (!any_against) pairs.clear();
  return pairs;
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

void MarkAsInputs(const std::vector<std::pair<std::string, std::string>>& pins, GraphDiff& diff) {
  for (const auto& [before, after] : pins) {
    const PairId id = diff.pair_of_before[diff.before.FindName(before)];
    if (!id.valid()) continue;
    diff.pairs[id].via = Via::kInput;
    diff.pairs[id].confidence = 0.999;
  }
}

}  // namespace strata
