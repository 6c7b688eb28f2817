#include "cli/passes/cpp_text.h"

#include <doctest/doctest.h>

namespace strata::cli {
namespace {

TEST_CASE("emitted C++: a name is an identifier, no reserved word, and given once") {
  CppNames names;
  CHECK_EQ(names.Take("view_1"), "view_1");
  CHECK_EQ(names.Take("view_1"), "view_1_2");
  CHECK_EQ(names.Take("and"), "and_");
  CHECK_EQ(names.Take("and_"), "and_2");
  CHECK_EQ(names.Take("linux"), "linux_");  // a macro of GNU C++
  CHECK_EQ(names.Take("nd"), "nd");         // within reserved words, but none
  CHECK_EQ(names.Take("__x.y"), "_x_y");
  CHECK_EQ(names.Take("_X"), "v_X");
  CHECK_EQ(names.Take("7"), "v7");
  CHECK_EQ(names.Take(""), "v");
}

TEST_CASE("emitted C++: text stays on its line") {
  CHECK_EQ(CppString("a\"b\\c\nd"), R"("a\"b\\c\012d")");
  CHECK_EQ(CppComment(""), "");
  CHECK_EQ(CppComment("a\nb"), "// a b");
  CHECK_EQ(CppComment("path\\  "), "// path\\.");
}

TEST_CASE("emitted C++: doubles are literals of doubles") {
  CHECK_EQ(CppDouble(1), "1.0");
  CHECK_EQ(CppDouble(0.1), "0.1");
  CHECK_EQ(CppDouble(1e300), "1e+300");
  CHECK_EQ(CppDouble(-1.0 / 0.0), "-INFINITY");
}

}  // namespace
}  // namespace strata::cli
