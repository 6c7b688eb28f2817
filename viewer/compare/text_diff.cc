#include "viewer/compare/text_diff.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "base/unicode.h"
#include "ir/text/native_text.h"

namespace strata::viewer {
namespace {

/// Printed lines longer than this are cut: the rest of a return of 300 values helps no reader.
constexpr size_t kMaxLine = 600;

/// The printed line of each entity; "" for elements, which have no line of their own.
IdVector<EntityId, std::string> LinesOf(const Listing& listing) {
  IdVector<EntityId, std::string> lines(static_cast<size_t>(listing.size()));
  for (const Listing::Scope& scope : listing.scopes().values()) {
    std::string text;
    PrintText(*scope.graph, {.types = false, .metadata = false}, text);
    std::string_view rest = text;
    TakeLine(rest);  // graph NAME
    for (NodeId id : scope.graph->nodes()) {
      std::string_view line = TakeLine(rest);
      line.remove_prefix(std::min<size_t>(2, line.size()));
      const EntityId entity = listing.Find(scope.graph->id(), id);
      if (entity.valid()) lines[entity] = Visible(line.substr(0, kMaxLine));
    }
  }
  return lines;
}

/// Collects unchanged lines until it is known how many of them are shown.
class Rows {
 public:
  Rows(bool folds, size_t context) : folds_(folds), context_(context) {}

  void Quiet(TextRow row) { quiet_.push_back(std::move(row)); }
  void Add(TextRow row) {
    Flush(false);
    rows_.push_back(std::move(row));
  }
  std::vector<TextRow> Take() {
    Flush(true);
    return std::move(rows_);
  }

 private:
  void Flush(bool last) {
    const size_t head = rows_.empty() ? 0 : context_, tail = last ? 0 : context_;
    if (folds_ && quiet_.size() > head + tail + 1) {
      for (size_t i = 0; i < head; ++i)
        rows_.push_back(std::move(quiet_[i]));
      TextRow fold;
      fold.kind = TextRow::Kind::kFold;
      fold.folded = static_cast<int32_t>(quiet_.size() - head - tail);
      fold.node = quiet_[head].node;
      rows_.push_back(std::move(fold));
      for (size_t i = quiet_.size() - tail; i < quiet_.size(); ++i)
        rows_.push_back(std::move(quiet_[i]));
    } else {
      std::ranges::move(quiet_, std::back_inserter(rows_));
    }
    quiet_.clear();
  }

  const bool folds_;
  const size_t context_;
  std::vector<TextRow> rows_, quiet_;
};

std::vector<std::pair<size_t, size_t>> WordsOf(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> words;
  const auto kind = [&](size_t i) {
    return IsWordChar(text[i]) || text[i] == '.' ? 1 : text[i] == ' ' ? 2 : 0;
  };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (kind(i) == 0) {
      end = i + std::max<size_t>(1, Utf8Length(text, i));
    } else {
      while (end < text.size() && kind(end) == kind(i))
        ++end;
    }
    words.emplace_back(i, end);
    i = end;
  }
  return words;
}

}  // namespace

std::vector<TextRow> MakeTextDiff(const Comparison& c, size_t context) {
  const IdVector<EntityId, std::string> before = LinesOf(c.diff().before);
  const IdVector<EntityId, std::string> after = LinesOf(c.diff().after);
  Rows rows(!c.changes().empty(), context);
  int32_t old_line = 0, new_line = 0;
  for (SceneNodeId i : c.nodes()) {
    const SceneNode& n = c.node(i);
    const std::string a = n.before.valid() ? before[n.before] : std::string();
    const std::string b = n.after.valid() ? after[n.after] : std::string();
    if (a.empty() && b.empty()) continue;
    old_line += a.empty() ? 0 : 1;
    new_line += b.empty() ? 0 : 1;
    if (a == b) {
      rows.Quiet({TextRow::Kind::kSame, i, old_line, new_line, b, {}, 0});
      continue;
    }
    if (!a.empty()) rows.Add({TextRow::Kind::kRemoved, i, old_line, 0, a, b, 0});
    if (!b.empty()) rows.Add({TextRow::Kind::kAdded, i, 0, new_line, b, a, 0});
  }
  return rows.Take();
}

SceneNodeId NodeOfLine(const Comparison& c, int64_t line) {
  SceneNodeId found_before;
  int64_t old_line = 0, new_line = 0;
  for (SceneNodeId i : c.nodes()) {
    const SceneNode& n = c.node(i);
    const auto has_line = [](const Listing& listing, EntityId id) {
      return id.valid() && !listing[id].element.valid();
    };
    if (has_line(c.diff().before, n.before) && ++old_line == line) found_before = i;
    if (has_line(c.diff().after, n.after) && ++new_line == line) return i;
  }
  return new_line == 0 ? found_before : SceneNodeId();
}

std::vector<std::pair<size_t, size_t>> DifferingWords(std::string_view line,
                                                      std::string_view other) {
  const auto a = WordsOf(line), b = WordsOf(other);
  const auto word = [](std::string_view text, std::pair<size_t, size_t> at) {
    return text.substr(at.first, at.second - at.first);
  };
  size_t begin = 0, end = 0;
  while (begin < a.size() && begin < b.size() && word(line, a[begin]) == word(other, b[begin]))
    ++begin;
  while (end < a.size() - begin && end < b.size() - begin &&
         word(line, a[a.size() - 1 - end]) == word(other, b[b.size() - 1 - end]))
    ++end;
  // A longest common subsequence of what is left.
  const size_t m = a.size() - begin - end, n = b.size() - begin - end;
  std::vector<bool> same(m, false);
  if (m > 0 && n > 0 && m * n < 40'000) {
    std::vector<std::vector<uint16_t>> best(m + 1, std::vector<uint16_t>(n + 1, 0));
    const auto equal = [&](size_t i, size_t j) {
      return word(line, a[begin + i]) == word(other, b[begin + j]);
    };
    for (size_t i = m; i-- > 0;) {
      for (size_t j = n; j-- > 0;)
        best[i][j] = equal(i, j) ? static_cast<uint16_t>(best[i + 1][j + 1] + 1)
                                 : std::max(best[i + 1][j], best[i][j + 1]);
    }
    for (size_t i = 0, j = 0; i < m && j < n;) {
      if (equal(i, j)) {
        same[i++] = true;
        ++j;
      } else if (best[i + 1][j] >= best[i][j + 1]) {
        ++i;
      } else {
        ++j;
      }
    }
  }
  std::vector<std::pair<size_t, size_t>> parts;
  for (size_t i = 0; i < m; ++i) {
    if (same[i]) continue;
    const auto at = a[begin + i];
    if (!parts.empty() && parts.back().second == at.first) {
      parts.back().second = at.second;
    } else {
      parts.push_back(at);
    }
  }
  return parts;
}

}  // namespace strata::viewer
