#include "base/toml.h"

#include <doctest/doctest.h>

#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;

const TomlValue* Find(const TomlValue& table, std::string_view key) {
  for (const TomlValue::Member& member : std::get<TomlValue::Table>(table.value)) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

/// `offset: what` of the first error.
std::string JsonError(std::string_view text) {
  const auto parsed = ReadJson(text);
  const auto* error = std::get_if<SyntaxError>(&parsed);
  return error == nullptr ? "" : fmt::format("{}: {}", error->at, error->what);
}

TEST_CASE("TOML and JSON give the same tree") {
  const auto toml = ReadToml("b = [1, 'x']\na = { c = 1.5, d = true }\n");
  const auto json = ReadJson(R"({"b": [1, "x"], "a": {"c": 1.5, "d": true}})");
  for (const auto* parsed : {&toml, &json}) {
    const auto& root = std::get<TomlValue>(*parsed);
    CHECK_EQ(std::get<TomlValue::Table>(root.value)[0].key, "b");
    const auto& array = std::get<TomlValue::Array>(Find(root, "b")->value);
    CHECK_EQ(std::get<int64_t>(array[0].value), 1);
    CHECK_EQ(std::get<std::string>(array[1].value), "x");
    CHECK_EQ(std::get<double>(Find(*Find(root, "a"), "c")->value), 1.5);
    CHECK_EQ(std::get<bool>(Find(*Find(root, "a"), "d")->value), true);
  }
}

TEST_CASE("values know their offsets, in bytes") {
  const auto toml = std::get<TomlValue>(ReadToml("\"ä\" = 1\nb = 2\n"));
  CHECK_EQ(std::get<TomlValue::Table>(toml.value)[1].at, 9);
  const auto json = std::get<TomlValue>(ReadJson(R"({"ä": 1, "b": 2})"));
  CHECK_EQ(std::get<TomlValue::Table>(json.value)[1].at, 10);
  CHECK_EQ(Find(json, "b")->at, 15);
}

TEST_CASE("numbers of JSON") {
  const auto json = std::get<TomlValue>(ReadJson(
      R"({"a": -3, "b": 18446744073709551615, "c": 100000000000000000000, "d": null, "e": 1e3})"));
  CHECK_EQ(std::get<int64_t>(Find(json, "a")->value), -3);
  CHECK_EQ(std::get<uint64_t>(Find(json, "b")->value), UINT64_MAX);
  CHECK_EQ(std::get<double>(Find(json, "c")->value), 1e20);
  CHECK(std::holds_alternative<std::monostate>(Find(json, "d")->value));
  CHECK_EQ(std::get<double>(Find(json, "e")->value), 1000.0);
}

TEST_CASE("text that is not JSON has an error with its offset") {
  CHECK_EQ(JsonError(""), "0: Empty: no JSON found");
  CHECK_EQ(JsonError("3"), "0: expected '{' or '['");
  CHECK_EQ(JsonError(R"({"a" 1})"), "5: unexpected '1'");
  CHECK_EQ(JsonError(R"({"a": 1)"), "7: unexpected end");
  CHECK_EQ(JsonError(R"({"a": NaN})"), "6: unexpected 'NaN'");
  CHECK_EQ(JsonError(R"({"a": nul})"), "6: unexpected 'nul'");
  CHECK_EQ(JsonError(R"({"a": 01})"), "6: '01' is not a number");
  CHECK_EQ(JsonError(R"([1,,2])"), "3: unexpected ','");
  CHECK_EQ(JsonError(R"({"a": 1} 2)"), "9: text after the value");
  CHECK_EQ(JsonError("{\"a\": \"\xff\"}"), "7: The input is not valid UTF-8");
  CHECK_EQ(JsonError("{\"a\": \"x\ny\"}"),
           "8: Within strings, some characters must be escaped, we found unescaped characters");
}

TEST_CASE("text that is not TOML has an error with its line and a caret") {
  CHECK_EQ(MessageOf(ParseToml("a = 1\nb\n", "f.toml")),
           "f.toml:2:2: not valid TOML: Error while parsing key-value pair: expected '=', saw "
           "'\\\\n'\n  b\n   ^");
}

}  // namespace
}  // namespace strata
