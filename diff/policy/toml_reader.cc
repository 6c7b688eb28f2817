#include "diff/policy/toml_reader.h"

#include <algorithm>
#include <toml++/toml.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/source_error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace strata {
namespace {

// toml++ recurses along dotted keys and brackets of one line without a limit.
constexpr size_t kMaxLine = 4096;
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
  } else if (const auto* number = node.as_integer()) {
    result.value = number->get();
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* array = node.as_array()) {
    std::vector<TomlValue> elements;
    for (const toml::node& element : *array)
      elements.push_back(Convert(element, places));
    result.value = std::move(elements);
  } else if (const auto* table = node.as_table()) {
    std::vector<TomlValue::Member> members;
    for (const auto& [key, value] : *table)
      members.push_back({std::string(key.str()), places.At(key.source()), Convert(value, places)});
    std::ranges::sort(members, {}, &TomlValue::Member::at);  // toml++ sorts by key
    result.value = std::move(members);
  }
  return result;
}

}  // namespace

Error TomlFile::At(size_t offset, std::string_view what) const {
  return ErrorAt(file, text, offset, what);
}

std::string TomlFile::Where(size_t offset) const {
  const std::string_view before = std::string_view(text).substr(0, offset);
  return fmt::format("{}:{}", file, std::ranges::count(before, '\n') + 1);
}

Result<TomlFile> ParseToml(std::string_view text, std::string_view file) {
  TomlFile result{std::string(text), std::string(file), {}};
  const Places places(result.text);
  if (const std::optional<size_t> line = places.LongLine()) {
    return result.At(*line, fmt::format("a line of more than {} characters", kMaxLine));
  }
  try {
    result.root = Convert(toml::parse(result.text), places);
  } catch (const toml::parse_error& error) {
    return result.At(
        places.At(error.source()),
        fmt::format("not valid TOML: {}", OneLine(error.description(), kMaxParserMessage)));
  }
  return result;
}

TomlTable::TomlTable(const TomlFile& file, const TomlValue& table, std::string what)
    : file_(file),
      members_(std::get_if<std::vector<TomlValue::Member>>(&table.value)),
      what_(std::move(what)) {
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
  const auto* array = std::get_if<std::vector<TomlValue>>(&member->value.value);
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
  const auto* array = std::get_if<std::vector<TomlValue>>(&member->value.value);
  if (array == nullptr) WrongType(member->value, key, kExpected);
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const auto* two = std::get_if<std::vector<TomlValue>>(&(*array)[i].value);
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
  const auto* array = std::get_if<std::vector<TomlValue>>(&member->value.value);
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
