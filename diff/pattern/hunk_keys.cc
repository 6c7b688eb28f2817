#include "diff/pattern/hunk_keys.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "diff/graph/arguments.h"
#include "diff/graph/hash.h"
#include "diff/graph/module_path.h"

namespace strata {
namespace {

/// The hash of a text with numbers inside of quotes hidden: 'layers.3.attn' names a place.
uint64_t HashWithoutPlaces(std::string_view text) {
  TextHash hash;
  bool quoted = false;
  char last = 0;
  for (char c : text) {
    if (c == '\'' || c == '"') quoted = !quoted;
    const char shown = quoted && IsDigit(c) ? '*' : c;
    if (shown == c || last != '*') hash.Add(shown);
    last = shown;
  }
  return hash.value();
}

std::vector<std::string_view> SizesOf(std::string_view text) {
  std::vector<std::string_view> sizes;
  for (size_t i = 1; i < text.size();) {
    const size_t end = std::min(text.find_first_of(",]", i), text.size());
    sizes.push_back(TrimBlanks(text.substr(i, end - i)));
    i = end + 1;
  }
  return sizes;
}

/// What changed of a list of sizes: of `[4, 128, 64]` and `[4, 256, 64]` only 128 and 256.
uint64_t HashOfSizes(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = SizesOf(before), b = SizesOf(after);
  if (a.size() != b.size()) return Mix(HashText(before), HashText(after));
  std::set<std::pair<std::string_view, std::string_view>> changes;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) changes.emplace(a[i], b[i]);
  }
  uint64_t hash = 1;
  for (const auto& [x, y] : changes)
    hash = Mix(hash, Mix(HashText(x), HashText(y)));
  return hash;
}

}  // namespace

AllHunkFacts HunkKeys::Compute(const HunkMembers& hunks) {
  AllHunkFacts all_facts(hunks.num_hunks());
  hashes_.resize(items_.size());
  const auto item_of = [&](int32_t member) -> const HunkItem& {
    return items_[static_cast<size_t>(member)];
  };
  // Of a consumer whose cause lies in another layer nothing else is left.
  const auto counts_all = [&](HunkId hunk) {
    return std::ranges::all_of(hunks[hunk], &HunkItem::consumer, item_of);
  };
  const auto counts = [&](int32_t member, bool all) { return all || !item_of(member).consumer; };
  std::unordered_map<std::ptrdiff_t, int> hunks_of_size;
  const auto size_of = [&](HunkId hunk, bool all) {
    return std::ranges::count_if(hunks[hunk], [&](int32_t member) { return counts(member, all); });
  };
  for (const HunkId hunk : all_facts.hunks())
    ++hunks_of_size[size_of(hunk, counts_all(hunk))];
  std::vector<size_t> members;
  std::vector<uint64_t> next;  // hashes of members
  for (const HunkId hunk : all_facts.hunks()) {
    HunkFacts& facts = all_facts[hunk];
    const bool all = counts_all(hunk);
    const int32_t first =
        *std::ranges::find_if(hunks[hunk], [&](int32_t member) { return counts(member, all); });
    for (size_t way : {size_t{0}, size_t{1}})
      all_facts.SetPlace(hunk, way, places_.CommonPlace(items_, hunks[hunk], item_of(first), way));
    // What is like no other in size needs no closer look: that would be long for the largest.
    const std::ptrdiff_t size = size_of(hunk, all);
    if (hunks_of_size[size] == 1) {
      facts.key = Spread(static_cast<uint64_t>(size));
      continue;
    }
    members.clear();
    for (const int32_t member : hunks[hunk]) {
      if (!counts(member, all)) continue;
      members.push_back(static_cast<size_t>(member));
      hashes_[members.back()] = Signature(item_of(member));
    }
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds && members.size() > 1; ++round) {
      next.clear();
      for (size_t member : members)
        next.push_back(Widened(member, all));
      for (size_t k = 0; k < members.size(); ++k)
        hashes_[members[k]] = next[k];
    }
    for (size_t member : members)
      facts.key += Spread(hashes_[member]);
  }
  return all_facts;
}

