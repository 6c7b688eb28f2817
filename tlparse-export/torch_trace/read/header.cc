#include "tlparse-export/torch_trace/read/header.h"

#include <algorithm>

#include "base/text.h"

namespace strata {
namespace {

/// Eats the front of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool Digits(size_t min, size_t max) {
    size_t count = 0;
    while (count < text_.size() && count < max && IsDigit(text_[count]))
      ++count;
    if (count < min) return false;
    text_.remove_prefix(count);
    return true;
  }
  bool Eat(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

/// The header that begins at the front of `line`.
std::optional<LogHeader> ReadAtFront(std::string_view line) {
  constexpr std::string_view kLevels = "VDIWEC";
  constexpr size_t kAnyNumber = 40;
  if (line.empty() || kLevels.find(line[0]) == std::string_view::npos) return std::nullopt;
  Cursor cursor(line.substr(1));
  if (!cursor.Digits(4, 4) || !cursor.Eat(' ') || !cursor.Digits(2, 2) || !cursor.Eat(':') ||
      !cursor.Digits(2, 2) || !cursor.Eat(':') || !cursor.Digits(2, 2) || !cursor.Eat('.') ||
      !cursor.Digits(1, 9) || !cursor.Eat(' ')) {
    return std::nullopt;
  }
  const size_t thread_begin = line.size() - cursor.rest().size();
  if (!cursor.Digits(1, kAnyNumber)) return std::nullopt;
  const size_t thread_end = line.size() - cursor.rest().size();
  if (!cursor.Eat(' ')) return std::nullopt;
  // PATH:LINE] JSON. A path may hold blanks and colons, but no bracket before a JSON object.
  const std::string_view rest = cursor.rest();
  for (size_t bracket = rest.find("] "); bracket != std::string_view::npos;
       bracket = rest.find("] ", bracket + 1)) {
    const size_t colon = rest.substr(0, bracket).rfind(':');
    if (colon == std::string_view::npos || colon + 1 == bracket ||
        !std::ranges::all_of(rest.substr(colon + 1, bracket - colon - 1), IsDigit)) {
      continue;
    }
    size_t json = line.size() - rest.size() + bracket + 2;
    // Other logs of PyTorch put the compile id between: `] [0/0] {`.
    if (line.substr(json).starts_with('[')) {
      const size_t object = line.find("] {", json);
      if (object != std::string_view::npos) json = object + 2;
    }
    return LogHeader{line.substr(0, json), line.substr(thread_begin, thread_end - thread_begin),
                     line.substr(json)};
  }
  return std::nullopt;
}

}  // namespace

int64_t TimeOf(std::string_view prefix) {
  // V MMDD hh:mm:ss.uuuuuu
  if (prefix.size() < 16) return -1;
  const auto two = [&](size_t at) {
    if (!IsDigit(prefix[at]) || !IsDigit(prefix[at + 1])) return -1;
    return (prefix[at] - '0') * 10 + (prefix[at + 1] - '0');
  };
  constexpr int kDays[] = {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335};
  const int month = two(1), day = two(3), hour = two(6), minute = two(9), second = two(12);
  if (month < 1 || month > 12 || day < 1 || hour < 0 || minute < 0 || second < 0) return -1;
  int64_t time = ((kDays[month - 1] + day - 1) * 24 + hour) * int64_t{3600} + minute * 60 + second;
  time *= 1'000'000'000;
  int64_t unit = 100'000'000;
  for (size_t at = 15; at < prefix.size() && IsDigit(prefix[at]) && unit > 0; ++at, unit /= 10)
    time += (prefix[at] - '0') * unit;
  return time;
}

std::optional<LogHeader> ReadHeader(std::string_view line) {
  // Launchers write shorter prefixes before a record.
  constexpr size_t kMaxShift = 300;
  // The shortest header: `V0101 00:00:00.0 1 x:1] {`.
  constexpr size_t kMinLength = 25;
  for (size_t i = 0; i < kMaxShift && i + kMinLength <= line.size(); ++i) {
    if (!IsDigit(line[i + 1])) continue;
    if (const std::optional<LogHeader> header = ReadAtFront(line.substr(i))) return header;
  }
  return std::nullopt;
}

}  // namespace strata
