#include "tlparse-export/torch_trace/read/python_json.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "base/unicode.h"

namespace strata {
namespace {

constexpr int kMaxDepth = 500;

/// Finds where values end. Checks the grammar but for the inside of strings and numbers.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void SkipBlanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool Eat(char c) {
    SkipBlanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool AtEnd() {
    SkipBlanks();
    return at_ == text_.size();
  }

  /// The text of the next value; empty when there is none.
  std::string_view TakeValue() {
    SkipBlanks();
    const size_t begin = at_;
    return SkipValue() ? text_.substr(begin, at_ - begin) : std::string_view{};
  }

 private:
  bool SkipValue() {
    SkipBlanks();
    if (at_ >= text_.size()) return false;
    switch (text_[at_]) {
      case '"':
        return SkipString();
      case '{':
        return SkipContainer('}', /*has_keys=*/true);
      case '[':
        return SkipContainer(']', /*has_keys=*/false);
      default:
        return SkipWord() || SkipNumber();
    }
  }

  bool SkipString() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }

  bool SkipContainer(char close, bool has_keys) {
    if (++depth_ > kMaxDepth) return false;
    ++at_;
    if (!Eat(close)) {
      do {
        if (has_keys) {
          SkipBlanks();
          if (at_ >= text_.size() || text_[at_] != '"' || !SkipString() || !Eat(':')) return false;
        }
        if (!SkipValue()) return false;
      } while (Eat(','));
      if (!Eat(close)) return false;
    }
    --depth_;
    return true;
  }

  bool SkipWord() {
    constexpr std::array<std::string_view, 6> kWords = {"true", "false",    "null",
                                                        "NaN",  "Infinity", "-Infinity"};
    for (std::string_view word : kWords) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return true;
    }
    return false;
  }

  bool SkipNumber() {
    const size_t begin = at_;
    bool has_digit = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      has_digit |= IsDigit(c);
      if (!IsDigit(c) && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E') break;
      ++at_;
    }
    return has_digit && at_ > begin;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::vector<JsonField>> ReadJsonObject(std::string_view text) {
  Scanner scanner(text);
  if (!scanner.Eat('{')) return std::nullopt;
  std::vector<JsonField> fields;
  if (!scanner.Eat('}')) {
    do {
      std::optional<std::string> key = ReadJsonString(scanner.TakeValue());
      if (!key || !scanner.Eat(':')) return std::nullopt;
      const std::string_view value = scanner.TakeValue();
      if (value.empty()) return std::nullopt;
      fields.push_back({std::move(*key), value});
    } while (scanner.Eat(','));
    if (!scanner.Eat('}')) return std::nullopt;
  }
  if (!scanner.AtEnd()) return std::nullopt;
  return fields;
}

std::optional<std::vector<std::string_view>> ReadJsonArray(std::string_view text) {
  Scanner scanner(text);
  if (!scanner.Eat('[')) return std::nullopt;
  std::vector<std::string_view> elements;
  if (!scanner.Eat(']')) {
    do {
      elements.push_back(scanner.TakeValue());
      if (elements.back().empty()) return std::nullopt;
    } while (scanner.Eat(','));
    if (!scanner.Eat(']')) return std::nullopt;
  }
  if (!scanner.AtEnd()) return std::nullopt;
  return elements;
}

std::optional<std::string> ReadJsonString(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string out;
  const auto hex4 = [&](size_t at) -> std::optional<uint32_t> {
    uint32_t code = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const int digit = i < text.size() ? HexDigit(text[i]) : -1;
      if (digit < 0) return std::nullopt;
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return code;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      if (text[i] == '"') return std::nullopt;
      out += text[i];
      continue;
    }
    if (++i >= text.size()) return std::nullopt;
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t which = kEscapes.find(text[i]); which != std::string_view::npos) {
      out += kMeanings[which];
      continue;
    }
    std::optional<uint32_t> code = text[i] == 'u' ? hex4(i + 1) : std::nullopt;
    if (!code) return std::nullopt;
    i += 4;
    if (*code >= 0xD800 && *code < 0xE000) {
      const std::optional<uint32_t> low =
          text.substr(i + 1).starts_with("\\u") ? hex4(i + 3) : std::nullopt;
      if (*code < 0xDC00 && low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
        i += 6;
      } else {
        code = 0xFFFD;
      }
    }
    AppendUtf8(*code, out);
  }
  return out;
}

std::optional<int64_t> ReadJsonInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

const JsonField* FindField(const std::vector<JsonField>& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &JsonField::key);
  return found == fields.end() ? nullptr : &*found;
}

std::string_view FieldValue(const std::vector<JsonField>& fields, std::string_view key) {
  const JsonField* field = FindField(fields, key);
  return field == nullptr ? std::string_view{} : field->value;
}

}  // namespace strata
