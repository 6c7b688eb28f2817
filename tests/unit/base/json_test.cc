#include "base/json.h"

#include <limits>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("JSON is written in the order of the calls") {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("schema", "strata.diff/1").Field("nodes", 3).Field("ok", true);
  json.Key("list").BeginArray().Int(1).Null().Double(0.25).BeginObject().EndObject().EndArray();
  json.Key("empty").BeginArray().EndArray().EndObject();
  CHECK_EQ(out,
           R"({"schema": "strata.diff/1", "nodes": 3, "ok": true, "list": [1, null, 0.25, {}], )"
           R"("empty": []})");
}

TEST_CASE("JSON elements are on separate lines if requested") {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("a").BeginArray();
  json.Break(2).Int(1).Break(2).Int(2).Break(0).EndArray().EndObject();
  CHECK_EQ(out, "{\"a\": [\n  1,\n  2\n]}");
}

TEST_CASE("JSON strings are escaped and always valid UTF-8") {
  std::string out;
  AppendJsonString("a\"\\\n\t\x01é→😀", out);
  CHECK_EQ(out, "\"a\\\"\\\\\\n\\t\\u0001é→😀\"");
  out.clear();
  AppendJsonString("\xff|\xc0\xaf|\xed\xa0\x80|\xe2\x86", out);
  const std::string bad = "\xEF\xBF\xBD";
  CHECK_EQ(out, "\"" + bad + "|" + bad + bad + "|" + bad + bad + bad + "|" + bad + bad + "\"");
}

TEST_CASE("JSON writes NaN and infinity as null") {
  std::string out;
  JsonWriter json(out);
  json.BeginArray().Double(std::numeric_limits<double>::quiet_NaN());
  json.Double(-std::numeric_limits<double>::infinity()).Double(1e-5).EndArray();
  CHECK_EQ(out, "[null, null, 1e-05]");
}

}  // namespace
}  // namespace strata
