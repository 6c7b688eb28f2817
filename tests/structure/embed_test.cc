#include <doctest/doctest.h>

#include "embedded/strata_test_assets.h"

using std::string_view_literals::operator""sv;

TEST_CASE("embedded files keep every byte") {
  CHECK_EQ(strata::assets::kQuotesCss, "a \"q\" ?? \\ \303\251\001\061x\n"sv);
  CHECK_EQ(strata::assets::kTwoBytesBin, "\0\377"sv);
  CHECK_EQ(strata::assets::kEmptyJs, ""sv);
}
