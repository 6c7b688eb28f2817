#include "tlparse-export/review/markdown.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/unicode.h"
#include "diff/graph/statement.h"
#include "diff/model/summary.h"
#include "diff/output/fold_shifts.h"
#include "ir/fingerprint.h"
#include "tlparse-export/review/markdown_text.h"

namespace strata {
namespace {

constexpr size_t kMaxLine = 400;
// Of one change; the report has the rest.
constexpr size_t kMaxChangeLines = 40;
constexpr size_t kMaxFields = 12;
// Kept free for what closes open blocks and for the list of what was left out.
constexpr size_t kReserve = 900;
// The part of the changes that is shown unfolded.
constexpr size_t kMaxUnfolded = 6'000;
constexpr size_t kMaxUnfoldedViolations = 10;

class Writer {
 public:
  Writer(const GraphDiff& diff, const ReviewOptions& options) : diff_(diff), options_(options) {}

  Result<std::string> Run() {
    std::string link, image;
    if (!options_.link.empty()) {
      STRATA_TRY(link, MarkdownUrl(options_.link, "--link"));
    }
    if (!options_.image.empty()) {
      STRATA_TRY(image, MarkdownUrl(options_.image, "--image"));
    }
    BeginSection(1);
    out_ += fmt::format("### Graph diff: {}\n\n", Headline());
    Sides();
    BeginSection(0.3);
    Verdict();
    if (!link.empty()) out_ += fmt::format("[Open the whole report]({})\n\n", link);
    if (!image.empty()) out_ += fmt::format("![The changed part of the graph]({})\n\n", image);
    BeginSection(0.2);
    Patterns();
    BeginSection(0.6);
    Causes();
    BeginSection(0.1);
    Relations();
    BeginSection(1);
    Derived();
    Omissions();
    return std::move(out_);
  }

 private:
  bool Fits(size_t bytes) const { return out_.size() + bytes <= section_end_; }

  /// What follows may take this part of the whole, so that a long list does not displace the
  /// others.
  void BeginSection(double part) {
    const size_t end = options_.max_bytes - kReserve;
    const auto most = static_cast<size_t>(part * static_cast<double>(options_.max_bytes));
    section_end_ = std::min(end, out_.size() + most);
  }

  /// A list that may end early: "12 of 40 violations".
  void NoteLeftOut(size_t left, size_t all, std::string_view what) {
    if (left > 0) left_out_.push_back(fmt::format("{} of {} {}", left, all, what));
  }

  std::string Cut(std::string line) {
    if (line.size() <= kMaxLine) return line;
    ++cut_lines_;
    size_t end = kMaxLine;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
      --end;
    return line.substr(0, end) + "…";
  }

  std::string Headline() const {
    std::vector<std::string> parts;
    for (const SummaryPart& part : SummaryParts(diff_.summary))
      parts.push_back(part.ToString());
    return fmt::format("{}", fmt::join(parts, " · "));
  }

  void Sides() {
    out_ += "| | graph | nodes | fingerprint |\n|---|---|---|---|\n";
    const auto side = [&](std::string_view what, std::string_view ref, const Listing& listing) {
      out_ +=
          fmt::format("| {} | {} | {} | `{}` |\n", what, MarkdownCode(Cut(std::string(ref)), true),
                      listing.size(), ToString(FingerprintOf(listing.root())));
    };
    side("before", options_.before_ref, diff_.before);
    side("after", options_.after_ref, diff_.after);
    out_ += '\n';
  }

  void Verdict() {
    if (options_.verdict == nullptr) return;
    const PolicyVerdict& verdict = *options_.verdict;
    const size_t count = verdict.violations.size();
    if (verdict.allowed()) {
      out_ += fmt::format("✅ {} allows this change.\n\n", MarkdownCode(Cut(verdict.file)));
      return;
    }
    out_ += fmt::format("❌ **{} violation{}** of {}\n\n", count, count == 1 ? "" : "s",
                        MarkdownCode(Cut(verdict.file)));
    size_t shown = 0;
    const auto item = [&] {
      const Violation& violation = verdict.violations[shown];
      const std::string line = fmt::format("- {}\\\n  {}\n", MarkdownCode(Cut(violation.what)),
                                           MarkdownCode(Cut(violation.rule)));
      if (!Fits(line.size())) return false;
      out_ += line;
      ++shown;
      return true;
    };
    while (shown < std::min(count, kMaxUnfoldedViolations) && item()) {
    }
    if (shown < count && Fits(1000)) {
      out_ += fmt::format("\n<details><summary>{} more violations</summary>\n\n", count - shown);
      while (shown < count && item()) {
      }
      out_ += "\n</details>\n";
    }
    out_ += '\n';
    NoteLeftOut(count - shown, count, "violations");
  }

