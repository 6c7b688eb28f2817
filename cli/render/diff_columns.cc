#include "cli/render/diff_columns.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "cli/render/tint.h"
#include "diff/graph/arguments.h"
#include "diff/graph/statement.h"

namespace strata::cli {
namespace {

/// A part of a line that differs from the other side's, or not.
struct Piece {
  std::string text;
  bool marked = false;
};
using Line = std::vector<Piece>;

/// Words and single characters.
std::vector<std::string_view> Tokenize(std::string_view text) {
  std::vector<std::string_view> tokens;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (IsWordChar(text[i])) {
      while (i < text.size() && (IsWordChar(text[i]) || text[i] == '.'))
        ++i;
    } else {
      i += std::max<size_t>(Utf8Length(text, i), 1);
    }
    tokens.push_back(text.substr(begin, i - begin));
  }
  return tokens;
}

/// Flags of the tokens that are in no longest common sequence. Beyond kMaxTokens only a common
/// beginning and end are looked for.
template <class Equal>
void MarkDifferences(std::span<const std::string_view> a, std::span<const std::string_view> b,
                     Equal&& equal, std::vector<bool>& mark_a, std::vector<bool>& mark_b) {
  constexpr size_t kMaxTokens = 400;
  mark_a.assign(a.size(), true);
  mark_b.assign(b.size(), true);
  size_t begin = 0, end = 0;
  while (begin < std::min(a.size(), b.size()) && equal(a[begin], b[begin])) {
    mark_a[begin] = mark_b[begin] = false;
    ++begin;
  }
  while (begin + end < std::min(a.size(), b.size()) &&
         equal(a[a.size() - end - 1], b[b.size() - end - 1])) {
    ++end;
    mark_a[a.size() - end] = mark_b[b.size() - end] = false;
  }
  const size_t rows = a.size() - begin - end, columns = b.size() - begin - end;
  if (rows > kMaxTokens || columns > kMaxTokens) return;
  std::vector<uint16_t> longest((rows + 1) * (columns + 1), 0);
  const auto at = [&](size_t i, size_t j) -> uint16_t& { return longest[i * (columns + 1) + j]; };
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      at(i, j) = equal(a[begin + i], b[begin + j]) ? static_cast<uint16_t>(at(i + 1, j + 1) + 1)
                                                   : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  for (size_t i = 0, j = 0; i < rows && j < columns;) {
    if (equal(a[begin + i], b[begin + j])) {
      mark_a[begin + i++] = mark_b[begin + j++] = false;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      ++i;
    } else {
      ++j;
    }
  }
}

Line Joined(std::span<const std::string_view> tokens, const std::vector<bool>& marks) {
  Line line;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (line.empty() || line.back().marked != marks[i]) line.push_back({"", marks[i]});
    line.back().text += tokens[i];
  }
  return line;
}

/// Cut into lines of at most `width` columns; all but the first are indented.
std::vector<Line> Wrap(const Line& line, size_t width) {
  constexpr size_t kIndent = 4;
  std::vector<Line> lines(1);
  size_t used = 0;
  for (const Piece& piece : line) {
    std::string_view rest = piece.text;
    while (!rest.empty()) {
      if (used >= width) {
        lines.push_back({{std::string(kIndent, ' '), false}});
        used = kIndent;
      }
      const size_t bytes = BytesThatFit(rest, width - used);
      const size_t columns = DisplayWidth(rest.substr(0, bytes));
      if (used + columns > width) {  // a wide character at the end
        used = width;
        continue;
      }
      lines.back().push_back({std::string(rest.substr(0, bytes)), piece.marked});
      used += columns;
      rest.remove_prefix(bytes);
    }
  }
  return lines;
}

enum class RowKind : uint8_t { kSame, kDerived, kChanged, kMoved, kInserted, kDeleted };

struct PairRow {
  RowKind kind;
  EntityId before, after;
  const Pair* pair = nullptr;
};

class ColumnWriter {
 public:
  ColumnWriter(const GraphDiff& diff, const DiffColumnsOptions& options)
      : diff_(diff), options_(options), column_((std::max<size_t>(options.width, 50) - 3) / 2) {}

