#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"

namespace strata {

/// Values that a configuration field never has, known only by their kind: `a table`, `an array`.
struct OtherConfigValue {
  std::string_view kind;
  friend bool operator==(const OtherConfigValue&, const OtherConfigValue&) = default;
};
inline constexpr std::string_view kTableKind = "a table";
inline constexpr std::string_view kArrayKind = "an array";

/// Arrays of strings.
using WordLists = std::vector<std::vector<std::string>>;

/// uint64_t only beyond the range of int64_t. monostate is JSON's null. An array of strings, or of
/// such arrays, is known, any other only by its kind.
using ConfigValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
                                 std::vector<std::string>, WordLists, OtherConfigValue>;

/// The kind in words, for messages: `an integer`, `the string "x"`.
std::string Describe(const ConfigValue& value);

/// One `key = value` of a configuration text, with the names of the tables around it: `rope.theta`.
/// A table has an entry of its own, before those of its members.
struct ConfigEntry {
  std::string key;  ///< canonical (runtime/config/names.h)
  ConfigValue value;
  std::string where;  ///< `demo.toml:12` or `--set rope.theta=1`
  std::string name;   ///< as the text spells the key
};

/// The entries of a text in their order. Keys that begin with `_` are left out with all below them.
/// Errors: the text breaks the format's grammar, a field occurs twice.
Result<std::vector<ConfigEntry>> ParseConfigEntries(std::string_view text, ConfigFormat format,
                                                    std::string_view file);

/// The entries as JSON, two blanks a level; arrays of anything but strings and arrays of them are
/// left out.
std::string ToJson(std::span<const ConfigEntry> entries);

/// Applies one `key=value` to the entries, as if the text said so instead of what it says about
/// this field. The value is JSON's null, true, false, a number, an array, or else a string, quoted
/// or not. null for a table drops its members.
Status OverrideEntry(std::string_view assignment, std::vector<ConfigEntry>& entries);

}  // namespace strata