  void Patterns() {
    if (diff_.patterns.empty()) return;
    out_ += "#### Patterns\n\n| × | nodes | what | where | not in |\n|---|---|---|---|---|\n";
    size_t shown = 0;
    for (const Pattern& pattern : diff_.patterns) {
      std::string exceptions;
      for (const std::string& place : pattern.except) {
        if (exceptions.size() > kMaxLine) {
          exceptions += ", …";
          ++cut_lines_;
          break;
        }
        exceptions += (exceptions.empty() ? "" : ", ") + MarkdownCode(Cut(place), true);
      }
      const std::string line = fmt::format(
          "| {} | {} | {} | {} | {} |\n", pattern.hunks.size(), pattern.nodes,
          MarkdownCode(Cut(pattern.title), true),
          pattern.where.empty() ? "" : MarkdownCode(Cut(pattern.where), true), exceptions);
      if (!Fits(line.size())) break;
      out_ += line;
      ++shown;
    }
    out_ += '\n';
    NoteLeftOut(diff_.patterns.size() - shown, diff_.patterns.size(), "patterns");
    BeginSection(0.1);
    Deviations();
  }

  /// Where a pattern is broken, and by what: the first thing to look at.
  void Deviations() {
    size_t all = 0, shown = 0;
    for (const Pattern& pattern : diff_.patterns)
      all += pattern.deviations.size();
    if (all == 0) return;
    for (const Pattern& pattern : diff_.patterns) {
      for (const Deviation& deviation : pattern.deviations) {
        const std::string line = fmt::format(
            "- {} differs: {}\n", MarkdownCode(Cut(deviation.where)),
            deviation.what.empty() ? "nothing happened there" : MarkdownCode(Cut(deviation.what)));
        if (shown == 20 || !Fits(line.size())) continue;
        out_ += line;
        ++shown;
      }
    }
    out_ += '\n';
    NoteLeftOut(all - shown, all, "deviations from patterns");
  }

  // Changes, as blocks of a `diff` fence. Each line begins with a sign or blanks, so that none of
  // them can end the fence.

  std::string NodeLine(const Listing& listing, EntityId id, char sign) {
    const std::string type = AnnotationText(listing, id);
    return Cut(fmt::format("{} {}{}{}", sign, StatementText(listing, id),
                           type.empty() ? "" : "  : ", type)) +
           '\n';
  }

  std::string PairLines(const Pair& pair, bool derived_too) {
    const std::string before = diff_.before.name(pair.before), after = diff_.after.name(pair.after);
    const std::string_view target = diff_.after.target(pair.after);
    std::string text =
        Cut(Visible(fmt::format("! {}{}{}{}{}", pair.status.moved ? "↷ " : "", before,
                                before == after ? "" : " → ", before == after ? "" : after,
                                target.empty() ? "" : fmt::format("  {}", target)))) +
        '\n';
    size_t shown = 0;
    const ReadableFields readable = FoldShifts(diff_, pair);
    for (const FieldDiff& field : readable.fields) {
      if (field.derived && !derived_too) continue;
      if (++shown > kMaxFields) {
        text += fmt::format("      and {} more fields\n", readable.fields.size() - shown + 1);
        break;
      }
      const auto side = [&](char sign, const std::optional<std::string_view>& value) {
        if (value)
          text += Cut(fmt::format("{}     {}: {}", sign, field.path, Visible(*value))) + '\n';
      };
      side('-', field.before);
      side('+', field.after);
    }
    if (readable.shifted > 0) text += fmt::format("      and {}\n", ShiftText(readable.shifted));
    return text;
  }

  /// A change, or its first lines.
  std::string HunkBlock(const Hunk& hunk) {
    EntityId first;
    const Listing* side = &diff_.after;
    if (!hunk.inserted.empty()) {
      first = hunk.inserted[0];
    } else if (!hunk.pairs.empty()) {
      first = diff_.pairs[hunk.pairs[0]].after;
    } else if (!hunk.deleted.empty()) {
      first = hunk.deleted[0];
      side = &diff_.before;
    }
    std::string text;
    const std::string module = first.valid() ? ModuleText(*side, first) : "";
    text += Cut(fmt::format("@@ {} @@", module.empty() ? "change" : module)) + '\n';
    size_t shown = 0;
    const auto show = [&](const auto& nodes, auto&& print) {
      for (const auto& node : nodes) {
        if (shown == kMaxChangeLines) return;
        text += print(node);
        ++shown;
      }
    };
    show(hunk.deleted, [&](EntityId id) { return NodeLine(diff_.before, id, '-'); });
    show(hunk.inserted, [&](EntityId id) { return NodeLine(diff_.after, id, '+'); });
    show(hunk.pairs, [&](PairId index) { return PairLines(diff_.pairs[index], false); });
    const size_t all = hunk.deleted.size() + hunk.inserted.size() + hunk.pairs.size();
    if (shown < all) {
      text += fmt::format("# and {} more nodes of this change\n", all - shown);
    }
    return text;
  }

