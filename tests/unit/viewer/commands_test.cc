#include "viewer/model/commands.h"

#include <doctest/doctest.h>

#include "tests/support/results.h"

namespace strata::viewer {
namespace {

CommandTable Table() {
  CommandTable table;
  table.Add("next", "Next", {"j"}, [](int) {});
  table.Add("back", "Back", {"k", "Left"}, [](int) {});
  return table;
}

Result<std::string> Name(const std::string& word) {
  if (word == "nokey") return Error("'nokey' is not a key");
  return word == "ctrl+n" ? "Ctrl+N" : word;
}

TEST_CASE("a key that is bound again is taken from the command that had it") {
  CommandTable table = Table();
  CHECK(table.OfKey("j") == table.Find("next"));
  CHECK_OK(table.Bind("back", {"j"}));
  CHECK(table.OfKey("j") == table.Find("back"));
  CHECK(table.OfKey("k") == nullptr);
  CHECK(table.Find("next")->keys.empty());
}

TEST_CASE("a key that is named twice is bound once") {
  CommandTable table = Table();
  CHECK_OK(table.Bind("next", {"n", "j", "n"}));
  CHECK(table.Find("next")->keys == std::vector<std::string>{"n", "j"});
}

TEST_CASE("bindings are read from a file, and errors name the line") {
  CommandTable table = Table();
  CHECK_OK(table.ReadBindings("# mine\n\nnext = n ctrl+n\n", "keys.txt", Name));
  CHECK(table.OfKey("Ctrl+N") == table.Find("next"));
  CHECK(table.OfKey("j") == nullptr);
  CHECK(table.ReadBindings("next = a\nnexd = b\n", "keys.txt", Name).error().message() ==
        "unknown command 'nexd', did you mean 'next': keys.txt:2: see the names in "
        "docs/viewer.md");
  CHECK(table.ReadBindings("next a\n", "keys.txt", Name).error().message() ==
        "no '=': keys.txt:1: write COMMAND = KEY");
  CHECK(table.ReadBindings("next = nokey\n", "keys.txt", Name).error().message() ==
        "'nokey' is not a key: keys.txt:1: write COMMAND = KEY");
}

}  // namespace
}  // namespace strata::viewer
