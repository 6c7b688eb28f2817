#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/config/tree.h"

namespace strata {

/// A word of a configuration and what it stands for.
template <class T>
struct NamedValue {
  std::string_view name;
  T value;
};

/// Takes typed fields out of a configuration's entries and remembers the first thing that is wrong.
/// Every field is named once by one of the calls; `Finish` then knows the keys that no call named.
///
/// A call leaves its target as it is when the key is absent or null; so defaults are what the
/// target held before. Keys are canonical, messages name them as the text does.
class ConfigReader {
 public:
  ConfigReader(std::vector<ConfigEntry> entries, std::string_view file)
      : entries_(std::move(entries)), file_(file) {}

  void Read(std::string_view key, int64_t& target);
  void Read(std::string_view key, uint64_t& target);
  void Read(std::string_view key, double& target);
  void Read(std::string_view key, bool& target);
  void Read(std::string_view key, std::string& target);
  /// An array of words, or a string of them with `separator` between them.
  void ReadWords(std::string_view key, std::vector<std::string>& target, char separator = ',');
  /// An array of arrays of words.
  void Read(std::string_view key, std::vector<std::vector<std::string>>& target);
  /// A path, or an array of paths.
  void ReadPaths(std::string_view key, std::vector<std::string>& target);
  /// null sets the target to nothing.
  void Read(std::string_view key, std::optional<double>& target);
  /// An enum value, by its name.
  template <class T>
  void Read(std::string_view key, std::initializer_list<NamedValue<T>> words, T& target);

  /// As `Read`, and the key must be there.
  template <class T>
  void Require(std::string_view key, T& target) {
    Read(key, target);
    RequireKey(key);
  }

  /// An error when both are given.
  void ForbidBoth(std::string_view key, std::string_view other);

  /// A key without an effect on a run.
  void Ignore(std::string_view key) { Take(key); }
  /// The same for a table with all its members.
  void IgnoreTable(std::string_view key);
  /// A table whose members are read by their dotted keys.
  void Table(std::string_view key);
  /// A field of other models: its name is known, but nothing but null may be given.
  void Forbid(std::string_view key, std::string_view model);
  /// The same for a table with all its members.
  void ForbidTable(std::string_view key, std::string_view model);
  /// An error, `impossible value for '<key>': <where>: <advice>`.
  void Refuse(std::string_view key, std::string_view advice);
  /// The same for a table, when it is there.
  void RefuseTable(std::string_view key, std::string_view advice);
  /// A key of torchtitan's that can have one value here; nothing: none. Another is refused.
  void Fix(std::string_view key, const ConfigValue& accepted, std::string_view advice);
  /// Names of the tables inside a table, in order: of groups that the user names.
  std::vector<std::string> Tables(std::string_view key) const;
  /// An error when the key is absent or null.
  void RequireKey(std::string_view key);

  /// Present and not null.
  bool Has(std::string_view key) const;
  /// Present, or one of its members is.
  bool HasTable(std::string_view key) const;
  /// Where the key's value comes from: its line, or the file when the value is a default.
  std::string Where(std::string_view key) const;
  /// The key as the text spells it.
  std::string NameOf(std::string_view key) const;

  /// The first error; unknown keys come first and missing ones last, since a misspelt key is both.
  Status Finish() const;

 private:
  /// The entry of a key, or null when it is absent or null. Notes the key as known.
  const ConfigEntry* Take(std::string_view key);
  /// The words that a key may have, checked.
  const std::string* TakeWord(std::string_view key, const std::vector<std::string>& words);
  void WrongType(const ConfigEntry& entry, std::string_view expected);
  void Note(Error error);
  const ConfigEntry* Find(std::string_view key) const;

  std::vector<ConfigEntry> entries_;
  std::string file_;
  std::vector<std::string> known_;
  std::optional<Error> first_error_;
  std::optional<Error> first_missing_;
};

template <class T>
void ConfigReader::Read(std::string_view key, std::initializer_list<NamedValue<T>> words,
                        T& target) {
  std::vector<std::string> names;
  for (const NamedValue<T>& word : words)
    names.emplace_back(word.name);
  const std::string* chosen = TakeWord(key, names);
  if (chosen == nullptr) return;
  for (const NamedValue<T>& word : words) {
    if (word.name == *chosen) target = word.value;
  }
}

}  // namespace strata
