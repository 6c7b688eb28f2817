#include "base/toml.h"

#include <algorithm>
#include <charconv>
#include <simdjson.h>
#include <toml++/toml.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/source_error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/unicode.h"

namespace strata {
namespace {

namespace ondemand = simdjson::ondemand;

// toml++ recurses along dotted keys and brackets of one line without a limit.
constexpr size_t kMaxLine = 4096;
constexpr int kMaxDepth = 256;  // as toml++'s
// The parsers quote the text that they stumbled over.
constexpr size_t kMaxParserMessage = 200;

/// Turns toml++'s lines and columns into offsets.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text), lines_{0} {
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') lines_.push_back(i + 1);
  }
  size_t At(const toml::source_region& region) const {
    const size_t line = std::max<size_t>(region.begin.line, 1) - 1;
    if (line >= lines_.size()) return text_.size();
    // toml++ counts characters; ours are bytes.
    size_t at = lines_[line];
    for (size_t column = 1; column < region.begin.column && at < text_.size(); ++column) {
      do
        ++at;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80);
    }
    return at;
  }
  std::optional<size_t> LongLine() const {
    for (size_t i = 0; i < lines_.size(); ++i) {
      const size_t end = i + 1 < lines_.size() ? lines_[i + 1] : text_.size();
      if (end - lines_[i] > kMaxLine) return lines_[i];
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
  std::vector<size_t> lines_;
};

TomlValue Convert(const toml::node& node, const Places& places) {
  TomlValue result;
  result.at = places.At(node.source());
  if (const auto* flag = node.as_boolean()) {
    result.value = flag->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    result.value = number->get();
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* array = node.as_array()) {
    TomlValue::Array elements;
    for (const toml::node& element : *array)
      elements.push_back(Convert(element, places));
    result.value = std::move(elements);
  } else if (const auto* table = node.as_table()) {
    TomlValue::Table members;
    for (const auto& [key, value] : *table)
      members.push_back({std::string(key.str()), places.At(key.source()), Convert(value, places)});
    std::ranges::sort(members, {}, &TomlValue::Member::at);  // toml++ sorts by key
    result.value = std::move(members);
  } else {
    result.value = TomlDate();
  }
  return result;
}

/// Turns simdjson's values into a tree. Its errors are exceptions here.
class JsonTree {
 public:
  explicit JsonTree(std::string_view text) : text_(text), padded_(text) {}

  std::variant<TomlValue, SyntaxError> Read() {
    ondemand::document document;
    if (const simdjson::error_code code = parser_.iterate(padded_).get(document)) {
      return SyntaxError{OffsetOf(code), simdjson::error_message(code)};
    }
    try {
      TomlValue root = Convert(document.get_value(), 0);
      const char* rest = nullptr;
      if (document.current_location().get(rest) != simdjson::SUCCESS) return root;
      return SyntaxError{At(rest), "text after the value"};
    } catch (const simdjson::simdjson_error& error) {
      const char* where = nullptr;
      const bool has_place = document.current_location().get(where) == simdjson::SUCCESS;
      const size_t at = has_place ? std::min(At(where), text_.size()) : text_.size();
      return SyntaxError{at, Explain(error.error(), text_.substr(at))};
    } catch (const SyntaxError& error) {
      return error;
    }
  }

 private:
  size_t At(const char* where) const { return static_cast<size_t>(where - padded_.data()); }

  /// `rest` is the text from the error on.
  static std::string Explain(simdjson::error_code code, std::string_view rest) {
    if (code == simdjson::SCALAR_DOCUMENT_AS_VALUE) return "expected '{' or '['";
    if (code != simdjson::TAPE_ERROR && code != simdjson::INCORRECT_TYPE) {
      return simdjson::error_message(code);
    }
    if (rest.empty()) return "unexpected end";
    const size_t end = std::max<size_t>(rest.find_first_of(" \t\r\n,:]}"), 1);
    return fmt::format("unexpected '{}'", OneLine(rest.substr(0, end), kMaxParserMessage));
  }

  /// Of an error that simdjson finds before it looks at values.
  size_t OffsetOf(simdjson::error_code code) const {
    if (code == simdjson::UTF8_ERROR) {
      size_t at = 0;
      while (const size_t length = at < text_.size() ? Utf8Length(text_, at) : 0)
        at += length;
      return at;
    }
    if (code != simdjson::UNESCAPED_CHARS) return text_.size();  // the text ends too early
    bool in_string = false;
    for (size_t at = 0; at < text_.size(); ++at) {
      if (in_string && static_cast<unsigned char>(text_[at]) < 0x20) return at;
      if (in_string && text_[at] == '\\')
        ++at;
      else if (text_[at] == '"')
        in_string = !in_string;
    }
    return text_.size();
  }

  TomlValue Convert(ondemand::value value, int depth) {
    TomlValue result;
    result.at = At(value.current_location());
    if (depth == kMaxDepth) throw SyntaxError{result.at, "nested too deeply"};
    switch (value.type()) {
      case ondemand::json_type::null:
        if (!value.is_null()) throw SyntaxError{result.at, "expected null"};
        break;
      case ondemand::json_type::boolean:
        result.value = value.get_bool().value();
        break;
      case ondemand::json_type::number:
        result.value = Number(value, result.at);
        break;
      case ondemand::json_type::string:
        result.value = std::string(value.get_string().value());
        break;
      case ondemand::json_type::array: {
        TomlValue::Array elements;
        for (auto element : value.get_array())
          elements.push_back(Convert(element.value(), depth + 1));
        result.value = std::move(elements);
        break;
      }
      case ondemand::json_type::object: {
        TomlValue::Table members;
        for (auto field : value.get_object()) {
          const size_t at = At(field.key().raw()) - 1;
          std::string key(field.unescaped_key().value());
          members.push_back({std::move(key), at, Convert(field.value(), depth + 1)});
        }
        result.value = std::move(members);
        break;
      }
    }
    return result;
  }

  /// An integer beyond 64 bits is a floating-point number.
  decltype(TomlValue::value) Number(ondemand::value value, size_t at) const {
    ondemand::number number;
    if (value.get_number().get(number) == simdjson::SUCCESS) {
      if (number.is_int64()) return number.get_int64();
      if (number.is_uint64()) return number.get_uint64();
      return number.get_double();
    }
    const std::string_view digits = TrimBlanks(value.raw_json_token());
    double large = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), large);
    // A number needs a character after it: a text that ends with one ends too early.
    if (error == std::errc() && end == digits.data() + digits.size() &&
        at + digits.size() == text_.size()) {
      throw SyntaxError{at + digits.size(), "unexpected end"};
    }
    const bool is_integer =
        digits.find_first_not_of("0123456789", digits.starts_with('-') ? 1 : 0) ==
        std::string_view::npos;
    if (error != std::errc() || !is_integer || digits.size() < 19) {
      throw SyntaxError{at,
                        fmt::format("'{}' is not a number", OneLine(digits, kMaxParserMessage))};
    }
    return large;
  }

  std::string_view text_;
  simdjson::padded_string padded_;
  ondemand::parser parser_;
};

}  // namespace

