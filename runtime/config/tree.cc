#include "runtime/config/tree.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <toml++/toml.h>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

// As toml++'s. Names hold those of the tables around them, so depth costs its square.
constexpr size_t kMaxDepth = 256;
// Both parsers quote the text that they stumbled over.
constexpr size_t kMaxParserMessage = 200;

bool IsIgnored(std::string_view key) {
  return key.starts_with('_');
}

std::string Dotted(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? OneLine(key) : fmt::format("{}.{}", prefix, OneLine(key));
}

/// Passes the characters of a text to a parser one by one. The position is visible from outside,
/// which gives a SAX handler its line numbers.
class TrackedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}

  reference operator*() const { return *at_; }
  TrackedIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  bool operator==(const TrackedIterator& other) const { return at_ == other.at_; }
  bool operator!=(const TrackedIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// Collects entries while nlohmann's parser walks over the text.
class JsonHandler {
 public:
  JsonHandler(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<std::vector<ConfigEntry>> Parse() && {
    reached_ = text_.data();
    nlohmann::json::sax_parse(TrackedIterator(text_.data(), &reached_),
                              TrackedIterator(text_.data() + text_.size(), &reached_), this);
    if (!error_.empty()) return Error("not valid JSON: {}:{}: {}", file_, Line(), error_);
    return std::move(entries_);
  }

  // What nlohmann::json_sax asks for. A callback comes right after its token was read.
  // NOLINTBEGIN(readability-identifier-naming)
  bool null() { return Add(std::monostate()); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) {
    return std::in_range<int64_t>(value) ? Add(static_cast<int64_t>(value)) : Add(value);
  }
  bool number_float(double value, const std::string& /*spelling*/) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return Fail("unexpected binary value"); }
  bool key(std::string& name) {
    key_ = {.name = Dotted(open_.back().name, name),
            .line = Line(),
            .is_ignored = open_.back().is_ignored || IsIgnored(name)};
    return true;
  }
  bool start_object(size_t /*elements*/) {
    if (open_.size() == kMaxDepth) return Fail("nested too deeply");
    // The outermost object is the configuration itself.
    if (!open_.empty() && !Add(OtherConfigValue{kTableKind})) return false;
    open_.push_back(key_);
    return true;
  }
  bool end_object() {
    open_.pop_back();
    return true;
  }
  bool start_array(size_t /*elements*/) {
    if (open_.size() == kMaxDepth) return Fail("nested too deeply");
    if (!Add(open_.size() == array_depth_ ? ConfigValue(OtherConfigValue{kArrayKind})
                                          : std::vector<std::string>())) {
      return false;
    }
    const bool is_value = !key_.is_ignored;
    open_.push_back(key_);
    if (is_value) array_depth_ = open_.size();
    key_.is_ignored = true;  // its elements
    open_.back().is_ignored = true;
    return true;
  }
  bool end_array() {
    if (open_.size() == array_depth_) array_depth_ = 0;
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& exception) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: <what>"
    const std::string_view message = exception.what();
    const size_t colon = message.find(": ");
    return Fail(colon == std::string_view::npos ? message : message.substr(colon + 2));
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  struct Key {
    std::string name;  // with the tables around it
    int64_t line = 1;
    bool is_ignored = false;
  };

  bool Add(ConfigValue value) {
    if (open_.empty()) return Fail("begin with '{', a configuration is an object");
    if (open_.size() == array_depth_) AddElement(std::move(value));
    if (key_.is_ignored) return true;
    entries_.push_back({key_.name, std::move(value), fmt::format("{}:{}", file_, key_.line)});
    return true;
  }
  /// Of the array that is the last entry.
  void AddElement(ConfigValue value) {
    auto* words = std::get_if<std::vector<std::string>>(&entries_.back().value);
    auto* word = std::get_if<std::string>(&value);
    if (words != nullptr && word != nullptr) {
      words->push_back(std::move(*word));
    } else {
      entries_.back().value = OtherConfigValue{kArrayKind};
    }
  }
  bool Fail(std::string_view what) {
    error_ = OneLine(what, kMaxParserMessage);
    return false;
  }
  int64_t Line() const { return 1 + std::count(text_.data(), reached_, '\n'); }

  std::string_view text_;
  std::string_view file_;
  const char* reached_ = nullptr;
  Key key_;                 // of the value that comes next
  std::vector<Key> open_;   // objects and arrays
  size_t array_depth_ = 0;  // of open_ inside the array that is the last entry; 0: there is none
  std::vector<ConfigEntry> entries_;
  std::string error_;
};

ConfigValue TomlArray(const toml::array& array) {
  std::vector<std::string> words;
  for (const toml::node& element : array) {
    if (!element.is_string()) return OtherConfigValue{kArrayKind};
    words.push_back(element.as_string()->get());
  }
  return words;
}

ConfigValue TomlValue(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean:
      return node.as_boolean()->get();
    case toml::node_type::integer:
      return node.as_integer()->get();
    case toml::node_type::floating_point:
      return node.as_floating_point()->get();
    case toml::node_type::string:
      return node.as_string()->get();
    case toml::node_type::table:
      return OtherConfigValue{kTableKind};
    case toml::node_type::array:
      return TomlArray(*node.as_array());
    default:
      return OtherConfigValue{"a date or time"};
  }
}

