#include "runtime/config/tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/python_literal.h"
#include "base/text.h"
#include "base/toml.h"
#include "runtime/config/names.h"

namespace strata {
namespace {

bool IsIgnored(std::string_view key) {
  return key.starts_with('_');
}

std::string Dotted(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? OneLine(key) : fmt::format("{}.{}", prefix, OneLine(key));
}

/// None: something else is among them.
std::optional<std::vector<std::string>> WordsOf(const TomlValue::Array& elements) {
  std::vector<std::string> words;
  for (const TomlValue& element : elements) {
    const auto* word = std::get_if<std::string>(&element.value);
    if (word == nullptr) return std::nullopt;
    words.push_back(*word);
  }
  return words;
}

ConfigValue ValueOf(const TomlValue& value) {
  struct Converter {
    ConfigValue operator()(std::monostate) const { return std::monostate(); }
    ConfigValue operator()(bool v) const { return v; }
    ConfigValue operator()(int64_t v) const { return v; }
    ConfigValue operator()(uint64_t v) const { return v; }
    ConfigValue operator()(double v) const { return v; }
    ConfigValue operator()(const std::string& v) const { return v; }
    ConfigValue operator()(TomlDate) const { return OtherConfigValue{"a date or time"}; }
    ConfigValue operator()(const TomlValue::Table&) const { return OtherConfigValue{kTableKind}; }
    ConfigValue operator()(const TomlValue::Array& elements) const {
      if (auto words = WordsOf(elements)) return *std::move(words);
      WordLists lists;
      for (const TomlValue& element : elements) {
        const auto* array = std::get_if<TomlValue::Array>(&element.value);
        auto words = array == nullptr ? std::nullopt : WordsOf(*array);
        if (!words) return OtherConfigValue{kArrayKind};
        lists.push_back(*std::move(words));
      }
      return lists;
    }
  };
  return std::visit(Converter(), value.value);
}

struct PlacedEntry {
  size_t at = 0;
  ConfigEntry entry;
};

void Flatten(const TomlValue::Table& table, std::string_view prefix,
             std::vector<PlacedEntry>& entries) {
  for (const TomlValue::Member& member : table) {
    if (IsIgnored(member.key)) continue;
    const std::string name = Dotted(prefix, member.key);
    std::string key = CanonicalKey(name);
    const auto* members = std::get_if<TomlValue::Table>(&member.value.value);
    // Fields of the table `model` are those of the configuration.
    if (members != nullptr && name == "model") key.clear();
    if (!key.empty())
      entries.push_back({member.at, {std::move(key), ValueOf(member.value), "", name}});
    if (members != nullptr) Flatten(*members, name, entries);
  }
}

/// Counts the lines before offsets that ascend.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}
  int64_t At(size_t offset) {
    line_ += std::ranges::count(text_.substr(counted_, offset - counted_), '\n');
    counted_ = offset;
    return line_;
  }

 private:
  std::string_view text_;
  size_t counted_ = 0;
  int64_t line_ = 1;
};

template <class Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

ConfigValue ParseScalar(std::string_view text) {
  if (text == "null") return std::monostate();
  if (text == "true" || text == "false") return text == "true";
  if (const auto number = ParseNumber<int64_t>(text)) return *number;
  if (const auto number = ParseNumber<uint64_t>(text)) return *number;
  if (const auto number = ParseNumber<double>(text)) return *number;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (text.starts_with('[')) {
    const auto parsed = ReadJson(text);
    if (const auto* value = std::get_if<TomlValue>(&parsed)) return ValueOf(*value);
  }
  return std::string(text);
}

/// A member of the configuration's JSON.
struct JsonMember {
  std::string name;
  ConfigValue value;
  std::vector<JsonMember> members;  // of a table, in the order in which they were first put
};

bool IsTable(const ConfigValue& value) {
  const auto* other = std::get_if<OtherConfigValue>(&value);
  return other != nullptr && other->kind == kTableKind;
}

/// Puts a value at a dotted key. A table keeps the members that it has.
void Put(std::string_view key, const ConfigValue& value, std::vector<JsonMember>& members) {
  const size_t dot = key.find('.');
  const std::string_view name = key.substr(0, dot);
  auto found = std::ranges::find(members, name, &JsonMember::name);
  if (found == members.end()) found = members.insert(found, {std::string(name), {}, {}});
  if (dot == std::string_view::npos) {
    found->value = value;
  } else {
    found->value = OtherConfigValue{kTableKind};
    Put(key.substr(dot + 1), value, found->members);
  }
}

template <class Item, class Fn>
void AppendLines(char open, char close, size_t indent, const std::vector<Item>& items,
                 std::string& out, Fn&& append) {
  out += open;
  for (const Item& item : items) {
    out += &item == items.data() ? "\n" : ",\n";
    out.append(indent + 2, ' ');
    append(item);
  }
  if (!items.empty()) {
    out += '\n';
    out.append(indent, ' ');
  }
  out += close;
}

void AppendScalar(const ConfigValue& value, std::string& out) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    AppendJsonString(*text, out);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    out += std::to_string(*integer);
  } else if (const auto* large = std::get_if<uint64_t>(&value)) {
    out += std::to_string(*large);
  } else if (const auto* number = std::get_if<double>(&value); number && std::isfinite(*number)) {
    AppendFloat(*number, out);
  } else {
    out += "null";
  }
}