std::variant<TomlValue, SyntaxError> ReadToml(std::string_view text) {
  const Places places(text);
  if (const std::optional<size_t> line = places.LongLine()) {
    return SyntaxError{*line, fmt::format("line of more than {} characters", kMaxLine)};
  }
  try {
    return Convert(toml::parse(text), places);
  } catch (const toml::parse_error& error) {
    return SyntaxError{places.At(error.source()), OneLine(error.description(), kMaxParserMessage)};
  }
}

std::variant<TomlValue, SyntaxError> ReadJson(std::string_view text) {
  return JsonTree(text).Read();
}

Error TomlFile::At(size_t offset, std::string_view what) const {
  return ErrorAt(file, text, offset, what);
}

std::string TomlFile::Where(size_t offset) const {
  const std::string_view before = std::string_view(text).substr(0, offset);
  return fmt::format("{}:{}", file, std::ranges::count(before, '\n') + 1);
}

Result<TomlFile> ParseToml(std::string_view text, std::string_view file) {
  TomlFile result{std::string(text), std::string(file), {}};
  std::variant<TomlValue, SyntaxError> parsed = ReadToml(text);
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
    return result.At(error->at, "not valid TOML: " + error->what);
  }
  result.root = std::get<TomlValue>(std::move(parsed));
  return result;
}

TomlTable::TomlTable(const TomlFile& file, const TomlValue& table, std::string what)
    : file_(file), members_(std::get_if<TomlValue::Table>(&table.value)), what_(std::move(what)) {
  if (members_ == nullptr) error_ = file_.At(table.at, fmt::format("{} is a table", what_));
}

