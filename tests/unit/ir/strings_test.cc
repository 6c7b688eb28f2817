#include "ir/strings.h"

#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("equal texts share an id, different texts do not") {
  StringTable table;
  const StrId a = table.Intern("aten.mm.default");
  CHECK(a == table.Intern(std::string("aten.mm.") + "default"));
  CHECK(a != table.Intern("aten.mm"));
  CHECK(table[a] == "aten.mm.default");
}

TEST_CASE("Find does not add a string") {
  StringTable table;
  CHECK_FALSE(table.Find("x").valid());
  CHECK(table.size() == 0);
  const StrId x = table.Intern("x");
  CHECK(table.Find("x") == x);
}

TEST_CASE("the empty string and strings with zero bytes are strings") {
  StringTable table;
  const StrId empty = table.Intern("");
  const StrId zero = table.Intern(std::string_view("\0", 1));
  CHECK(empty != zero);
  CHECK(table[zero].size() == 1);
  CHECK(table[StrId{}].empty());
}

TEST_CASE("views stay valid while the table grows, also with strings larger than a block") {
  StringTable table;
  const std::string large(200'000, 'x');
  const std::string_view first = table[table.Intern("first")];
  const std::string_view big = table[table.Intern(large)];
  for (int i = 0; i < 100'000; ++i)
    table.Intern(std::to_string(i));
  CHECK(first == "first");
  CHECK(big == large);
  CHECK(table.size() == 100'002);
  for (int i = 0; i < 100'000; i += 997)
    CHECK(table[table.Find(std::to_string(i))] == std::to_string(i));
}

TEST_CASE("a string keeps its size") {
  StringTable table;
  for (const size_t size : {0, 1, 254, 255, 256, 65'535, 65'536}) {
    const std::string text(size, 'x');
    CHECK(table[table.Intern(text)] == text);
  }
}

TEST_CASE("a copy keeps ids") {
  StringTable table;
  const StrId a = table.Intern("a"), b = table.Intern("b");
  const StringTable copy(table);
  CHECK(copy[a] == "a");
  CHECK(copy.Find("b") == b);
}

}  // namespace
}  // namespace strata
