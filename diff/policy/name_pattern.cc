#include "diff/policy/name_pattern.h"

#include <algorithm>
#include <charconv>
#include <re2/re2.h>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

constexpr int64_t kMaxNumbers = 10'000;

/// `0..31` as an expression for these numbers; none: not a range.
Result<std::string> NumberRange(std::string_view body, size_t dots) {
  int64_t first = 0, last = 0;
  const char* const end = body.data() + body.size();
  const auto left = std::from_chars(body.data(), body.data() + dots, first);
  const auto right = std::from_chars(body.data() + dots + 2, end, last);
  const bool is_range = left.ec == std::errc() && left.ptr == body.data() + dots &&
                        right.ec == std::errc() && right.ptr == end && first >= 0;
  if (!is_range || last < first || last - first >= kMaxNumbers) {
    return Error("'{{{}}}' is no range of numbers like {{0..31}}", OneLine(body));
  }
  std::string expression;
  for (int64_t i = first; i <= last; ++i)
    expression += fmt::format("{}{}", i > first ? "|" : "", i);
  return expression;
}

Result<std::string> ExpressionOf(std::string_view glob) {
  std::string expression;
  for (size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    if (c == '*') {
      expression += ".*";
    } else if (c == '?') {
      expression += '.';
    } else if (c == '{') {
      const size_t close = glob.find('}', i);
      if (close == std::string_view::npos) return Error("'{{' is not closed");
      const std::string_view body = glob.substr(i + 1, close - i - 1);
      expression += "(?:";
      if (const size_t dots = body.find(".."); dots != std::string_view::npos) {
        STRATA_TRY(const std::string numbers, NumberRange(body, dots));
        expression += numbers;
      } else {
        std::string alternatives = RE2::QuoteMeta(body);
        for (size_t at = 0; (at = alternatives.find("\\,", at)) != std::string::npos;)
          alternatives.replace(at, 2, "|");
        expression += alternatives;
      }
      expression += ')';
      i = close;
    } else {
      expression += RE2::QuoteMeta(glob.substr(i, 1));
    }
  }
  return expression;
}

}  // namespace

Result<NamePattern> NamePattern::Parse(std::string_view text) {
  std::string expression;
  if (text.starts_with("re:")) {
    expression = text.substr(3);
  } else {
    STRATA_TRY(expression, ExpressionOf(text));
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(RE2::Options::EncodingLatin1);  // names may be any bytes
  options.set_dot_nl(true);
  auto compiled = std::make_shared<const RE2>(expression, options);
  if (!compiled->ok()) return Error("not a regular expression: {}", OneLine(compiled->error()));
  NamePattern pattern;
  pattern.text_ = text;
  pattern.expression_ = std::move(compiled);
  return pattern;
}

bool NamePattern::Matches(std::string_view name) const {
  return RE2::FullMatch(name, *expression_);
}

bool MatchesAny(const std::vector<NamePattern>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [&](const NamePattern& p) { return p.Matches(name); });
}

}  // namespace strata