const TomlValue::Member* TomlTable::Take(std::string_view key) {
  known_.emplace_back(key);
  if (members_ == nullptr) return nullptr;
  const auto found = std::ranges::find(*members_, key, &TomlValue::Member::key);
  return found == members_->end() ? nullptr : &*found;
}

void TomlTable::WrongType(const TomlValue& value, std::string_view key, std::string_view expected) {
  if (!error_) error_ = file_.At(value.at, fmt::format("'{}' is {}", key, expected));
}

bool TomlTable::Has(std::string_view key) const {
  return members_ != nullptr &&
         std::ranges::find(*members_, key, &TomlValue::Member::key) != members_->end();
}

std::optional<std::string> TomlTable::Text(std::string_view key) {
  const TomlValue::Member* member = Take(key);
  if (member == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string>(&member->value.value);
  if (text != nullptr) return *text;
  WrongType(member->value, key, "a text");
  return std::nullopt;
}

std::optional<int64_t> TomlTable::Count(std::string_view key) {
  const TomlValue::Member* member = Take(key);
  if (member == nullptr) return std::nullopt;
  const auto* number = std::get_if<int64_t>(&member->value.value);
  if (number != nullptr && *number >= 0) return *number;
  WrongType(member->value, key, "a number from 0");
  return std::nullopt;
}

std::optional<bool> TomlTable::Flag(std::string_view key) {
  const TomlValue::Member* member = Take(key);
  if (member == nullptr) return std::nullopt;
  const auto* flag = std::get_if<bool>(&member->value.value);
  if (flag != nullptr) return *flag;
  WrongType(member->value, key, "true or false");
  return std::nullopt;
}

std::vector<TomlText> TomlTable::Texts(std::string_view key) {
  const TomlValue::Member* member = Take(key);
  if (member == nullptr) return {};
  if (const auto* text = std::get_if<std::string>(&member->value.value)) {
    return {{*text, member->value.at}};
  }
  std::vector<TomlText> texts;
  const auto* array = std::get_if<TomlValue::Array>(&member->value.value);
  if (array == nullptr) WrongType(member->value, key, "an array of texts");
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const auto* text = std::get_if<std::string>(&(*array)[i].value);
    if (text == nullptr) {
      WrongType((*array)[i], key, "an array of texts");
    } else {
      texts.push_back({*text, (*array)[i].at});
    }
  }
  return texts;
}

std::vector<std::pair<TomlText, TomlText>> TomlTable::Pairs(std::string_view key) {
  constexpr std::string_view kExpected = "an array of pairs, [[\"a\", \"b\"], …]";
  const TomlValue::Member* member = Take(key);
  if (member == nullptr) return {};
  std::vector<std::pair<TomlText, TomlText>> pairs;
  const auto* array = std::get_if<TomlValue::Array>(&member->value.value);
  if (array == nullptr) WrongType(member->value, key, kExpected);
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const auto* two = std::get_if<TomlValue::Array>(&(*array)[i].value);
    const std::string* texts[2] = {};
    for (size_t k = 0; two != nullptr && two->size() == 2 && k < 2; ++k)
      texts[k] = std::get_if<std::string>(&(*two)[k].value);
    if (texts[0] == nullptr || texts[1] == nullptr) {
      WrongType((*array)[i], key, kExpected);
    } else {
      pairs.push_back({{*texts[0], (*two)[0].at}, {*texts[1], (*two)[1].at}});
    }
  }
  return pairs;
}

const TomlValue* TomlTable::Table(std::string_view key) {
  const TomlValue::Member* member = Take(key);
  return member == nullptr ? nullptr : &member->value;
}

std::vector<const TomlValue*> TomlTable::Tables(std::string_view key) {
  const TomlValue::Member* member = Take(key);
  if (member == nullptr) return {};
  const auto* array = std::get_if<TomlValue::Array>(&member->value.value);
  if (array == nullptr) return {&member->value};
  std::vector<const TomlValue*> tables;
  for (const TomlValue& element : *array)
    tables.push_back(&element);
  return tables;
}

Status TomlTable::Finish() {
  if (members_ != nullptr) {
    for (const TomlValue::Member& member : *members_) {
      if (std::ranges::find(known_, member.key) != known_.end()) continue;
      return file_.At(member.at,
                      fmt::format("unknown key '{}' in {}{}; it has {}", OneLine(member.key), what_,
                                  DidYouMean(member.key, known_), fmt::join(known_, ", ")));
    }
  }
  if (error_) return *error_;
  return Ok();
}

}  // namespace strata
