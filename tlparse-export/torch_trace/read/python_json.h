#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// A field of a JSON object, its value by the text.
struct JsonField {
  std::string key;
  std::string_view value;
};

// JSON as Python's json.dumps writes it, which is not always JSON: NaN, Infinity and -Infinity are
// numbers (no library that Strata uses reads them), and bytes that are not UTF-8 may stand in
// strings of a damaged log. Values are views of the text.

/// The fields of the object that `text` is, blanks around it allowed; none for other text. Of
/// equal keys all are kept.
std::optional<std::vector<JsonField>> ReadJsonObject(std::string_view text);
/// The elements of the array that `text` is.
std::optional<std::vector<std::string_view>> ReadJsonArray(std::string_view text);
/// The content of the string that `text` is. Lone surrogates become U+FFFD.
std::optional<std::string> ReadJsonString(std::string_view text);
std::optional<int64_t> ReadJsonInt(std::string_view text);

/// The first field of this key, null without one.
const JsonField* FindField(const std::vector<JsonField>& fields, std::string_view key);
/// Its value, empty without one.
std::string_view FieldValue(const std::vector<JsonField>& fields, std::string_view key);

}  // namespace strata
