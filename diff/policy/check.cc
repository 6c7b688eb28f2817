#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "diff/graph/statement.h"
#include "diff/policy/invariants.h"
#include "diff/policy/policy.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// A pair, an inserted or a deleted node, as rules see it.
struct JudgedChange {
  EntityId before, after;  // none: inserted, deleted
  const Pair* pair = nullptr;
  std::vector<std::string_view> atoms;      // what must be allowed
  std::vector<std::string_view> relations;  // what allows an insertion or deletion too
  std::string_view pattern;                 // title
  // Of the one or two nodes.
  std::vector<std::string_view> targets;
  std::vector<std::string> modules, names;
  std::string_view kind;
};

class Checker {
 public:
  Checker(const Policy& policy, const GraphDiff& diff) : policy_(policy), diff_(diff) {}

  std::vector<Violation> Run() {
    FindRelations();
    FindPatterns();
    for (const Pair& pair : diff_.pairs) {
      if (!pair.status.same() || !pair.fields.empty()) Judge(ChangeOf(pair));
    }
    for (EntityId id : diff_.deleted)
      Judge(ChangeOf(id, {}));
    for (EntityId id : diff_.inserted)
      Judge(ChangeOf({}, id));
    for (const Policy::Limit& limit : policy_.limits)
      CheckLimit(limit);
    for (const Policy::Invariant& invariant : policy_.invariants)
      CheckInvariant(invariant);
    return std::move(violations_);
  }

 private:
  void FindRelations() {
    for (const Relation& relation : diff_.relations) {
      std::string_view word;
      switch (relation.kind) {
        case RelationKind::kReplace:
          word = "replaced";
          break;
        case RelationKind::kClone:
          word = "cloned";
          break;
        case RelationKind::kMerge:
          word = "merged";
          break;
        case RelationKind::kBecameInput:
          word = "became_input";
          break;
        case RelationKind::kBecameCompute:
          word = "became_compute";
          break;
      }
      for (EntityId id : relation.before)
        before_relations_[id].push_back(word);
      for (EntityId id : relation.after)
        after_relations_[id].push_back(word);
    }
  }

  void FindPatterns() {
    for (const Hunk& hunk : diff_.hunks) {
      if (!hunk.pattern.valid()) continue;
      const std::string_view title = diff_.patterns[hunk.pattern].title;
      for (EntityId id : hunk.deleted)
        before_pattern_[id] = title;
      for (EntityId id : hunk.inserted)
        after_pattern_[id] = title;
      for (PairId pair : hunk.pairs)
        after_pattern_[diff_.pairs[pair].after] = title;
    }
  }

  JudgedChange ChangeOf(const Pair& pair) const {
    JudgedChange change = Described(pair.before, pair.after);
    change.pair = &pair;
    if (pair.status.renamed) change.atoms.emplace_back("renamed");
    if (pair.status.moved) change.atoms.emplace_back("moved");
    if (pair.status.changed) change.atoms.emplace_back("changed");
    if (pair.status.derived) change.atoms.emplace_back("derived");
    return change;
  }

  JudgedChange ChangeOf(EntityId before, EntityId after) const {
    JudgedChange change = Described(before, after);
    const auto& relations = before.valid() ? before_relations_ : after_relations_;
    const auto found = relations.find(before.valid() ? before : after);
    if (found != relations.end()) change.relations = found->second;
    change.atoms.emplace_back(before.valid() ? "deleted" : "inserted");
    return change;
  }

  JudgedChange Described(EntityId before, EntityId after) const {
    JudgedChange change;
    change.before = before;
    change.after = after;
    const auto add = [&](const Listing& listing, EntityId id,
                         const std::map<EntityId, std::string_view>& patterns) {
      if (!id.valid()) return;
      change.targets.push_back(listing.target(id));
      change.modules.push_back(ModuleText(listing, id));
      change.names.push_back(listing.name(id));
      change.kind = ToString(listing[id].kind);
      if (const auto found = patterns.find(id); found != patterns.end()) {
        change.pattern = found->second;
      }
    };
    add(diff_.before, before, before_pattern_);
    add(diff_.after, after, after_pattern_);
    return change;
  }

  void Judge(const JudgedChange& change) {
    for (const Policy::Rule& rule : policy_.forbid) {
      if (Speaks(rule, change)) return Add(change, "forbidden by", rule);
    }
    if (policy_.allow.empty() || !NeedsAllowance(change)) return;
    const bool is_covered = std::ranges::any_of(
        policy_.allow, [&](const Policy::Rule& rule) { return Covers(rule, change); });
    if (!is_covered) {
      violations_.push_back({WhatOf(change), fmt::format("no rule of {} allows it", policy_.file),
                             Side(change.before), Side(change.after)});
    }
  }

  static bool Has(const std::vector<std::string>& words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  }

  /// Names are not a change, and consequences are judged with their causes.
  static bool NeedsAllowance(const JudgedChange& change) {
    return std::ranges::any_of(
        change.atoms, [](std::string_view atom) { return atom != "renamed" && atom != "derived"; });
  }

