#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/python_literal.h"
#include "base/text.h"
#include "base/unicode.h"
#include "ir/fx/operators.h"
#include "ir/fx/parser.h"

namespace strata::fx {

bool IsSymbol(std::string_view name) {
  // Nearly all names begin otherwise.
  if (name.empty() || (name[0] != 's' && name[0] != 'u' && name[0] != 'z' && name[0] != 'p'))
    return false;
  const size_t digits = name.find_first_of("0123456789");
  if (digits == std::string_view::npos || digits == 0) return false;
  constexpr std::array<std::string_view, 5> kPrefixes = {"s", "u", "zf", "zuf", "ps"};
  return std::ranges::find(kPrefixes, name.substr(0, digits)) != kPrefixes.end() &&
         std::ranges::all_of(name.substr(digits), IsDigit);
}

namespace {

bool HasSymbol(const DimTable& dims, DimId dim) {
  if (dims.kind(dim) == DimKind::kSymbol) return IsSymbol(dims.name(dim));
  return std::ranges::any_of(dims.operands(dim), [&](DimId d) { return HasSymbol(dims, d); });
}

/// The content of the Python string whose escapes stand in `body`; none for escapes that we do not
/// read.
std::optional<std::string> Unescape(std::string_view body) {
  std::string out;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    if (++i >= body.size()) return std::nullopt;
    const auto hex = [&](size_t count) -> std::optional<uint32_t> {
      uint32_t code = 0;
      for (size_t k = 0; k < count; ++k) {
        const int digit = i + 1 < body.size() ? HexDigit(body[i + 1]) : -1;
        if (digit < 0) return std::nullopt;
        code = code * 16 + static_cast<uint32_t>(digit);
        ++i;
      }
      return code;
    };
    switch (body[i]) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case '\\':
      case '\'':
      case '"':
        out += body[i];
        break;
      case 'x':
      case 'u':
      case 'U': {
        const size_t digits = body[i] == 'x' ? 2 : body[i] == 'u' ? 4 : 8;
        const std::optional<uint32_t> code = hex(digits);
        if (!code || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) return std::nullopt;
        AppendUtf8(*code, out);
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return out;
}

}  // namespace

bool Parser::ParseNumber(Arg* value) {
  const size_t begin = at_;
  size_t end = begin + (Peek() == '-' ? 1 : 0);
  if (end < limit_ && IsNameStart(text_[end])) {
    // -inf, -nan, or a negated size.
    const std::string_view name = text_.substr(end, limit_ - end);
    if (name.starts_with("inf") && (name.size() == 3 || !IsNameChar(name[3]))) {
      at_ = end + 3;
      *value = Arg::Float(-INFINITY);
      return true;
    }
    return ParseRaw(value, /*only_size=*/true);
  }
  bool is_integer = true;
  while (end < limit_) {
    const char c = text_[end];
    if (IsDigit(c)) {
      ++end;
    } else if (c == '.' || c == 'e' || c == 'E') {
      is_integer = false;
      ++end;
      if (c != '.' && end < limit_ && (text_[end] == '-' || text_[end] == '+')) ++end;
    } else {
      break;
    }
  }
  const std::string_view text = text_.substr(begin, end - begin);
  const char next = end < limit_ ? text_[end] : '\0';
  if (next == 'j') {
    at_ = end + 1;
    *value = Arg::Raw(module_.Intern(text_.substr(begin, at_ - begin)));
    return true;
  }
  // A product that begins with a number: 2*s77.
  if (next == '*' || IsNameStart(next)) return ParseRaw(value, /*only_size=*/true);

  const char* const last = text.data() + text.size();
  if (is_integer) {
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), last, number);
    if (stop != last || text == "-") return Fail("expected a number");
    *value = error == std::errc() ? Arg::Int(number) : Arg::Raw(module_.Intern(text));
  } else {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), last, number);
    if (stop != last) return Fail("expected a number");
    std::string printed;
    if (error == std::errc()) AppendFloat(number, printed);
    *value = printed == text ? Arg::Float(number) : Arg::Raw(module_.Intern(text));
  }
  at_ = end;
  return true;
}