  std::string Write(std::string_view before_ref, std::string_view after_ref) {
    Cells({{Visible(before_ref), false}}, {{Visible(after_ref), false}}, ' ', Tint::kBold);
    FindRows();
    FindShown();
    size_t hidden = 0;
    ScopeId scope = Listing::kProgram;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!shown_[i]) {
        ++hidden;
        continue;
      }
      Elision(hidden);
      hidden = 0;
      const PairRow& row = rows_[i];
      if (row.after.valid() && diff_.after.scope_of(row.after) != scope) {
        scope = diff_.after.scope_of(row.after);
        const std::string& prefix = diff_.after.scopes()[scope].prefix;
        out_ += Tinted(options_.colours, Tint::kBold, fmt::format("── {}", Visible(prefix))) + '\n';
      }
      WriteRow(row);
    }
    Elision(hidden);
    return std::move(out_);
  }

 private:
  static size_t Index(EntityId id) { return static_cast<size_t>(id.index); }

  const Pair* PairOfAfter(EntityId after) const {
    const PairId index = diff_.pair_of_after[after];
    return !index.valid() ? nullptr : &diff_.pairs[index];
  }

  /// In the order of the after side; deleted nodes where they were, before what was inserted there.
  void FindRows() {
    const int32_t num_before = diff_.before.size(), num_after = diff_.after.size();
    std::vector<int32_t> next_in_place(static_cast<size_t>(num_after));
    int32_t next = num_before;
    for (EntityId id{num_after - 1}; id.index >= 0; --id.index) {
      const Pair* const pair = PairOfAfter(id);
      if (pair != nullptr && !pair->status.moved) next = pair->before.index;
      next_in_place[Index(id)] = next;
    }
    EntityId before{0};
    const auto delete_up_to = [&](int32_t end) {
      for (; before.index < end; ++before.index) {
        if (!diff_.pair_of_before[before].valid()) {
          rows_.push_back({RowKind::kDeleted, before, {}, nullptr});
        }
      }
    };
    for (EntityId id{0}; id.index < num_after; ++id.index) {
      delete_up_to(next_in_place[Index(id)]);
      const Pair* const pair = PairOfAfter(id);
      if (pair == nullptr) {
        rows_.push_back({RowKind::kInserted, {}, id, nullptr});
        continue;
      }
      const RowKind kind = pair->status.changed   ? RowKind::kChanged
                           : pair->status.moved   ? RowKind::kMoved
                           : pair->status.derived ? RowKind::kDerived
                                                  : RowKind::kSame;
      rows_.push_back({kind, pair->before, id, pair});
    }
    delete_up_to(num_before);
  }

  bool IsChange(RowKind kind) const {
    return kind > RowKind::kDerived || (kind == RowKind::kDerived && options_.all);
  }

  void FindShown() {
    shown_.assign(rows_.size(), options_.all);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!IsChange(rows_[i].kind)) continue;
      const size_t begin = i - std::min(i, options_.context);
      const size_t end = std::min(rows_.size(), i + options_.context + 1);
      std::fill(shown_.begin() + static_cast<std::ptrdiff_t>(begin),
                shown_.begin() + static_cast<std::ptrdiff_t>(end), true);
    }
  }

  void Elision(size_t hidden) {
    if (hidden == 0) return;
    out_ += Tinted(options_.colours, Tint::kDim, fmt::format("⋯ {} nodes", hidden)) + '\n';
  }

  static bool IsOfType(std::string_view path) {
    return path == "dtype" || path == "shape" || path == "strides" || path == "device" ||
           path == "placement";
  }
  static bool IsInStatement(std::string_view path) {
    return path == "target" || path.starts_with("args[") || path.starts_with("kwargs.") ||
           path.starts_with("operands[");
  }

  void WriteRow(const PairRow& row) {
    switch (row.kind) {
      case RowKind::kDeleted:
        return Cells({{StatementText(diff_.before, row.before), false}}, {}, '-', Tint::kRemoved);
      case RowKind::kInserted:
        return Cells({}, {{StatementText(diff_.after, row.after), false}}, '+', Tint::kAdded);
      case RowKind::kSame:
        return Cells({{StatementText(diff_.before, row.before), false}},
                     {{StatementText(diff_.after, row.after), false}}, ' ', Tint::kNone);
      case RowKind::kMoved:
      case RowKind::kDerived:
      case RowKind::kChanged:
        return PairCells(row);
    }
  }

  void PairCells(const PairRow& row) {
    const bool with_type = std::ranges::any_of(
        row.pair->fields, [](const FieldDiff& field) { return IsOfType(field.path); });
    const auto text = [&](const Listing& listing, EntityId id) {
      const std::string type = with_type ? AnnotationText(listing, id) : "";
      return StatementText(listing, id) + (type.empty() ? "" : "  : " + type);
    };
    const std::string before = text(diff_.before, row.before);
    const std::string after = text(diff_.after, row.after);
    // Operands that are matched with each other are equal, whatever their names.
    std::map<std::string, std::string, std::less<>> images;
    for (EntityId operand : OperandsOf(diff_.before, row.before)) {
      if (!operand.valid()) continue;
      const PairId pair = diff_.pair_of_before[operand];
      if (!pair.valid()) continue;
      const EntityId image = diff_.pairs[pair].after;
      images[LastName(diff_.before, operand)] = LastName(diff_.after, image);
    }
    images[LastName(diff_.before, row.before)] = LastName(diff_.after, row.after);
    const std::vector<std::string_view> a = Tokenize(before), b = Tokenize(after);
    std::vector<bool> mark_a, mark_b;
    const auto equal = [&](std::string_view x, std::string_view y) {
      const auto image = images.find(x);
      return image == images.end() ? x == y : image->second == y;
    };
    MarkDifferences(a, b, equal, mark_a, mark_b);
    const bool is_changed = row.kind == RowKind::kChanged;
    const char mark = is_changed ? '~' : row.kind == RowKind::kMoved ? '>' : '.';
    const Tint tint = is_changed                    ? Tint::kChanged
                      : row.kind == RowKind::kMoved ? Tint::kMoved
                                                    : Tint::kDim;
    Cells(Joined(a, mark_a), Joined(b, mark_b), mark, tint);
    for (const FieldDiff& field : row.pair->fields) {
      if (IsOfType(field.path) || IsInStatement(field.path)) continue;
      const auto line = [&](const std::optional<std::string_view>& value) {
        return Line{{fmt::format("    {}: ", field.path), false},
                    {value ? Visible(*value) : "(nothing)", true}};
      };
      Cells(line(field.before), line(field.after), mark, tint);
    }
  }

  /// As statements write it: without the body's prefix.
  static std::string LastName(const Listing& listing, EntityId id) {
    const std::string& prefix = listing.scopes()[listing.scope_of(id)].prefix;
    return Visible(listing.name(id).substr(prefix.size()));
  }

  void Cells(const Line& before, const Line& after, char mark, Tint tint) {
    const std::vector<Line> left = Wrap(before, column_), right = Wrap(after, column_);
    const bool is_pair = !before.empty() && !after.empty();
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      const Line& a = i < left.size() ? left[i] : kNothing;
      const Line& b = i < right.size() ? right[i] : kNothing;
      const std::string_view sign = mark == '>' ? "↷" : std::string_view(&mark, 1);
      std::string line = Shown(a, is_pair && tint == Tint::kChanged ? Tint::kRemoved : tint, tint);
      line += std::string(column_ - std::min(column_, WidthOf(a)), ' ');
      line += ' ' + Tinted(options_.colours, tint, i == 0 ? sign : " ") + ' ';
      line += Shown(b, is_pair && tint == Tint::kChanged ? Tint::kAdded : tint, tint);
      while (line.ends_with(' '))
        line.pop_back();
      out_ += line + '\n';
      if (!options_.colours) Carets(a, b);
    }
  }

  /// `marked` for what differs inside the line. Of a changed pair the rest has no colour.
  std::string Shown(const Line& line, Tint marked, Tint whole) const {
    std::string text;
    for (const Piece& piece : line) {
      const Tint plain = whole == Tint::kChanged ? Tint::kNone : whole;
      text += Tinted(options_.colours, piece.marked ? marked : plain, piece.text, piece.marked);
    }
    return text;
  }

  static size_t WidthOf(const Line& line) {
    size_t width = 0;
    for (const Piece& piece : line)
      width += DisplayWidth(piece.text);
    return width;
  }

  void Carets(const Line& before, const Line& after) {
    std::string line;
    const auto add = [&](const Line& of) {
      for (const Piece& piece : of)
        line += std::string(DisplayWidth(piece.text), piece.marked ? '^' : ' ');
    };
    add(before);
    line.resize(column_ + 3, ' ');
    add(after);
    if (line.find('^') == std::string::npos) return;
    line.resize(line.find_last_not_of(' ') + 1);
    out_ += line + '\n';
  }

  static inline const Line kNothing = {};

  const GraphDiff& diff_;
  const DiffColumnsOptions& options_;
  const size_t column_;  // width of one side
  std::vector<PairRow> rows_;
  std::vector<bool> shown_;
  std::string out_;
};

}  // namespace

std::string DiffColumns(const GraphDiff& diff, std::string_view before_ref,
                        std::string_view after_ref, const DiffColumnsOptions& options) {
  return ColumnWriter(diff, options).Write(before_ref, after_ref);
}

}  // namespace strata::cli
