#include "cli/render/diff_text.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/unicode.h"
#include "cli/render/tint.h"
#include "diff/compare/contradictions.h"
#include "diff/graph/statement.h"
#include "diff/model/summary.h"
#include "diff/output/fold_shifts.h"

namespace strata::cli {
namespace {

class TextWriter {
 public:
  TextWriter(const GraphDiff& diff, const DiffTextOptions& options)
      : diff_(diff), options_(options) {}

  std::string Write(const std::string& before_ref, const std::string& after_ref) {
    const size_t width = std::max(before_ref.size(), after_ref.size());
    out_ += fmt::format("before  {:<{}}  {} nodes\n", before_ref, width, diff_.before.size());
    out_ += fmt::format("after   {:<{}}  {} nodes\n\n", after_ref, width, diff_.after.size());
    Verdict();
    Summary();
    Contradictions();
    Patterns();
    if (options_.only_summary) return std::move(out_);
    Hunks();
    Relations();
    Derived();
    Metadata();
    return std::move(out_);
  }

 private:
  std::string Tinted(Tint tint, std::string_view text) const {
    return cli::Tinted(options_.colours, tint, text);
  }

  void Verdict() {
    if (options_.verdict == nullptr) return;
    const PolicyVerdict& verdict = *options_.verdict;
    const size_t count = verdict.violations.size();
    if (count == 0) {
      out_ += Tinted(Tint::kAdded, fmt::format("policy  {}  allows it\n\n", verdict.file));
      return;
    }
    out_ += Tinted(Tint::kRemoved, fmt::format("policy  {}  {} violation{}\n", verdict.file, count,
                                               count == 1 ? "" : "s"));
    constexpr size_t kShown = 40;
    const size_t shown = options_.all ? count : std::min(count, kShown);
    for (const Violation& violation : std::span(verdict.violations).first(shown)) {
      out_ += fmt::format("  ! {}\n      {}\n", Visible(violation.what), Visible(violation.rule));
    }
    if (shown < count) out_ += fmt::format("  and {} more (--all)\n", count - shown);
    out_ += '\n';
  }

  static Tint TintOf(const SummaryPart& part) {
    if (part.what == "changed") return Tint::kChanged;
    if (part.what == "moved") return Tint::kMoved;
    if (part.what == "inserted") return Tint::kAdded;
    if (part.what == "deleted") return Tint::kRemoved;
    return part.count > 0 ? Tint::kDim : Tint::kNone;
  }

  void Summary() {
    const DiffSummary& summary = diff_.summary;
    std::vector<std::string> parts;
    for (const SummaryPart& part : SummaryParts(summary))
      parts.push_back(Tinted(TintOf(part), part.ToString()));
    out_ += fmt::format("{}\n", fmt::join(parts, " · "));
    std::vector<std::string> relations;
    const auto add_relation = [&](int32_t count, std::string_view what) {
      if (count > 0) relations.push_back(fmt::format("{} {}", count, what));
    };
    add_relation(summary.replaced, "replaced");
    add_relation(summary.cloned, "cloned");
    add_relation(summary.merged, "merged");
    add_relation(summary.became_input, "became an input");
    add_relation(summary.became_compute, "became computed");
    if (!relations.empty()) {
      out_ += fmt::format("of the inserted and deleted: {}\n", fmt::join(relations, ", "));
    }
  }

  /// Where the ids of a trace and the structure of its graphs disagree.
  void Contradictions() {
    if (diff_.contradictions.empty()) return;
    out_ += fmt::format("\n{}\n", Tinted(Tint::kBold, "contradictions"));
    constexpr size_t kShown = 20;
    const size_t count = diff_.contradictions.size();
    const size_t shown = options_.all ? count : std::min(count, kShown);
    for (const Contradiction& contradiction : std::span(diff_.contradictions).first(shown)) {
      out_ += fmt::format("  ! {}: {}\n", Visible(diff_.before.name(contradiction.before)),
                          Visible(ToString(diff_, contradiction)));
    }
    if (shown < count) out_ += fmt::format("  and {} more (--all)\n", count - shown);
  }

