#include "ir/dim.h"

#include <array>
#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

struct Table {
  StringTable strings;
  DimTable dims{strings};

  DimId operator()(std::string_view text) {
    const Result<DimId> dim = dims.Parse(text);
    REQUIRE_MESSAGE(dim.has_value(), "cannot parse ", text);
    return *dim;
  }
  std::string Canonical(std::string_view text) {
    std::string out;
    dims.PrintCanonical((*this)(text), out);
    return out;
  }
};

TEST_CASE("sizes: texts printed by sympy come back unchanged") {
  // Seen in logs of PyTorch 2.11 and 2.14, and in its documentation of symbolic shapes.
  for (const char* text : {
           "0",
           "-1",
           "9223372036854775807",
           "s77",
           "u0",
           "2*s77",
           "-s77",
           "-2*s77",
           "s77 + 1",
           "s77 - 1",
           "s27*s77",
           "s77**2",
           "s77**2 + 1",
           "((s75*s96)//2)",
           "(((-u1)//3)) + 5",
           "((s75*s96)//(((s75*s96)//2)))",
           "8*(((s77**2 + 1)//2)) - 4 <= 4*s77*(s77 - 1) + 4*s77",
           "8*(((s77**2 + 1)//2)) - 4 <= 4*s77**2",
           "FloatTrueDiv(ToFloat(s77), 2.0*ToFloat(s77))",
           "Max(1, s0)",
           "Min(1024, s0 + s1)",
           "Mod(s0, 2)",
           "Eq(s27, 8)",
           "s17 > 3",
           "(s0 > 3) & (s1 < 5)",
           "~(s0 > 3)",
           "s0/2",
           "2**s0",
           "(s0 + 1)*(s1 + 1)",
           "ModularIndexing(s0, 1, 2)",
           "18446744073709551616",
           "1.0e-5",
           "oo",
           "True",
       }) {
    Table table;
    const Result<DimId> dim = table.dims.Parse(text);
    REQUIRE_MESSAGE(dim.has_value(), text);
    CHECK_EQ(table.dims.ToString(*dim), text);
  }
}

TEST_CASE("sizes: expressions that differ only in spelling have one id") {
  Table t;
  CHECK_EQ(t("s0*2"), t("s0 + s0"));
  CHECK_EQ(t("s0*s1"), t("s1*s0"));
  CHECK_EQ(t("s0*s0"), t("s0**2"));
  CHECK_EQ(t("1 + s0"), t("s0 + 1"));
  CHECK_EQ(t("2*(s0 + 1)"), t("2*s0 + 2"));
  CHECK_EQ(t("s0 - s0"), t("0"));
  CHECK_EQ(t("((4*s0)//2)"), t("2*s0"));
  CHECK_EQ(t("((4*s0 + 2)//2)"), t("2*s0 + 1"));
  CHECK_EQ(t("FloorDiv(s0, 2)"), t("(s0//2)"));
  CHECK_EQ(t("Mod(4*s0, 2)"), t("0"));
  CHECK_EQ(t("Max(s1, 1, s0, s1)"), t("Max(1, s0, s1)"));
  CHECK_EQ(t("Max(1, Max(s0, 3))"), t("Max(3, s0)"));
  CHECK_EQ(t("(s0 + s1) + s2"), t("s2 + (s1 + s0)"));
  CHECK_NE(t("s0//2*2"), t("s0"));
  CHECK_NE(t("s0"), t("s1"));
}

TEST_CASE("sizes: the first spelling is printed, the canonical spelling is shared") {
  Table a, b;
  CHECK_EQ(a.dims.ToString(a("s1*s0 + 1")), "s1*s0 + 1");
  CHECK_EQ(a.dims.ToString(a("1 + s0*s1")), "s1*s0 + 1");
  CHECK_EQ(b.dims.ToString(b("1 + s0*s1")), "1 + s0*s1");
  CHECK_EQ(a.Canonical("s1*s0 + 1"), b.Canonical("1 + s0*s1"));
}

TEST_CASE("sizes: the order of operands does not depend on the order of creation") {
  Table a, b;
  a("z");
  a("a");
  CHECK_EQ(a.Canonical("z*a + z + a + 1"), b.Canonical("a*z + a + z + 1"));
}

TEST_CASE("sizes: division rounds as in Python") {
  Table t;
  CHECK_EQ(t("(-7//2)"), t("-4"));
  CHECK_EQ(t("((-7)//2)"), t("-4"));
  CHECK_EQ(t("Mod(-7, 2)"), t("1"));
  CHECK_EQ(t("-2**2"), t("-4"));
  CHECK_EQ(t("2**3**2"), t("512"));
  CHECK_EQ(t("7 - 2 - 1"), t("4"));
}

TEST_CASE("sizes: expressions that overflow are kept as text") {
  Table t;
  CHECK_EQ(t.dims.ToString(t("9223372036854775807 + 1")), "9223372036854775807 + 1");
  CHECK_EQ(t.dims.kind(t("9223372036854775807 + 1")), DimKind::kAdd);
  CHECK_EQ(t.dims.ToString(t("9223372036854775807*4")), "9223372036854775807*4");
  CHECK_EQ(t.dims.ToString(t("10**30")), "10**30");
  CHECK_EQ(t.dims.ToString(t("(5//0)")), "(5//0)");
  CHECK_EQ(t.dims.Hint(t("9223372036854775807*4")), std::nullopt);
}

