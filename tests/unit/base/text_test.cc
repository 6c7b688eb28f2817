#include "base/text.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/shell.h"
#include "base/suggest.h"

namespace strata {
namespace {

const std::vector<std::string> kNames = {"dim", "n_layers", "n_heads", "optimizer.lr"};

TEST_CASE("the closest name is at most a misspelling away") {
  CHECK_EQ(ClosestMatch("dims", kNames), "dim");
  CHECK_EQ(ClosestMatch("dmi", kNames), "dim");
  CHECK_EQ(ClosestMatch("n_layer", kNames), "n_layers");
  CHECK_EQ(ClosestMatch("optimiser.lr", kNames), "optimizer.lr");
  CHECK_EQ(ClosestMatch("n_haeds", kNames), "n_heads");
  CHECK_EQ(ClosestMatch("vocabulary", kNames), std::nullopt);
  CHECK_EQ(ClosestMatch("", kNames), std::nullopt);
  CHECK_EQ(ClosestMatch("x", {}), std::nullopt);
}

TEST_CASE("the first of equally close names is suggested") {
  const std::vector<std::string> names = {"beta2", "beta1"};
  CHECK_EQ(ClosestMatch("beta3", names), "beta2");
}

TEST_CASE("a message suggests a name only if one is close") {
  CHECK_EQ(DidYouMean("dims", kNames), ", did you mean 'dim'");
  CHECK_EQ(DidYouMean("unrelated", kNames), "");
}

TEST_CASE("foreign text is shown on one line and cut to a limit") {
  CHECK_EQ(OneLine("plain é"), "plain é");
  CHECK_EQ(OneLine("a\nb\x01"), "a\\nb\\u0001");
  CHECK_EQ(OneLine("abcdef", 4), "abcd…");
  CHECK_EQ(OneLine("\xff"), "\xEF\xBF\xBD");
}

TEST_CASE("a quoted word of a command line reads back unchanged") {
  CHECK_EQ(ShellWord("out/demo.strata"), "out/demo.strata");
  CHECK_EQ(ShellWord("a#pass=1"), "\"a#pass=1\"");
  CHECK_EQ(ShellWord("tune{a=1}"), "\"tune{a=1}\"");
  CHECK_EQ(ShellWord(""), "\"\"");
  CHECK_EQ(ShellWord("it's $HOME"), R"('it'\''s $HOME')");
  CHECK_EQ(ShellWord("plan=\"x\""), "'plan=\"x\"'");
  CHECK_EQ(ShellWord("a\x1b[1m'\\\n"), R"($'a\x1b[1m\'\\\x0a')");
  CHECK_EQ(ShellWord("\u202e"), R"($'\xe2\x80\xae')");
}

TEST_CASE("long lists end with a count") {
  CHECK_EQ(Enumerate(kNames, 4), "dim, n_layers, n_heads, optimizer.lr");
  CHECK_EQ(Enumerate(kNames, 2), "dim, n_layers and 2 more");
  CHECK_EQ(Enumerate({}), "");
}

TEST_CASE("lines are taken off a text, the last one with or without its end") {
  for (std::string_view text : {"a\n\nb\n", "a\n\nb"}) {
    CHECK_EQ(TakeLine(text), "a");
    CHECK_EQ(TakeLine(text), "");
    CHECK_EQ(TakeLine(text), "b");
    CHECK(text.empty());
    CHECK_EQ(TakeLine(text), "");
  }
}

}  // namespace
}  // namespace strata