  /// Patterns are shown by their first hunk.
  std::vector<std::pair<const Hunk*, size_t>> Representatives() const {
    std::vector<std::pair<const Hunk*, size_t>> hunks;
    IdVector<PatternId, bool> seen(diff_.patterns.size());
    for (const Hunk& hunk : diff_.hunks) {
      size_t more = 0;
      if (hunk.pattern.valid()) {
        if (seen[hunk.pattern]) continue;
        seen[hunk.pattern] = true;
        more = diff_.patterns[hunk.pattern].hunks.size() - 1;
      }
      hunks.emplace_back(&hunk, more);
    }
    // What stands alone is what a reviewer has to read; what is returned follows from the rest.
    std::ranges::stable_sort(hunks, {}, [&](const auto& hunk) {
      return IsOutputOnly(*hunk.first) ? 2 : hunk.first->pattern.valid() ? 1 : 0;
    });
    return hunks;
  }

  bool IsOutputOnly(const Hunk& hunk) const {
    return hunk.inserted.empty() && hunk.deleted.empty() &&
           std::ranges::all_of(hunk.pairs, [&](PairId index) {
             const EntityId id = diff_.pairs[index].after;
             return diff_.after[id].kind == EntityKind::kOutput;
           });
  }

  void Causes() {
    const std::vector<std::pair<const Hunk*, size_t>> hunks = Representatives();
    if (hunks.empty()) return;
    out_ += "#### Changes\n\n";
    size_t shown = 0;
    const size_t begin = out_.size();
    const auto block = [&](size_t limit) {
      const auto& [hunk, more] = hunks[shown];
      std::string text = HunkBlock(*hunk);
      if (more > 0) text += fmt::format("# and {} more like this\n", more);
      if (!Fits(text.size() + 20)) return false;
      if (shown > 0 && out_.size() + text.size() - begin > limit) return false;
      out_ += text;
      ++shown;
      return true;
    };
    out_ += "```diff\n";
    while (shown < hunks.size() && block(kMaxUnfolded)) {
    }
    out_ += "```\n\n";
    if (shown < hunks.size() && Fits(1000)) {
      out_ += fmt::format("<details><summary>{} more changes</summary>\n\n```diff\n",
                          hunks.size() - shown);
      while (shown < hunks.size() && block(options_.max_bytes)) {
      }
      out_ += "```\n\n</details>\n\n";
    }
    NoteLeftOut(hunks.size() - shown, hunks.size(), "changes");
  }

  void Relations() {
    if (diff_.relations.empty()) return;
    const size_t all = diff_.relations.size();
    if (!Fits(500)) return NoteLeftOut(all, all, "relations");
    out_ +=
        fmt::format("<details><summary>{} relation{} of nodes that are not identical</summary>\n\n",
                    all, all == 1 ? "" : "s");
    size_t shown = 0;
    for (const Relation& relation : diff_.relations) {
      const std::string line =
          fmt::format("- {}: {} → {}\n", ToString(relation.kind),
                      Names(diff_.before, relation.before), Names(diff_.after, relation.after));
      if (!Fits(line.size() + 20)) break;
      out_ += line;
      ++shown;
    }
    out_ += "\n</details>\n\n";
    NoteLeftOut(all - shown, all, "relations");
  }

  std::string Names(const Listing& listing, const std::vector<EntityId>& ids) {
    constexpr size_t kShown = 8;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(ids.size(), kShown); ++i)
      names.push_back(MarkdownCode(Cut(listing.name(ids[i]))));
    return Enumerate(names, kShown) +
           (ids.size() > kShown ? fmt::format(" and {} more", ids.size() - kShown) : "");
  }

  void Derived() {
    const auto all = static_cast<size_t>(diff_.summary.derived);
    if (all == 0) return;
    if (!Fits(500)) return NoteLeftOut(all, all, "derived changes");
    out_ += fmt::format(
        "<details><summary>{} derived change{}: consequences of these</summary>\n\n```diff\n", all,
        all == 1 ? "" : "s");
    size_t shown = 0;
    for (const Pair& pair : diff_.pairs) {
      if (!pair.status.derived) continue;
      const std::string text = PairLines(pair, true);
      if (!Fits(text.size() + 20)) break;
      out_ += text;
      ++shown;
    }
    out_ += "```\n\n</details>\n\n";
    NoteLeftOut(all - shown, all, "derived changes");
  }

  void Omissions() {
    if (left_out_.empty() && cut_lines_ == 0) return;
    std::vector<std::string> parts;
    if (!left_out_.empty()) {
      parts.push_back(fmt::format("Left out, as it did not fit into {} bytes: {}.",
                                  options_.max_bytes, fmt::join(left_out_, ", ")));
    }
    if (cut_lines_ > 0) {
      parts.push_back(fmt::format("{} longer than {} bytes {} cut.",
                                  cut_lines_ == 1 ? "1 line" : fmt::format("{} lines", cut_lines_),
                                  kMaxLine, cut_lines_ == 1 ? "was" : "were"));
    }
    out_ += fmt::format("*{}*\n", fmt::join(parts, " "));
  }

  const GraphDiff& diff_;
  const ReviewOptions& options_;
  std::string out_;
  size_t section_end_ = 0;
  std::vector<std::string> left_out_;
  size_t cut_lines_ = 0;
};

}  // namespace

Result<std::string> ReviewMarkdown(const GraphDiff& diff, const ReviewOptions& options) {
  return Writer(diff, options).Run();
}

}  // namespace strata