void AppendWords(const std::vector<std::string>& words, size_t indent, std::string& out) {
  AppendLines('[', ']', indent, words, out,
              [&](const std::string& word) { AppendJsonString(word, out); });
}

void AppendTable(const std::vector<JsonMember>& members, size_t indent, std::string& out) {
  AppendLines('{', '}', indent, members, out, [&](const JsonMember& member) {
    AppendJsonString(member.name, out);
    out += ": ";
    if (IsTable(member.value)) {
      AppendTable(member.members, indent + 2, out);
    } else if (const auto* words = std::get_if<std::vector<std::string>>(&member.value)) {
      AppendWords(*words, indent + 2, out);
    } else if (const auto* lists = std::get_if<WordLists>(&member.value)) {
      AppendLines('[', ']', indent + 2, *lists, out, [&](const std::vector<std::string>& list) {
        AppendWords(list, indent + 4, out);
      });
    } else {
      AppendScalar(member.value, out);
    }
  });
}

/// Errors: a field that occurs twice. Tables may, by two names.
Status CheckOnce(std::span<const ConfigEntry> entries) {
  std::map<std::string_view, std::string_view> names;
  for (const ConfigEntry& entry : entries) {
    const auto [first, is_new] = names.emplace(entry.key, entry.name);
    if (is_new) continue;
    if (first->second == entry.name) {
      return Error("key '{}' occurs twice: {}: remove one", entry.name, entry.where);
    }
    if (IsTable(entry.value)) continue;
    return Error("'{}' and '{}' are the same: {}: give one of them", first->second, entry.name,
                 entry.where);
  }
  return Ok();
}

}  // namespace

std::string Describe(const ConfigValue& value) {
  struct Describer {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool v) const { return fmt::format("{}", v); }
    std::string operator()(int64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(uint64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(double v) const { return fmt::format("the number {}", v); }
    std::string operator()(const std::string& v) const {
      return fmt::format("the string '{}'", OneLine(v));
    }
    std::string operator()(const std::vector<std::string>&) const { return "an array"; }
    std::string operator()(const WordLists&) const { return "an array"; }
    std::string operator()(const OtherConfigValue& v) const { return std::string(v.kind); }
  };
  return std::visit(Describer(), value);
}

Result<std::vector<ConfigEntry>> ParseConfigEntries(std::string_view text, ConfigFormat format,
                                                    std::string_view file) {
  const bool is_json = format == ConfigFormat::kJson;
  LineCounter lines(text);
  const auto bad = [&](size_t at, std::string_view what) {
    return Error("not valid {}: {}:{}: {}", is_json ? "JSON" : "TOML", file, lines.At(at), what);
  };
  const auto parsed = is_json ? ReadJson(text) : ReadToml(text);
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) return bad(error->at, error->what);
  const auto& root = std::get<TomlValue>(parsed);
  const auto* table = std::get_if<TomlValue::Table>(&root.value);
  if (table == nullptr) return bad(root.at, "begin with '{', a configuration is an object");
  std::vector<PlacedEntry> found;
  Flatten(*table, "", found);
  std::ranges::stable_sort(found, {}, &PlacedEntry::at);  // TOML may return to a table
  std::vector<ConfigEntry> entries;
  for (PlacedEntry& item : found) {
    item.entry.where = fmt::format("{}:{}", file, lines.At(item.at));
    entries.push_back(std::move(item.entry));
  }
  STRATA_RETURN_IF_ERROR(CheckOnce(entries));
  return entries;
}

std::string ToJson(std::span<const ConfigEntry> entries) {
  std::vector<JsonMember> members;
  for (const ConfigEntry& entry : entries) {
    if (!std::holds_alternative<OtherConfigValue>(entry.value) || IsTable(entry.value)) {
      Put(entry.key, entry.value, members);
    }
  }
  std::string out;
  AppendTable(members, 0, out);
  return out + "\n";
}

Status OverrideEntry(std::string_view assignment, std::vector<ConfigEntry>& entries) {
  const size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return Error("no key and value: --set {}: write --set key=value", OneLine(assignment));
  }
  const std::string name = Dotted("", assignment.substr(0, equals));
  const std::string key = CanonicalKey(name);
  if (IsIgnored(name) || key.empty()) return Ok();
  ConfigEntry entry{key, ParseScalar(assignment.substr(equals + 1)),
                    fmt::format("--set {}", OneLine(assignment)), name};
  if (std::holds_alternative<std::monostate>(entry.value)) {
    std::erase_if(entries, [&](const ConfigEntry& e) { return e.key.starts_with(key + "."); });
  } else {
    std::erase_if(entries, [&](const ConfigEntry& e) { return e.key == Alternative(key); });
  }
  const auto found = std::ranges::find(entries, key, &ConfigEntry::key);
  if (found != entries.end()) {
    *found = std::move(entry);
  } else {
    entries.push_back(std::move(entry));
  }
  return Ok();
}

}  // namespace strata