  void Patterns() {
    if (diff_.patterns.empty()) return;
    out_ += fmt::format("\n{}\n", Tinted(Tint::kBold, "patterns"));
    for (const Pattern& pattern : diff_.patterns) {
      out_ += fmt::format("  {:>4}×  {}", pattern.hunks.size(), pattern.title);
      if (!pattern.where.empty()) out_ += Tinted(Tint::kDim, "  in " + Shortened(pattern.where));
      if (!pattern.except.empty()) {
        out_ += Tinted(Tint::kChanged, fmt::format("  except {}", fmt::join(pattern.except, ", ")));
      }
      out_ += fmt::format("  ({} nodes)\n", pattern.nodes);
      for (const Deviation& deviation : pattern.deviations) {
        out_ += fmt::format("         {} differs: {}\n", deviation.where,
                            deviation.what.empty() ? "nothing happened there" : deviation.what);
      }
    }
  }

  /// The beginning of a long list of places.
  static std::string Shortened(const std::string& where) {
    constexpr size_t kMaxLength = 72;
    if (where.size() <= kMaxLength) return where;
    const size_t comma = where.rfind(", ", kMaxLength);
    if (comma == std::string::npos) return where;
    return where.substr(0, comma) + ", …";
  }

  void Hunks() {
    if (diff_.hunks.empty()) return;
    out_ += fmt::format("\n{}\n", Tinted(Tint::kBold, "changes"));
    IdVector<PatternId, bool> pattern_shown(diff_.patterns.size());
    for (const Hunk& hunk : diff_.hunks) {
      size_t more = 0;
      if (hunk.pattern.valid() && !options_.all) {
        if (pattern_shown[hunk.pattern]) continue;
        pattern_shown[hunk.pattern] = true;
        more = diff_.patterns[hunk.pattern].hunks.size() - 1;
      }
      for (EntityId id : hunk.deleted)
        NodeLine(diff_.before, id, '-', Tint::kRemoved);
      for (EntityId id : hunk.inserted)
        NodeLine(diff_.after, id, '+', Tint::kAdded);
      for (PairId index : hunk.pairs)
        PairLines(diff_.pairs[index]);
      if (more > 0) out_ += Tinted(Tint::kDim, fmt::format("    and {} more like this\n", more));
    }
  }

  void NodeLine(const Listing& listing, EntityId id, char sign, Tint tint) {
    const std::string text = fmt::format("{} {}", sign, StatementText(listing, id));
    out_ += fmt::format("  {}{}\n", Tinted(tint, text), Module(listing, id));
  }

  std::string Module(const Listing& listing, EntityId id) const {
    const std::string module = ModuleText(listing, id);
    return module.empty() ? "" : Tinted(Tint::kDim, fmt::format("   {}", module));
  }

  /// One line of at most 60 characters.
  static std::string Value(const std::optional<std::string_view>& value) {
    constexpr size_t kMaxLength = 60;
    const std::string text = Visible(value.value_or("(nothing)"));
    if (text.size() <= kMaxLength) return text;
    size_t end = kMaxLength;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;
    return text.substr(0, end) + "…";
  }

  /// Cuts long lists of fields, as the operands of an output are; consequences of other changes
  /// sooner. Returns how many of both were cut.
  std::pair<size_t, size_t> FoldMany(std::vector<FieldDiff>& fields) const {
    constexpr size_t kShown = 24, kConsequences = 3;
    if (options_.all) return {0, 0};
    size_t own = 0, derived = 0;
    std::erase_if(fields, [&](const FieldDiff& field) {
      return field.derived ? ++derived > kConsequences : ++own > kShown;
    });
    return {own - std::min(own, kShown), derived - std::min(derived, kConsequences)};
  }