/// The hash of a field's text. An argument that is a node on this side has a name of its place.
uint64_t HunkKeys::HashOfText(Side side, std::string_view path, std::string_view text) {
  const bool is_argument = path.starts_with("args[") || path.starts_with("kwargs.");
  return is_argument && IsName(side, text) ? 1 : HashWithoutPlaces(text);
}

bool HunkKeys::IsName(Side side, std::string_view text) {
  const bool is_word = !text.empty() && IsWordChar(text[0]) && !IsDigit(text[0]);
  if (!is_word) return false;
  const Listing& listing = side == kBefore ? diff_.before : diff_.after;
  if (names_[side].empty()) {
    for (EntityId id : listing.ids())
      names_[side].insert(listing.name(id));
  }
  return names_[side].contains(std::string(text));
}

/// What an item is, without where it is.
uint64_t HunkKeys::Signature(const HunkItem& item) {
  if (!item.pair.valid()) {
    const Side side = item.before.valid() ? kBefore : kAfter;
    const EntityId id = side == kBefore ? item.before : item.after;
    return Mix(SignatureOfNode(side, id), side + 1);
  }
  const Pair& pair = diff_.pairs[item.pair];
  uint64_t hash = matching_.labels(kBefore).op[pair.before];
  if (!pair.status.changed) return Mix(hash, 3);
  for (const FieldDiff& field : pair.fields) {
    if (field.derived || field.path.starts_with("meta.")) continue;
    hash = Mix(hash, HashText(field.path));
    // Names of operands differ from place to place.
    if (field.path.starts_with("operands") || field.path == "alias") continue;
    const std::string_view before = field.before ? std::string_view(*field.before) : "";
    const std::string_view after = field.after ? std::string_view(*field.after) : "";
    if (field.path == "shape" || field.path == "strides") {
      hash = Mix(hash, HashOfSizes(before, after));
    } else if (field.path == "module") {
      hash = Mix(hash, Mix(HashText(ModulePathShape(before)), HashText(ModulePathShape(after))));
    } else {
      hash = Mix(hash, HashOfText(kBefore, field.path, before));
      hash = Mix(hash, HashOfText(kAfter, field.path, after));
    }
  }
  return hash;
}

/// The operator, its literals, and which operands are the same value.
uint64_t HunkKeys::SignatureOfNode(Side side, EntityId id) const {
  const Listing& listing = side == kBefore ? diff_.before : diff_.after;
  uint64_t hash = matching_.labels(side).op[id];
  std::vector<EntityId> operands;
  for (const Leaf& leaf : LeavesOf(listing, id)) {
    hash = Mix(hash, HashText(leaf.path));
    if (!leaf.operand.valid()) {
      hash = Mix(hash, HashWithoutPlaces(leaf.skeleton));
      continue;
    }
    const auto known = std::ranges::find(operands, leaf.operand);
    hash = Mix(hash, static_cast<uint64_t>(known - operands.begin()));
    if (known == operands.end()) operands.push_back(leaf.operand);
  }
  return hash;
}

/// The hash with those of the inserted or deleted nodes next to it.
uint64_t HunkKeys::Widened(size_t member, bool consumers) const {
  const HunkItem& item = items_[member];
  uint64_t hash = hashes_[member];
  for (Side side : {kBefore, kAfter}) {
    const EntityId id = side == kBefore ? item.before : item.after;
    if (!id.valid()) continue;
    const auto neighbour = [&](const Labels::Edge& edge) -> uint64_t {
      if (matching_.matched(side, edge.entity) || IsSharedConstant(matching_, side, edge.entity))
        return 0;
      const auto other = items_.IndexOf(side, edge.entity);
      if (items_[other].consumer && !consumers) return 0;
      return items_.InOneLayer(member, other) ? Mix(hashes_[other], static_cast<size_t>(edge.slot))
                                              : 0;
    };
    for (const Labels::Edge& operand : matching_.labels(side).operands(id))
      hash = Mix(hash, neighbour(operand) + side);
    uint64_t users = 0;
    if (matching_.labels(side).users(id).size() <= Matching::kMaxEdges) {
      for (const Labels::Edge& user : matching_.labels(side).users(id))
        users += neighbour(user);
    }
    hash = Mix(hash, users);
  }
  return hash;
}

}  // namespace strata
