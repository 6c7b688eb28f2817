#include "passes/simulate/collective_table.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/source_error.h"
#include "base/text.h"

namespace strata {
namespace {

constexpr double kMiB = 1 << 20;

template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The words of the lines, one line at a time.
class Lines {
 public:
  Lines(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  /// False: there is none.
  bool Next() {
    words_.clear();
    while (words_.empty() && next_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', next_), text_.size());
      SplitLine(next_, end);
      next_ = end + 1;
    }
    return !words_.empty();
  }
  const std::vector<std::string_view>& words() const { return words_; }
  Error At(std::string_view word, std::string_view what) const {
    return ErrorAt(file_, text_, static_cast<size_t>(word.data() - text_.data()), what);
  }

 private:
  void SplitLine(size_t begin, size_t end) {
    const std::string_view line = text_.substr(begin, end - begin);
    constexpr std::string_view kBlanks = " \t\r";
    for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
      const size_t word_end = std::min(line.find_first_of(kBlanks, at), line.size());
      words_.push_back(line.substr(at, word_end - at));
      at = line.find_first_not_of(kBlanks, word_end);
    }
  }

  const std::string_view text_, file_;
  size_t next_ = 0;
  std::vector<std::string_view> words_;
};

/// `Group  Group Size  Collective  1MB (ms)  2MB (ms)`: the bytes of each column.
Result<std::vector<double>> ReadHeader(Lines& lines) {
  constexpr std::string_view kFirst[] = {"Group", "Group", "Size", "Collective"};
  if (!lines.Next()) return Error("no table of collectives: the text is empty");
  const std::vector<std::string_view>& words = lines.words();
  const bool is_header = words.size() > std::size(kFirst) &&
                         std::equal(std::begin(kFirst), std::end(kFirst), words.begin());
  if (!is_header)
    return lines.At(words[0], "expected the columns Group, Group Size, Collective and sizes");
  std::vector<double> bytes;
  for (size_t i = std::size(kFirst); i < words.size(); i += 2) {
    const std::string_view size = words[i];
    const bool is_size = size.ends_with("MB") && i + 1 < words.size() && words[i + 1] == "(ms)";
    const auto number = is_size ? NumberOf<int64_t>(size.substr(0, size.size() - 2)) : std::nullopt;
    if (!number || *number < 1) return lines.At(size, "expected a column of times: 16MB (ms)");
    bytes.push_back(static_cast<double>(*number) * kMiB);
    if (bytes.size() > 1 && bytes[bytes.size() - 2] >= bytes.back())
      return lines.At(size, "expected sizes in rising order");
  }
  return bytes;
}

}  // namespace

Result<CollectiveTable> CollectiveTable::Parse(std::string_view text, std::string_view file) {
  Lines lines(text, file);
  STRATA_TRY(const std::vector<double> bytes, ReadHeader(lines));
  CollectiveTable table;
  while (lines.Next()) {
    const std::vector<std::string_view>& words = lines.words();
    if (words[0].starts_with('-')) continue;
    if (words.size() != 3 + bytes.size()) {
      return lines.At(words[0], fmt::format("expected {} columns, and there are {}",
                                            3 + bytes.size(), words.size()));
    }
    const auto ranks = NumberOf<int64_t>(words[1]);
    if (!ranks || *ranks < 1) return lines.At(words[1], "expected a number of ranks");
    const auto [found, is_new] = table.lines_.try_emplace(
        {.group = std::string(words[0]), .op = std::string(words[2]), .ranks = *ranks});
    if (!is_new) return lines.At(words[0], "the collective is there twice");
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto ms = NumberOf<double>(words[3 + i]);
      if (!ms || !(*ms >= 0)) return lines.At(words[3 + i], "expected a time in ms");
      found->second.emplace(bytes[i], *ms * 1e3);
    }
  }
  return table;
}

Result<CollectiveTable> CollectiveTable::Load(const std::string& file) {
  STRATA_TRY(const std::string text, ReadFile(file));
  if (TrimBlanks(text).empty()) return Error("no table of collectives: {}: it is empty", file);
  return Parse(text, file);
}

std::optional<double> CollectiveTable::Us(std::string_view group, int64_t ranks,
                                          std::string_view op, double bytes) const {
  const auto line = std::ranges::find_if(lines_, [&](const auto& each) {
    const Key& key = each.first;
    return key.group == group && key.op == op && (ranks == 0 || key.ranks == ranks);
  });
  if (line == lines_.end()) return std::nullopt;
  const std::map<double, double>& points = line->second;
  auto after = points.lower_bound(bytes);
  if (after == points.begin()) return after->second;
  if (after == points.end()) --after;
  if (after == points.begin()) return after->second;
  const auto before = std::prev(after);
  const double part = (bytes - before->first) / (after->first - before->first);
  return std::max(0.0, before->second + part * (after->second - before->second));
}

}  // namespace strata