  void PairLines(const Pair& pair) {
    const std::string before = Visible(diff_.before.name(pair.before));
    const std::string after = Visible(diff_.after.name(pair.after));
    const std::string names = before == after ? before : fmt::format("{} → {}", before, after);
    const bool is_move = pair.status.moved && !pair.status.changed;
    const std::string head = fmt::format("{} {}", is_move ? "↷" : "~", names);
    const std::string_view target = diff_.after.target(pair.after);
    out_ += fmt::format("  {}{}", Tinted(is_move ? Tint::kMoved : Tint::kChanged, head),
                        target.empty() ? "" : fmt::format("  {}", target));
    if (pair.status.moved && pair.status.changed) out_ += Tinted(Tint::kMoved, "  moved");
    if (pair.confidence < 0.9) {
      out_ += Tinted(Tint::kDim, fmt::format("  confidence {:.2f}", pair.confidence));
    }
    out_ += Module(diff_.after, pair.after) + "\n";
    const ReadableFields readable = FoldShifts(diff_, pair);
    std::vector<FieldDiff> fields(readable.fields.begin(), readable.fields.end());
    const auto [more, consequences] = FoldMany(fields);
    size_t width = 0;
    for (const FieldDiff& field : fields)
      width = std::max(width, field.path.size());
    for (const FieldDiff& field : fields) {
      out_ += fmt::format("      {:<{}}  {} → {}{}\n", field.path, width,
                          Tinted(Tint::kRemoved, Value(field.before)),
                          Tinted(Tint::kAdded, Value(field.after)),
                          field.derived ? Tinted(Tint::kDim, "  derived") : "");
    }
    if (more > 0) out_ += Tinted(Tint::kDim, fmt::format("      and {} more (--all)\n", more));
    if (consequences > 0) {
      out_ += Tinted(
          Tint::kDim,
          fmt::format("      and {} that follow from other changes (--all)\n", consequences));
    }
    if (readable.shifted > 0) {
      out_ += Tinted(Tint::kDim, fmt::format("      and {}\n", ShiftText(readable.shifted)));
    }
  }

  void Relations() {
    if (diff_.relations.empty()) return;
    out_ += fmt::format("\n{}\n", Tinted(Tint::kBold, "relations"));
    for (const Relation& relation : diff_.relations) {
      out_ += fmt::format("  {:<14}  {} → {}\n", ToString(relation.kind),
                          Names(diff_.before, relation.before), Names(diff_.after, relation.after));
    }
  }

  static std::string Names(const Listing& listing, const std::vector<EntityId>& ids) {
    constexpr size_t kShown = 6;
    std::vector<std::string> names;
    for (EntityId id : std::span(ids).first(std::min(ids.size(), kShown)))
      names.push_back(Visible(listing.name(id)));
    std::string text = fmt::format("{}", fmt::join(names, ", "));
    if (ids.size() > kShown) text += fmt::format(" and {} more", ids.size() - kShown);
    return text;
  }

  void Derived() {
    if (diff_.summary.derived == 0) return;
    if (!options_.all) {
      out_ += Tinted(Tint::kDim, fmt::format("\n{} derived changes follow from these (--all "
                                             "shows them)\n",
                                             diff_.summary.derived));
      return;
    }
    out_ += fmt::format("\n{}\n", Tinted(Tint::kBold, "derived"));
    for (const Pair& pair : diff_.pairs) {
      if (pair.status.derived && !pair.status.moved) PairLines(pair);
    }
  }

  /// The metadata that --meta asks for; it is not a difference.
  void Metadata() {
    bool any = false;
    for (const Pair& pair : diff_.pairs) {
      if (pair.status.differs() || pair.fields.empty()) continue;
      if (!any) out_ += fmt::format("\n{}\n", Tinted(Tint::kBold, "metadata"));
      any = true;
      PairLines(pair);
    }
  }

  const GraphDiff& diff_;
  const DiffTextOptions& options_;
  std::string out_;
};

}  // namespace

std::string DiffText(const GraphDiff& diff, std::string_view before_ref, std::string_view after_ref,
                     const DiffTextOptions& options) {
  return TextWriter(diff, options).Write(Visible(before_ref), Visible(after_ref));
}

}  // namespace strata::cli
