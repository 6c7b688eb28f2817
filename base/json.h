#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// Writes JSON straight into a string, in the order of the calls. Text that is not UTF-8 is written
/// with U+FFFD in place of the bad bytes, so that the output is always valid; numbers that JSON
/// lacks (NaN, infinity) become null.
///
///     JsonWriter json(out);
///     json.BeginObject().Field("schema", "strata.diff/1");
///     json.Key("pairs").BeginArray();
///     …
///     json.EndArray().EndObject();
///
/// REQUIRES: calls nest as JSON does; in an object each value follows a Key.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);

  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  /// The shortest text that reads back as `value`.
  JsonWriter& Double(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();

  JsonWriter& Field(std::string_view key, std::string_view text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, const char* text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, int64_t value) { return Key(key).Int(value); }
  JsonWriter& Field(std::string_view key, int32_t value) { return Key(key).Int(value); }
  JsonWriter& Field(std::string_view key, double value) { return Key(key).Double(value); }
  JsonWriter& Field(std::string_view key, bool value) { return Key(key).Bool(value); }

  /// Starts the next element or key on a new line, indented by `indent` blanks.
  JsonWriter& Break(int indent);

 private:
  void Separate();
  JsonWriter& Close(char bracket);

  std::string& out_;
  std::vector<bool> has_elements_;  // per open object or array
  bool after_key_ = false;
  int break_ = -1;  // blanks of the line break that is due; -1: none
};

/// `text` as a JSON string with its quotes.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace strata