  /// True when a forbidding rule means this change: one side, one atom, one field are enough.
  static bool Speaks(const Policy::Rule& rule, const JudgedChange& change) {
    const auto any = [](const std::vector<NamePattern>& patterns, const auto& texts) {
      return patterns.empty() || std::ranges::any_of(texts, [&](const auto& text) {
               return MatchesAny(patterns, text);
             });
    };
    if (rule.statuses.empty()) {
      if (rule.fields.empty() && !NeedsAllowance(change)) return false;
    } else {
      const auto listed = [&](std::string_view atom) { return Has(rule.statuses, atom); };
      if (std::ranges::none_of(change.atoms, listed) &&
          std::ranges::none_of(change.relations, listed)) {
        return false;
      }
    }
    if (!rule.kinds.empty() && !Has(rule.kinds, change.kind)) return false;
    if (!any(rule.targets, change.targets) || !any(rule.modules, change.modules)) return false;
    if (!any(rule.nodes, change.names)) return false;
    if (!rule.patterns.empty() && !MatchesAny(rule.patterns, change.pattern)) return false;
    if (rule.fields.empty()) return true;
    return change.pair != nullptr &&
           std::ranges::any_of(change.pair->fields, [&](const FieldDiff& field) {
             return MatchesAny(rule.fields, field.path);
           });
  }

  /// True when an allowing rule covers all of this change: both sides, all atoms, all own fields.
  static bool Covers(const Policy::Rule& rule, const JudgedChange& change) {
    const auto all = [](const std::vector<NamePattern>& patterns, const auto& texts) {
      return patterns.empty() || std::ranges::all_of(texts, [&](const auto& text) {
               return MatchesAny(patterns, text);
             });
    };
    if (!rule.statuses.empty()) {
      const bool by_relation = std::ranges::any_of(
          change.relations, [&](std::string_view word) { return Has(rule.statuses, word); });
      for (std::string_view atom : change.atoms) {
        if (atom == "renamed" || atom == "derived" || by_relation) continue;
        if (!Has(rule.statuses, atom)) return false;
      }
    }
    if (!rule.kinds.empty() && !Has(rule.kinds, change.kind)) return false;
    if (!all(rule.targets, change.targets) || !all(rule.modules, change.modules)) return false;
    if (!all(rule.nodes, change.names)) return false;
    if (!rule.patterns.empty() && !MatchesAny(rule.patterns, change.pattern)) return false;
    if (rule.fields.empty()) return true;
    return change.pair != nullptr &&
           std::ranges::all_of(change.pair->fields, [&](const FieldDiff& field) {
             return field.derived || field.path.starts_with("meta.") ||
                    MatchesAny(rule.fields, field.path);
           });
  }

  static std::optional<EntityId> Side(EntityId id) {
    return id.valid() ? std::optional(id) : std::nullopt;
  }

  /// "inserted mm_3 (aten.mm.default) in layers.0", "changed view -> reshape (…): target".
  static std::string WhatOf(const JudgedChange& change) {
    std::string text = fmt::format("{}", change.atoms.empty() ? "changed" : "");
    for (std::string_view atom : change.atoms) {
      if (atom == "renamed" && change.atoms.size() > 1) continue;
      text += text.empty() ? "" : "+";
      text += atom;
    }
    const bool is_renamed = change.names.size() == 2 && change.names[0] != change.names[1];
    text += ' ' + change.names[0];
    if (is_renamed) text += " -> " + change.names[1];
    const std::string_view target = change.targets.back();
    if (!target.empty()) text += fmt::format(" ({})", target);
    if (target.empty()) text += fmt::format(" ({})", change.kind);
    if (!change.modules.back().empty()) text += fmt::format(" in {}", change.modules.back());
    if (change.pair == nullptr) return text;
    std::string fields;
    for (const FieldDiff& field : change.pair->fields)
      fields += (fields.empty() ? ": " : ", ") + std::string(field.path);
    return text + fields;
  }

  void Add(const JudgedChange& change, std::string_view how, const Policy::Rule& rule) {
    violations_.push_back({WhatOf(change), Because(how, rule.where, rule.why), Side(change.before),
                           Side(change.after)});
  }

  static std::string Because(std::string_view how, std::string_view where, std::string_view why) {
    std::string text = fmt::format("{} {}", how, where);
    if (!why.empty()) text += fmt::format(": {}", why);
    return text;
  }

  int64_t CountOf(std::string_view word) const {
    const DiffSummary& s = diff_.summary;
    const std::map<std::string_view, int64_t> counts = {
        {"renamed", s.renamed},
        {"moved", s.moved},
        {"changed", s.changed},
        {"derived", s.derived},
        {"inserted", s.inserted},
        {"deleted", s.deleted},
        {"replaced", s.replaced},
        {"cloned", s.cloned},
        {"merged", s.merged},
        {"became_input", s.became_input},
        {"became_compute", s.became_compute},
        {"hunks", static_cast<int64_t>(diff_.hunks.size())},
        {"touched",
         s.inserted + s.deleted + std::ranges::count_if(diff_.pairs, [](const Pair& pair) {
           return pair.status.moved || pair.status.changed;
         })}};
    return counts.at(word);
  }

  void CheckLimit(const Policy::Limit& limit) {
    const int64_t count = CountOf(limit.of);
    if (count <= limit.most) return;
    violations_.push_back({fmt::format("{} {}", count, limit.of),
                           fmt::format("at most {} by {}", limit.most, limit.where),
                           {},
                           {}});
  }

  void CheckInvariant(const Policy::Invariant& invariant) {
    const std::string what = BrokenInvariant(diff_, invariant.name);
    if (what.empty()) return;
    violations_.push_back({what, fmt::format("{} by {}", invariant.name, invariant.where), {}, {}});
  }

  const Policy& policy_;
  const GraphDiff& diff_;
  std::map<EntityId, std::vector<std::string_view>> before_relations_, after_relations_;
  std::map<EntityId, std::string_view> before_pattern_, after_pattern_;
  std::vector<Violation> violations_;
};

}  // namespace

PolicyVerdict CheckPolicy(const Policy& policy, const GraphDiff& diff) {
  return {policy.file, Checker(policy, diff).Run()};
}

}  // namespace strata
