#include "base/unicode.h"

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("markup characters are escaped") {
  CHECK_EQ(EscapeMarkup("<b a=\"1\" c='2'>&é"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;é");
}

TEST_CASE("invisible characters are written as escapes") {
  CHECK_EQ(Visible("plain äöü 漢字 🎉"), "plain äöü 漢字 🎉");
  CHECK_EQ(Visible("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  CHECK_EQ(Visible("safe\xE2\x80\xAE"
                   "evil"),
           "safe\\u{202e}evil");
  CHECK_EQ(Visible("a\xE2\x80\x8B"
                   "b\xEF\xBB\xBF"),
           "a\\u{200b}b\\u{feff}");
  CHECK_EQ(Visible("\xFF\xC3"), "\\xff\\xc3");
}

TEST_CASE("display width in terminal columns") {
  CHECK_EQ(DisplayWidth(""), 0);
  CHECK_EQ(DisplayWidth("mm_3 → ä"), 8);
  CHECK_EQ(DisplayWidth("漢字"), 4);
  CHECK_EQ(DisplayWidth("e\xCC\x81"), 1);  // a combining accent
  CHECK_EQ(BytesThatFit("abc", 2), 2);
  CHECK_EQ(BytesThatFit("漢字", 3), 3);
  CHECK_EQ(BytesThatFit("漢", 1), 3);
  CHECK_EQ(BytesThatFit("e\xCC\x81x", 1), 3);
}

}  // namespace
}  // namespace strata
