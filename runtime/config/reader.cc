#include "runtime/config/reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "base/text.h"
#include "runtime/config/names.h"

namespace strata {
namespace {

/// What an unknown key was meant to be: a misspelling among the members of its table, or a member
/// of another table.
std::optional<std::string> Guess(std::string_view key, const std::vector<std::string>& known) {
  const size_t dot = key.rfind('.');
  const std::string_view table = dot == std::string_view::npos ? "" : key.substr(0, dot + 1);
  const std::string_view member = key.substr(table.size());
  std::vector<std::string> members;
  for (const std::string& name : known) {
    if (name.starts_with(table)) members.push_back(name.substr(table.size()));
  }
  if (const auto closest = ClosestMatch(member, members))
    return fmt::format("{}{}", table, *closest);
  const std::string elsewhere = fmt::format(".{}", member);
  for (const std::string& name : known) {
    if (name == member || name.ends_with(elsewhere)) return name;
  }
  return std::nullopt;
}

/// The words of a list, without blanks around them; none is empty.
std::vector<std::string> WordsOf(std::string_view list, char separator) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(separator, begin), list.size());
    const std::string_view word = TrimBlanks(list.substr(begin, end - begin));
    if (!word.empty()) words.emplace_back(word);
    begin = end + 1;
  }
  return words;
}

/// The table itself or a member.
bool IsOfTable(const ConfigEntry& entry, std::string_view table) {
  return entry.key == table ||
         (entry.key.starts_with(table) && entry.key.substr(table.size()).starts_with('.'));
}

}  // namespace

void ConfigReader::Read(std::string_view key, int64_t& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  if (const auto* integer = std::get_if<int64_t>(&entry->value)) {
    target = *integer;
  } else {
    WrongType(*entry, "an integer");
  }
}

void ConfigReader::Read(std::string_view key, uint64_t& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  const auto* integer = std::get_if<int64_t>(&entry->value);
  if (integer != nullptr && *integer >= 0) {
    target = static_cast<uint64_t>(*integer);
  } else if (const auto* large = std::get_if<uint64_t>(&entry->value)) {
    target = *large;
  } else {
    WrongType(*entry, "an integer of at least 0");
  }
}

void ConfigReader::Read(std::string_view key, double& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  if (const auto* number = std::get_if<double>(&entry->value); number && std::isfinite(*number)) {
    target = *number;
  } else if (const auto* integer = std::get_if<int64_t>(&entry->value)) {
    target = static_cast<double>(*integer);
  } else {
    WrongType(*entry, "a finite number");
  }
}

void ConfigReader::Read(std::string_view key, bool& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  if (const auto* flag = std::get_if<bool>(&entry->value)) {
    target = *flag;
  } else {
    WrongType(*entry, "true or false");
  }
}

void ConfigReader::Read(std::string_view key, std::string& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  if (const auto* text = std::get_if<std::string>(&entry->value)) {
    target = *text;
  } else {
    WrongType(*entry, "a string");
  }
}

void ConfigReader::ReadWords(std::string_view key, std::vector<std::string>& target,
                             char separator) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  if (const auto* words = std::get_if<std::vector<std::string>>(&entry->value)) {
    target = *words;
  } else if (const auto* text = std::get_if<std::string>(&entry->value)) {
    target = WordsOf(*text, separator);
  } else {
    WrongType(*entry, "words");
  }
}

void ConfigReader::Read(std::string_view key, std::vector<std::vector<std::string>>& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  const auto* words = std::get_if<std::vector<std::string>>(&entry->value);
  if (const auto* lists = std::get_if<WordLists>(&entry->value)) {
    target = *lists;
  } else if (words != nullptr && words->empty()) {
    target.clear();
  } else {
    WrongType(*entry, "an array of arrays of words");
  }
}

void ConfigReader::ReadPaths(std::string_view key, std::vector<std::string>& target) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  if (const auto* paths = std::get_if<std::vector<std::string>>(&entry->value)) {
    target = *paths;
  } else if (const auto* path = std::get_if<std::string>(&entry->value)) {
    target = {*path};
  } else {
    WrongType(*entry, "a path or an array of paths");
  }
}

void ConfigReader::ForbidBoth(std::string_view key, std::string_view other) {
  if (!Has(key) || !Has(other)) return;
  Note(Error("'{}' and '{}' are the same: {}: give one of them", NameOf(key), NameOf(other),
             Where(other)));
}

void ConfigReader::Read(std::string_view key, std::optional<double>& target) {
  double number = 0.0;
  Read(key, number);
  if (Has(key)) {
    target = number;
  } else if (Find(key) != nullptr) {
    target = std::nullopt;
  }
}

