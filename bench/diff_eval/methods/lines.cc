#include <algorithm>
#include <string>

#include "base/text.h"
#include "bench/diff_eval/methods/methods.h"
#include "ir/fx/fx.h"

namespace strata::bench {
namespace {

/// Line diffs give up here, as tools do.
constexpr int kMaxEdits = 3000;

struct Lines {
  std::vector<std::string> text;
  std::vector<int32_t> entity;
};

/// The lines of a printed graph that stand for its nodes; inputs have one each.
Lines LinesOf(const Graph& graph) {
  const Listing listing(graph);
  Lines lines;
  for (EntityId id : listing.scopes()[Listing::kProgram].ids) {
    if (listing[id].kind != EntityKind::kInput) continue;
    lines.text.push_back("input " + listing.name(id));
    lines.entity.push_back(id.index);
  }
  const std::string text = PrintFx(graph, {.comments = false, .frees = false});
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line(TrimBlanks(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
    const size_t name_end = std::min(line.find_first_of(":= "), line.size());
    std::string name = line.substr(0, name_end);
    if (name == "return") name = "output";
    const EntityId id = listing.FindName(name);
    if (!id.valid() || listing[id].kind == EntityKind::kInput) continue;
    lines.text.push_back(line);
    lines.entity.push_back(id.index);
  }
  return lines;
}

std::string StripNumbers(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (!IsWordChar(line[i]) || IsDigit(line[i])) {
      out += line[i++];
      continue;
    }
    size_t end = i;
    while (end < line.size() && IsWordChar(line[end]))
      ++end;
    std::string word = line.substr(i, end - i);
    const size_t digits = word.find_last_not_of("0123456789");
    if (digits != std::string::npos && digits + 1 < word.size() && word[digits] == '_') {
      word.resize(digits);
    }
    out += word;
    i = end;
  }
  return out;
}

/// Source: E. W. Myers, An O(ND) difference algorithm and its variations, 1986.
Partners Myers(const Lines& a, const Lines& b, size_t size) {
  const auto n = static_cast<int>(a.text.size()), m = static_cast<int>(b.text.size());
  Partners partners(size, -1);
  const auto equal = [&](int i, int j) {
    return a.text[static_cast<size_t>(i)] == b.text[static_cast<size_t>(j)];
  };
  std::vector<std::vector<int>> history;  // furthest x per diagonal -d … d
  int found = -1;
  for (int d = 0; d <= std::min(n + m, kMaxEdits) && found < 0; ++d) {
    std::vector<int> reach(static_cast<size_t>(2 * d) + 1);
    for (int k = -d; k <= d; k += 2) {
      int x = 0;
      if (d > 0) {
        const std::vector<int>& last = history.back();
        const auto at = [&](int diagonal) { return last[static_cast<size_t>(diagonal + d - 1)]; };
        x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      }
      while (x < n && x - k < m && equal(x, x - k))
        ++x;
      reach[static_cast<size_t>(k + d)] = x;
      if (x >= n && x - k >= m) found = d;
    }
    history.push_back(std::move(reach));
  }
  if (found < 0) return partners;
  for (int d = found, x = n, y = m; d >= 0; --d) {
    const int k = x - y;
    int last_x = 0, last_y = 0;
    if (d > 0) {
      const std::vector<int>& last = history[static_cast<size_t>(d) - 1];
      const auto at = [&](int diagonal) { return last[static_cast<size_t>(diagonal + d - 1)]; };
      const int from = k == -d || (k != d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
      last_x = at(from);
      last_y = last_x - from;
    }
    while (x > last_x && y > last_y) {
      --x, --y;
      partners[static_cast<size_t>(a.entity[static_cast<size_t>(x)])] =
          b.entity[static_cast<size_t>(y)];
    }
    x = last_x;
    y = last_y;
  }
  return partners;
}

Partners MatchLines(const Graph& before, const Graph& after, bool strip) {
  Lines a = LinesOf(before), b = LinesOf(after);
  for (Lines* lines : {&a, &b}) {
    for (std::string& line : lines->text)
      line = strip ? StripNumbers(line) : line;
  }
  return Myers(a, b, static_cast<size_t>(Listing(before).size()));
}

}  // namespace

Result<Partners> MatchByLines(const Graph& before, const Graph& after) {
  return MatchLines(before, after, false);
}

Result<Partners> MatchByStrippedLines(const Graph& before, const Graph& after) {
  return MatchLines(before, after, true);
}

Result<Partners> MatchByName(const Graph& before, const Graph& after) {
  const Listing a(before), b(after);
  Partners partners(static_cast<size_t>(a.size()), -1);
  for (EntityId id : a.ids()) {
    const EntityId found = b.FindName(a.name(id));
    if (found.valid() && a[id].kind == b[found].kind) {
      partners[static_cast<size_t>(id.index)] = found.index;
    }
  }
  return partners;
}

}  // namespace strata::bench
