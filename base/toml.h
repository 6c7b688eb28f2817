#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace strata {

/// A date or a time; no reader here asks for one.
struct TomlDate {};

/// A value of a TOML or JSON text, and its offset.
struct TomlValue {
  struct Member;
  using Array = std::vector<TomlValue>;
  using Table = std::vector<Member>;  ///< in the order of the text; JSON may repeat a key
  /// monostate: JSON's null. uint64_t only beyond the range of int64_t.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, TomlDate, Array, Table>
      value;
  size_t at = 0;
};
struct TomlValue::Member {
  std::string key;
  size_t at = 0;
  TomlValue value;
};

/// The first error of a text's grammar, and its offset.
struct SyntaxError {
  size_t at = 0;
  std::string what;
};

/// The table that a TOML text is.
std::variant<TomlValue, SyntaxError> ReadToml(std::string_view text);
/// The value that a JSON text is. Objects are tables.
std::variant<TomlValue, SyntaxError> ReadJson(std::string_view text);

struct TomlFile {
  std::string text, file;
  TomlValue root;

  /// `file:line:column: what`, the line and a caret.
  Error At(size_t offset, std::string_view what) const;
  /// `file:line`.
  std::string Where(size_t offset) const;
};

/// Errors: the text is not TOML.
Result<TomlFile> ParseToml(std::string_view text, std::string_view file);

/// A text, and where it stands.
struct TomlText {
  std::string text;
  size_t at = 0;
};

/// Takes the members of a table one by one. The first error is kept, and returned by `Finish`,
/// which also finds unknown keys and lists the valid ones.
class TomlTable {
 public:
  /// `what` names the table in messages: "[limit]".
  TomlTable(const TomlFile& file, const TomlValue& table, std::string what);

  std::optional<std::string> Text(std::string_view key);
  std::optional<int64_t> Count(std::string_view key);  ///< not negative
  std::optional<bool> Flag(std::string_view key);
  /// An array of texts, or one text.
  std::vector<TomlText> Texts(std::string_view key);
  /// An array of arrays of two texts.
  std::vector<std::pair<TomlText, TomlText>> Pairs(std::string_view key);
  /// A table; an array of tables, or one table.
  const TomlValue* Table(std::string_view key);
  std::vector<const TomlValue*> Tables(std::string_view key);

  bool Has(std::string_view key) const;
  Status Finish();

 private:
  const TomlValue::Member* Take(std::string_view key);
  void WrongType(const TomlValue& value, std::string_view key, std::string_view expected);

  const TomlFile& file_;
  const TomlValue::Table* members_ = nullptr;  // null: not a table
  const std::string what_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace strata