const std::string* ConfigReader::TakeWord(std::string_view key,
                                          const std::vector<std::string>& words) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return nullptr;
  const auto* word = std::get_if<std::string>(&entry->value);
  if (word == nullptr) {
    WrongType(*entry, fmt::format("one of the words {}", fmt::join(words, ", ")));
    return nullptr;
  }
  if (std::ranges::find(words, *word) == words.end()) {
    Note(Error("unknown {}: {}: found {}, choose one of {}{}", entry->name, entry->where,
               Describe(entry->value), fmt::join(words, ", "), DidYouMean(*word, words)));
    return nullptr;
  }
  return word;
}

void ConfigReader::RequireKey(std::string_view key) {
  if (Has(key) || first_missing_) return;
  first_missing_ = Error("missing key '{}': {}: give it a value", key, file_);
}

void ConfigReader::Table(std::string_view key) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  const auto* other = std::get_if<OtherConfigValue>(&entry->value);
  if (other == nullptr || other->kind != kTableKind) WrongType(*entry, kTableKind);
}

void ConfigReader::Forbid(std::string_view key, std::string_view model) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr) return;
  Note(Error("key '{}' is not for {}: {}: remove it", entry->name, model, entry->where));
}

void ConfigReader::ForbidTable(std::string_view key, std::string_view model) {
  for (const ConfigEntry& entry : entries_) {
    if (IsOfTable(entry, key)) Forbid(entry.key, model);
  }
}

void ConfigReader::Refuse(std::string_view key, std::string_view advice) {
  Note(Error("impossible value for '{}': {}: {}", NameOf(key), Where(key), advice));
}

void ConfigReader::RefuseTable(std::string_view key, std::string_view advice) {
  bool is_first = true;
  for (const ConfigEntry& entry : entries_) {
    if (!IsOfTable(entry, key)) continue;
    Take(entry.key);
    if (std::exchange(is_first, false)) {
      Note(Error("table '{}' is for other builds: {}: {}", key, entry.where, advice));
    }
  }
}

void ConfigReader::IgnoreTable(std::string_view key) {
  for (const ConfigEntry& entry : entries_) {
    if (IsOfTable(entry, key)) Take(entry.key);
  }
}

void ConfigReader::Fix(std::string_view key, const ConfigValue& accepted, std::string_view advice) {
  const ConfigEntry* entry = Take(key);
  if (entry == nullptr || entry->value == accepted) return;
  const auto* number = std::get_if<double>(&accepted);
  const auto* integer = std::get_if<int64_t>(&entry->value);
  if (number != nullptr && integer != nullptr && static_cast<double>(*integer) == *number) return;
  Refuse(key, advice);
}

std::vector<std::string> ConfigReader::Tables(std::string_view key) const {
  const std::string prefix = fmt::format("{}.", key);
  std::vector<std::string> names;
  for (const ConfigEntry& entry : entries_) {
    if (!entry.key.starts_with(prefix)) continue;
    std::string name = entry.key.substr(prefix.size());
    name.resize(std::min(name.size(), name.find('.')));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

bool ConfigReader::Has(std::string_view key) const {
  const ConfigEntry* entry = Find(key);
  return entry != nullptr && !std::holds_alternative<std::monostate>(entry->value);
}

bool ConfigReader::HasTable(std::string_view key) const {
  return std::ranges::any_of(
      entries_, [&](const ConfigEntry& entry) { return IsOfTable(entry, key) && Has(entry.key); });
}

std::string ConfigReader::Where(std::string_view key) const {
  return Has(key) ? Find(key)->where : file_;
}

std::string ConfigReader::NameOf(std::string_view key) const {
  return Has(key) ? Find(key)->name : std::string(key);
}

Status ConfigReader::Finish() const {
  for (const ConfigEntry& entry : entries_) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    if (const std::string_view advice = AdviceFor(entry.name); !advice.empty())
      return Error("unknown key '{}': {}: {}", entry.name, entry.where, advice);
    std::vector<std::string> known = known_;
    std::ranges::move(OtherNames(), std::back_inserter(known));
    const std::optional<std::string> guess = Guess(entry.name, known);
    const std::string advice =
        guess ? fmt::format("did you mean '{}'?", *guess) : "remove it, or begin its name with '_'";
    return Error("unknown key '{}': {}: {}", entry.name, entry.where, advice);
  }
  if (first_error_) return *first_error_;
  if (first_missing_) return *first_missing_;
  return Ok();
}

const ConfigEntry* ConfigReader::Take(std::string_view key) {
  known_.emplace_back(key);
  return Has(key) ? Find(key) : nullptr;
}

void ConfigReader::WrongType(const ConfigEntry& entry, std::string_view expected) {
  Note(Error("wrong type for '{}': {}: expected {}, found {}", entry.name, entry.where, expected,
             Describe(entry.value)));
}

void ConfigReader::Note(Error error) {
  if (!first_error_) first_error_ = std::move(error);
}

const ConfigEntry* ConfigReader::Find(std::string_view key) const {
  const auto found = std::ranges::find(entries_, key, &ConfigEntry::key);
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace strata
