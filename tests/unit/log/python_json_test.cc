#include "tlparse-export/torch_trace/read/python_json.h"

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("Python JSON: fields keep their text") {
  const auto fields =
      ReadJsonObject(R"( {"a": {"b": [1, NaN, "x}"]}, "c": -Infinity, "a": null} )");
  REQUIRE(fields.has_value());
  REQUIRE_EQ(fields->size(), 3);
  CHECK_EQ((*fields)[0].key, "a");
  CHECK_EQ((*fields)[0].value, R"({"b": [1, NaN, "x}"]})");
  CHECK_EQ((*fields)[1].value, "-Infinity");
  CHECK_EQ((*fields)[2].value, "null");
  CHECK(ReadJsonObject("{}")->empty());
}

TEST_CASE("Python JSON: invalid JSON is rejected") {
  for (const char* text : {"", "{", "[1]", "{\"a\"}", "{\"a\": }", "{\"a\": 1,}", "{\"a\": 1} x",
                           "{a: 1}", "{\"a\": nil}", "{\"a\": \"b}", "{\"a\": [1, }"}) {
    CHECK_FALSE_MESSAGE(ReadJsonObject(text).has_value(), text);
  }
  CHECK_FALSE(ReadJsonObject("{\"a\": " + std::string(100000, '[') + "}").has_value());
}

TEST_CASE("Python JSON: strings") {
  CHECK_EQ(ReadJsonString(R"("a\"b\\c\/\n\t\u00e9\ud83d\ude00")"), "a\"b\\c/\n\t\u00e9\U0001F600");
  CHECK_EQ(ReadJsonString(R"("\ud83d")"), "\uFFFD");
  CHECK_EQ(ReadJsonString("\"\xff\""), "\xff");
  CHECK_EQ(ReadJsonString(R"("\x41")"), std::nullopt);
  CHECK_EQ(ReadJsonString("1"), std::nullopt);
}

TEST_CASE("Python JSON: arrays and numbers") {
  CHECK_EQ(ReadJsonArray(R"(["/a,b.py", -1])")->size(), 2);
  CHECK_EQ(ReadJsonArray("[1, ]"), std::nullopt);
  CHECK_EQ(ReadJsonInt("-1"), -1);
  CHECK_EQ(ReadJsonInt("1.5"), std::nullopt);
  CHECK_EQ(ReadJsonInt("99999999999999999999"), std::nullopt);
}

}  // namespace
}  // namespace strata
