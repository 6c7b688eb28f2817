#include "diff/pattern/titles.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "diff/graph/arguments.h"

namespace strata {
namespace {

constexpr size_t kMaxValue = 40;

/// `2 → 3`, `+ 3` for what was not there.
std::string Change(const FieldDiff& field) {
  const auto value = [](const std::optional<std::string_view>& text) {
    return text ? OneLine(*text, kMaxValue) : "nothing";
  };
  return fmt::format("{} → {}", value(field.before), value(field.after));
}

template <class Text>
void AddOnce(std::vector<Text>& list, std::string_view text) {
  if (std::ranges::find(list, text) == list.end()) list.emplace_back(text);
}

template <class Text>
std::string Few(const std::vector<Text>& list) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(list.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += list[i];
  }
  if (list.size() > kShown) text += fmt::format(" and {} more", list.size() - kShown);
  return text;
}

bool IsOwn(const FieldDiff& field) {
  return !field.derived && !field.path.starts_with("meta.");
}

/// The two operands of which each became the other.
bool IsSwap(const std::vector<FieldDiff>& fields) {
  return fields.size() == 2 && fields[0].before == fields[1].after &&
         fields[0].after == fields[1].before;
}

}  // namespace

std::string_view OperatorOf(const Listing& listing, EntityId id) {
  const std::string_view target = listing.target(id);
  if (!target.empty()) return target;
  return listing[id].kind == EntityKind::kInput ? "input" : "output";
}

Titles::Titles(const GraphDiff& diff) : diff_(diff) {
  if (diff.relations.empty()) return;
  relation_of_before_.assign(diff.before.ids().size(), -1);
  relation_of_after_.assign(diff.after.ids().size(), -1);
  for (size_t i = 0; i < diff.relations.size(); ++i) {
    for (EntityId id : diff.relations[i].before)
      relation_of_before_[id] = static_cast<int32_t>(i);
    for (EntityId id : diff.relations[i].after)
      relation_of_after_[id] = static_cast<int32_t>(i);
  }
}

const Relation* Titles::Find(const RelationOf& relation_of, EntityId id) const {
  if (relation_of.empty() || relation_of[id] < 0) return nullptr;
  return &diff_.relations[static_cast<size_t>(relation_of[id])];
}

std::string Titles::OfHunk(const Hunk& hunk, bool values) const {
  const bool unmatched = !hunk.inserted.empty() || !hunk.deleted.empty();
  return unmatched ? OfUnmatched(hunk, values) : OfPairs(hunk, values);
}

std::string Titles::OfUnmatched(const Hunk& hunk, bool values) const {
  std::vector<std::string_view> inserted, deleted, copied, added;
  std::optional<RelationKind> kind;
  bool one_kind = true;
  const auto note = [&](const Relation* relation) {
    const std::optional<RelationKind> found =
        relation == nullptr ? std::nullopt : std::optional(relation->kind);
    if (inserted.size() + deleted.size() == 1) kind = found;
    one_kind &= kind == found;
  };
  for (EntityId id : hunk.deleted) {
    AddOnce(deleted, OperatorOf(diff_.before, id));
    note(Find(relation_of_before_, id));
  }
  for (EntityId id : hunk.inserted) {
    const std::string_view op = OperatorOf(diff_.after, id);
    const Relation* relation = Find(relation_of_after_, id);
    const bool is_copy = relation != nullptr && relation->kind == RelationKind::kClone;
    AddOnce(inserted, op);
    if (!diff_.after[id].element.valid()) AddOnce(is_copy ? copied : added, op);
    note(relation);
  }
  if (one_kind && kind == RelationKind::kClone) return fmt::format("copy {}", Few(inserted));
  if (one_kind && kind == RelationKind::kMerge) return fmt::format("merge equal {}", Few(deleted));
  if (one_kind && kind == RelationKind::kBecameInput)
    return fmt::format("make {} an input", Few(deleted));
  if (one_kind && kind == RelationKind::kBecameCompute) {
    const bool is_constant = std::ranges::all_of(
        hunk.inserted, [&](EntityId id) { return diff_.after[id].kind == EntityKind::kConstant; });
    return is_constant ? "make an input a constant"
                       : fmt::format("compute an input by {}", Few(inserted));
  }
  if (!inserted.empty() && !deleted.empty())
    return fmt::format("replace {} by {}", Few(deleted), Few(inserted));
  if (!copied.empty() && !added.empty())
    return fmt::format("copy {}, insert {}", Few(copied), Few(added));

  std::string title = inserted.empty() ? fmt::format("delete {}", Few(deleted))
                                       : fmt::format("insert {}", Few(inserted));
  if (!values) return title;
  title += Literals(hunk.inserted);
  std::vector<std::string_view> consumers;
  for (PairId pair : hunk.pairs)
    AddOnce(consumers, OperatorOf(diff_.after, diff_.pairs[pair].after));
  if (consumers.size() == 1) title += fmt::format(" before {}", consumers[0]);
  return title;
}

/// What a single inserted node says besides its operands, when that is little.
std::string Titles::Literals(std::span<const EntityId> inserted) const {
  if (inserted.size() != 1 || diff_.after[inserted[0]].element.valid()) return "";
  std::vector<std::string> literals;
  for (const Leaf& leaf : LeavesOf(diff_.after, inserted[0])) {
    if (leaf.operand.valid() || leaf.text != leaf.skeleton) continue;
    const bool keyword = leaf.path.starts_with("kwargs.");
    literals.push_back((keyword ? leaf.path.substr(7) + "=" : "") + leaf.text);
  }
  const std::string text = fmt::format("{}", fmt::join(literals, ", "));
  return text.empty() || text.size() > kMaxValue ? "" : fmt::format(" ({})", text);
}

std::string Titles::OfPairs(const Hunk& hunk, bool values) const {
  std::vector<std::string> changes;
  std::vector<std::string_view> moves;
  for (PairId index : hunk.pairs) {
    const Pair& pair = diff_.pairs[index];
    const std::string_view before = OperatorOf(diff_.before, pair.before);
    std::vector<FieldDiff> fields;
    for (const FieldDiff& field : pair.fields) {
      if (IsOwn(field)) fields.push_back(field);
    }
    if (fields.empty()) {
      AddOnce(moves, before);
    } else if (fields[0].path == "target") {
      AddOnce(changes, fmt::format("change {} to {}", before, OperatorOf(diff_.after, pair.after)));
    } else if (IsSwap(fields)) {
      AddOnce(changes, fmt::format("swap {} and {} of {}", fields[0].path, fields[1].path, before));
    } else {
      // Names of operands are those of one place.
      const bool tell = values && fields.size() == 1 && !fields[0].path.starts_with("operands");
      std::vector<std::string_view> paths;
      for (const FieldDiff& field : fields)
        AddOnce(paths, field.path);
      AddOnce(changes, fmt::format("change {} of {}{}", Few(paths), before,
                                   tell ? ": " + Change(fields[0]) : ""));
    }
  }
  if (changes.empty()) return fmt::format("move {}", Few(moves));
  return Few(changes);
}

std::string Titles::OfPair(PairStatus status, const FieldDiffs& fields) {
  std::vector<std::string> parts;
  if (status.moved) parts.emplace_back("moved");
  for (const FieldDiff& field : fields) {
    if (field.path.starts_with("meta.")) continue;
    parts.push_back(fmt::format("{}: {}", field.path, Change(field)));
  }
  constexpr size_t kShown = 4;
  const size_t more = parts.size() > kShown ? parts.size() - kShown : 0;
  parts.resize(parts.size() - more);
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
}

}  // namespace strata
