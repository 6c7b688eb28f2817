#include "ir/text.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/json.h"
#include "ir/unicode.h"

namespace strata {
namespace {

/// Optimal string alignment distance: Levenshtein with swaps of neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> ClosestMatch(std::string_view word,
                                             std::span<const std::string> candidates) {
  std::optional<std::string_view> closest;
  size_t closest_distance = 0;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    // A name far longer than any candidate is no misspelling, and not worth a quadratic look.
    if (longer > 2 * std::min(word.size(), candidate.size()) + 2) continue;
    const size_t distance = EditDistance(word, candidate);
    if (distance > std::max<size_t>(1, longer / 3)) continue;
    if (!closest || distance < closest_distance) {
      closest = candidate;
      closest_distance = distance;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::optional<std::string_view> closest = ClosestMatch(word, candidates);
  return closest ? fmt::format(", did you mean '{}'", *closest) : std::string();
}

std::string OneLine(std::string_view text, size_t max_bytes) {
  std::string quoted;
  AppendJsonString(text.substr(0, max_bytes), quoted);
  return quoted.substr(1, quoted.size() - 2) + (text.size() > max_bytes ? "…" : "");
}

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  if (const std::string shown = Visible(word); shown != word) {
    // What a terminal would not show as it is: as bash and zsh write it.
    std::string quoted = "$'";
    for (const char c : word) {
      if (c < ' ' || c > '~') {
        quoted += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
      } else {
        if (c == '\'' || c == '\\') quoted += '\\';
        quoted += c;
      }
    }
    return quoted + "'";
  }
  if (word.find_first_of("\"$`\\!'") == std::string_view::npos) return fmt::format("\"{}\"", word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string Enumerate(std::span<const std::string> names, size_t limit) {
  std::string shown =
      fmt::format("{}", fmt::join(names.first(std::min(limit, names.size())), ", "));
  if (names.size() <= limit) return shown;
  return fmt::format("{} and {} more", shown, names.size() - limit);
}

std::string_view TrimBlanks(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

void AppendUtf8(uint32_t code, std::string& out) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto follows = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90;
    const bool too_large = first == 0xF4 && second > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string SelectorValue(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c == ',' || c == '#' || c == '%') {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string FromSelectorValue(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view escape = text.substr(i, 3);
    if (escape == "%2C" || escape == "%23" || escape == "%25") {
      out += static_cast<char>(HexDigit(escape[1]) * 16 + HexDigit(escape[2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace strata
