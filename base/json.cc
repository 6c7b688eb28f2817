#include "base/json.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/python_literal.h"
#include "base/unicode.h"

namespace strata {

namespace {

/// An ASCII character that stands for itself in a string.
constexpr bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const size_t plain = i;
    while (i < text.size() && IsPlain(text[i]))
      ++i;
    out += text.substr(plain, i - plain);
    if (i == text.size()) break;
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (c == '\n') {
      out += "\\n";
      ++i;
    } else if (c == '\t') {
      out += "\\t";
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
      ++i;
    } else if (const size_t length = Utf8Length(text, i); length > 0) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out += '"';
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_elements_.empty()) return;
  if (has_elements_.back()) out_ += break_ >= 0 ? "," : ", ";
  has_elements_.back() = true;
  if (break_ < 0) return;
  out_ += '\n';
  out_.append(static_cast<size_t>(break_), ' ');
  break_ = -1;
}

JsonWriter& JsonWriter::Close(char bracket) {
  if (break_ >= 0) {
    out_ += '\n';
    out_.append(static_cast<size_t>(break_), ' ');
    break_ = -1;
  }
  has_elements_.pop_back();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::Break(int indent) {
  break_ = indent;
  return *this;
}

JsonWriter& JsonWriter::BeginObject() {
  Separate();
  has_elements_.push_back(false);
  out_ += '{';
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  return Close('}');
}

JsonWriter& JsonWriter::BeginArray() {
  Separate();
  has_elements_.push_back(false);
  out_ += '[';
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  return Close(']');
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  AppendJsonString(key, out_);
  out_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  Separate();
  AppendJsonString(text, out_);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  AppendInt(value, out_);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  char digits[32];
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  out_ += "null";
  return *this;
}

}  // namespace strata