struct TomlEntry {
  toml::source_position place;
  ConfigEntry entry;
};

void FlattenToml(const toml::table& table, std::string_view prefix, std::string_view file,
                 std::vector<TomlEntry>& entries) {
  for (const auto& [key, node] : table) {
    if (IsIgnored(key.str())) continue;
    const std::string name = Dotted(prefix, key.str());
    const toml::source_position place = key.source().begin;
    entries.push_back({place, {name, TomlValue(node), fmt::format("{}:{}", file, place.line)}});
    if (const toml::table* members = node.as_table()) FlattenToml(*members, name, file, entries);
  }
}

/// toml++ recurses along dotted keys without a limit, and a key stands on one line.
Status CheckLineLengths(std::string_view text, std::string_view file) {
  constexpr size_t kMaxLine = 4096;
  int64_t line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kMaxLine) {
      return Error("not valid TOML: {}:{}: line of more than {} characters", file, line, kMaxLine);
    }
    begin = end + 1;
  }
  return Ok();
}

Result<std::vector<ConfigEntry>> ParseToml(std::string_view text, std::string_view file) {
  STRATA_RETURN_IF_ERROR(CheckLineLengths(text, file));
  std::vector<TomlEntry> found;
  try {
    FlattenToml(toml::parse(text), "", file, found);
  } catch (const toml::parse_error& error) {
    return Error("not valid TOML: {}:{}: {}", file, error.source().begin.line,
                 OneLine(error.description(), kMaxParserMessage));
  }
  // A toml::table is sorted by key.
  std::ranges::stable_sort(found, [](const TomlEntry& a, const TomlEntry& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  std::vector<ConfigEntry> entries;
  for (TomlEntry& item : found)
    entries.push_back(std::move(item.entry));
  return entries;
}

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
  return std::string(text);
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
    std::string operator()(const OtherConfigValue& v) const { return std::string(v.kind); }
  };
  return std::visit(Describer(), value);
}

Result<std::vector<ConfigEntry>> ParseConfigEntries(std::string_view text, ConfigFormat format,
                                                    std::string_view file) {
  STRATA_TRY(std::vector<ConfigEntry> entries, format == ConfigFormat::kJson
                                                   ? JsonHandler(text, file).Parse()
                                                   : ParseToml(text, file));
  std::set<std::string_view> seen;
  for (const ConfigEntry& entry : entries) {
    if (!seen.insert(entry.key).second) {
      return Error("key '{}' occurs twice: {}: remove one", entry.key, entry.where);
    }
  }
  return entries;
}

std::string ToJson(std::span<const ConfigEntry> entries) {
  using Json = nlohmann::ordered_json;
  Json root = Json::object();
  for (const ConfigEntry& entry : entries) {
    Json value;
    const auto* other = std::get_if<OtherConfigValue>(&entry.value);
    if (other != nullptr && other->kind != kTableKind) continue;
    if (other != nullptr) value = Json::object();
    if (const auto* flag = std::get_if<bool>(&entry.value)) value = *flag;
    if (const auto* integer = std::get_if<int64_t>(&entry.value)) value = *integer;
    if (const auto* integer = std::get_if<uint64_t>(&entry.value)) value = *integer;
    if (const auto* number = std::get_if<double>(&entry.value)) value = *number;
    if (const auto* text = std::get_if<std::string>(&entry.value)) value = *text;
    if (const auto* words = std::get_if<std::vector<std::string>>(&entry.value)) value = *words;
    Json* table = &root;
    std::string_view key = entry.key;
    for (size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      table = &(*table)[std::string(key.substr(0, dot))];
      key.remove_prefix(dot + 1);
    }
    // A table that members came before, or stands twice by --set, keeps them.
    Json& place = (*table)[std::string(key)];
    if (!(value.is_object() && place.is_object())) place = std::move(value);
  }
  return root.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

Status OverrideEntry(std::string_view assignment, std::vector<ConfigEntry>& entries) {
  const size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return Error("no key and value: --set {}: write --set key=value", OneLine(assignment));
  }
  const std::string key = Dotted("", assignment.substr(0, equals));
  if (IsIgnored(key)) return Ok();
  ConfigEntry entry{key, ParseScalar(assignment.substr(equals + 1)),
                    fmt::format("--set {}", OneLine(assignment))};
  if (std::holds_alternative<std::monostate>(entry.value)) {
    std::erase_if(entries, [&](const ConfigEntry& e) { return e.key.starts_with(key + "."); });
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