bool Parser::ParseString(Arg* value) {
  const char quote = Peek();
  const size_t begin = at_;
  size_t end = at_ + 1;
  bool plain = true;
  for (; end < limit_ && text_[end] != quote; ++end) {
    const char c = text_[end];
    if (c == '\\') {
      ++end;
      plain = false;
    }
    plain &= c != '\'' && c != '"' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  }
  if (end >= limit_) return Fail("this string does not end");
  at_ = end + 1;
  const std::string_view literal = text_.substr(begin, at_ - begin);
  const std::string_view body = literal.substr(1, literal.size() - 2);
  if (plain && quote == '\'') {
    *value = Arg::String(module_.Intern(body));
    return true;
  }
  // What we would spell otherwise (another version's repr) stays as it stands.
  std::string printed;
  const std::optional<std::string> content = Unescape(body);
  if (content) AppendQuoted(*content, printed);
  *value = printed == literal ? Arg::String(module_.Intern(*content))
                              : Arg::Raw(module_.Intern(literal));
  return true;
}

/// `(type='cuda', index=0)` after `device`.
bool Parser::ParseDevice(Arg* value) {
  if (!Eat("(type='")) return false;
  const std::string_view type = TakeName();
  if (type.empty() || !Eat("'")) return false;
  std::string device(type);
  if (Eat(", index=")) {
    const size_t digits = at_;
    while (IsDigit(Peek()))
      ++at_;
    if (at_ == digits) return false;
    device += ':';
    device += text_.substr(digits, at_ - digits);
  }
  if (!Eat(")")) return false;
  *value = Arg::Device(module_.Intern(device));
  return true;
}

/// The end of the literal at `from`: a comma, semicolon or closing bracket outside its own brackets
/// and strings, or the end of the statement; none when it is open there.
std::optional<size_t> Parser::EndOfValue(size_t from) const {
  int depth = 0;
  char quote = '\0';
  for (size_t i = from; i < limit_; ++i) {
    const char c = text_[i];
    if (quote != '\0') {
      if (c == '\\') ++i;
      if (c == quote) quote = '\0';
      continue;
    }
    switch (c) {
      case '\'':
      case '"':
        quote = c;
        break;
      case '(':
      case '[':
      case '{':
        ++depth;
        break;
      case '<':
        // An object's repr; a comparison has a blank before it.
        if (i == from || text_[i - 1] != ' ') ++depth;
        break;
      case '>':
        if (depth > 0 && text_[i - 1] != ' ' && text_[i - 1] != '-') --depth;
        break;
      case ')':
      case ']':
      case '}':
        if (depth == 0) return i;
        --depth;
        break;
      case ',':
      case ';':
        if (depth == 0) return i;
        break;
      default:
        break;
    }
  }
  if (depth > 0 || quote != '\0') return std::nullopt;
  return limit_;
}

/// A size that is not a node (`2*s77`), or a literal of no other kind, by its text.
bool Parser::ParseRaw(Arg* value, bool only_size) {
  const std::optional<size_t> end = EndOfValue(at_);
  if (!end || (*end == limit_ && depth_ > 0)) {
    wants_more_ = true;
    return Fail("this value does not end");
  }
  std::string_view text = text_.substr(at_, *end - at_);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  if (text.empty()) return Fail("expected a value");
  if (only_size) {
    is_repeatable_ = false;  // a size is of its module
    const Result<DimId> dim = module_.dims().Parse(text);
    if (dim && HasSymbol(module_.dims(), *dim)) {
      *value = Arg::Dim(*dim);
      at_ += text.size();
      return true;
    }
    return Fail("expected a value");
  }
  *value = Arg::Raw(module_.Intern(text));
  at_ += text.size();
  return true;
}

}  // namespace strata::fx