TEST_CASE("sizes: other text is an error") {
  Table t;
  for (const char* text : {"", " ", "s0 +", "(s0", "s0)", "f(", "f()", "f(s0,)", "1 2", "s0 s1",
                           "+", "*", "s0 ** ", "2.0e", "#", "'a'", "Max()"}) {
    CHECK_MESSAGE(!t.dims.Parse(text).has_value(), text);
  }
}

TEST_CASE("sizes: deep nesting is rejected, long sums are accepted") {
  Table t;
  CHECK_FALSE(t.dims.Parse(std::string(100000, '(')).has_value());
  CHECK_FALSE(t.dims.Parse(std::string(100000, '-') + "1").has_value());
  CHECK_FALSE(t.dims.Parse(std::string(100000, '~') + "1").has_value());
  std::string sum = "s0";
  for (int i = 1; i < 20000; ++i)
    sum += " + s" + std::to_string(i);
  CHECK_EQ(t.dims.ToString(t(sum)), sum);
}

TEST_CASE("sizes: hints evaluate expressions") {
  Table t;
  t.dims.SetSymbol({.name = t.strings.Intern("s0"), .hint = 10});
  t.dims.SetSymbol({.name = t.strings.Intern("s1"), .hint = 3});
  CHECK_EQ(t.dims.Hint(t("s0*s1 + 2")), 32);
  CHECK_EQ(t.dims.Hint(t("(s0//s1)")), 3);
  CHECK_EQ(t.dims.Hint(t("Mod(s0, s1)")), 1);
  CHECK_EQ(t.dims.Hint(t("Max(s0, s1, 7)")), 10);
  CHECK_EQ(t.dims.Hint(t("Min(s0, s1, 7)")), 3);
  CHECK_EQ(t.dims.Hint(t("s1**3")), 27);
  CHECK_EQ(t.dims.Hint(t("s0*s2")), std::nullopt);
  CHECK_EQ(t.dims.Hint(t("ToFloat(s0)")), std::nullopt);
}

TEST_CASE("sizes: equalities and bounds that are proved") {
  Table t;
  CHECK(t.dims.ProvablyEqual(t("s0 + s1"), t("s1 + s0")));
  CHECK(t.dims.ProvablyLess(t("s0"), t("s0 + 1")));
  CHECK(t.dims.ProvablyLess(t("2*s0"), t("2*s0 + 1")));
  CHECK(t.dims.ProvablyLess(t("-1"), t("s0")));
  CHECK_FALSE(t.dims.ProvablyLess(t("s0"), t("2*s0")));  // s0 may be 0
  CHECK_FALSE(t.dims.ProvablyLess(t("-1"), t("u0")));    // an unbacked number may be negative
  CHECK_FALSE(t.dims.ProvablyEqual(t("s0"), t("s1")));
  CHECK(t.dims.ProvablyLess(t("Mod(s0, 4)"), t("4")));

  t.dims.SetSymbol({.name = t.strings.Intern("s0"), .hint = {}, .min = 2, .max = 8});
  CHECK(t.dims.ProvablyLess(t("s0"), t("2*s0")));
  CHECK(t.dims.ProvablyLess(t("s0"), t("9")));
  CHECK_FALSE(t.dims.ProvablyLess(t("s0"), t("8")));
  t.dims.SetSymbol({.name = t.strings.Intern("s0"), .hint = {}, .min = 4, .max = 4});
  CHECK(t.dims.ProvablyEqual(t("s0"), t("4")));
}

TEST_CASE("sizes: operators build the same expressions as the parser") {
  Table t;
  CHECK_EQ(t.dims.Add(t("s0"), t("1")), t("s0 + 1"));
  CHECK_EQ(t.dims.Mul(t("s0"), t.dims.Const(0)), t.dims.Const(0));
  CHECK_EQ(t.dims.FloorDiv(t("s0"), t.dims.Const(1)), t("s0"));
  CHECK_EQ(t.dims.Make(DimKind::kMax, std::array{t("s0"), t("1")}), t("Max(1, s0)"));
  CHECK_EQ(t.dims.Make(DimKind::kAdd, t.dims.operands(t("s0 + s1"))), t("s0 + s1"));
}

TEST_CASE("sizes: a copy keeps ids, spellings and symbols") {
  Table t;
  t.dims.SetSymbol({.name = t.strings.Intern("s0"), .hint = 10});
  const DimId dim = t("s1 + s0 + 0*s2");
  StringTable strings(t.strings);
  DimTable copy(t.dims, strings);
  CHECK_EQ(copy.ToString(dim), "s1 + s0 + 0*s2");
  CHECK_EQ(copy.Parse("s0 + s1").value(), dim);
  CHECK_EQ(copy.Hint(*copy.Parse("s0")), 10);
  CHECK_EQ(copy.symbols().size(), t.dims.symbols().size());
}

}  // namespace
}  // namespace strata
