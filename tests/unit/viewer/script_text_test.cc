#include "viewer/model/script_text.h"

#include <doctest/doctest.h>

namespace strata::viewer {
namespace {

std::string ErrorOf(const std::string& text) {
  const Result<std::vector<ScriptLine>> lines = ParseScript(text, "s");
  return lines ? "" : lines.error().message();
}

TEST_CASE("a script is lines of words, with comments, quotes and now") {
  const Result<std::vector<ScriptLine>> lines =
      ParseScript("# comment\n\n type \"a \\\"b\\\" c\" d\r\nnow assert state error = \"\"\n", "s");
  REQUIRE(lines);
  REQUIRE(lines->size() == 2);
  CHECK((*lines)[0].number == 3);
  CHECK((*lines)[0].words == std::vector<std::string>{"a \"b\" c", "d"});
  CHECK((*lines)[1].now);
  CHECK((*lines)[1].words == std::vector<std::string>{"state", "error", "=", ""});
}

TEST_CASE("keys of a line are pressed one by one, each after the effect of the one before") {
  const Result<std::vector<ScriptLine>> lines = ParseScript("key J n\nnow key J n\n", "s");
  REQUIRE(lines);
  REQUIRE(lines->size() == 3);
  CHECK((*lines)[0].words == std::vector<std::string>{"J"});
  CHECK((*lines)[1].words == std::vector<std::string>{"n"});
  CHECK((*lines)[1].number == 1);
  CHECK((*lines)[2].words == std::vector<std::string>{"J", "n"});
}

TEST_CASE("words that are no numbers, or out of range, are errors before anything runs") {
  CHECK(ErrorOf("wait\nframes -5 pan\n") ==
        "s:2: '-5' is not a number from 1 to 1000000: write frames N [still|pan|zoom]");
  for (const char* line :
       {"frames 0", "frames 1.5", "frames nan", "frames 3 jump", "random 5 -1", "random x 1",
        "wait -1", "resize 10 10", "resize 800 99999", "drag a b 3", "scroll a up",
        "scroll a 1 double", "click a left", "run next-pass 0", "screenshot a.jpg"})
    CHECK_MESSAGE(ErrorOf(line).starts_with("s:1: '"), line);
  for (const char* line :
       {"frames 5 pan", "random 10 0", "wait 1.5e3", "resize 1280 720", "drag a -5 2.5",
        "scroll a -3 ctrl", "click a double", "run next-pass 3", "screenshot a.png"})
    CHECK_MESSAGE(ErrorOf(line).empty(), line);
}

TEST_CASE("conditions and dumps have a short form") {
  const Result<std::vector<ScriptLine>> lines = ParseScript(
      "wait idle\nwait node:mm_1\nwait state.hits > 0\nassert state.pass == dce\ndump a.json\n"
      "wait count pass:* > 2\nassert layers.0 exists\n",
      "s");
  REQUIRE(lines);
  std::string words;
  for (const ScriptLine& line : *lines) {
    words += line.verb;
    for (const std::string& word : line.words)
      words += " " + word;
    words += "\n";
  }
  CHECK(words ==
        "wait\nawait node:mm_1 exists\nawait state hits > 0\nassert state pass == dce\n"
        "tree a.json\nawait count pass:* > 2\nassert layers.0 exists\n");
}

}  // namespace
}  // namespace strata::viewer
