#include "base/slim_vector.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

namespace strata {
namespace {

using Texts = SlimVector<std::string>;

Texts Numbers(int count) {
  Texts texts;
  for (int i = 0; i < count; ++i)
    texts.push_back("a text that is not kept in place " + std::to_string(i));
  return texts;
}

std::string Last(const Texts& texts) {
  return texts.empty() ? "" : texts.back().substr(texts.back().rfind(' ') + 1);
}

TEST_CASE("SlimVector: has the size of a pointer, and elements in order") {
  static_assert(sizeof(Texts) == sizeof(void*));
  const Texts none;
  CHECK(none.empty());
  CHECK(none.begin() == none.end());
  const Texts texts = Numbers(1000);
  REQUIRE_EQ(texts.size(), 1000);
  int i = 0;
  for (const std::string& text : texts)
    CHECK_EQ(text, "a text that is not kept in place " + std::to_string(i++));
}

TEST_CASE("SlimVector: a copy has elements of its own, a move leaves none") {
  Texts texts = Numbers(3), copy = texts;
  copy[2] = "other 7";
  CHECK_EQ(Last(texts), "2");
  CHECK_EQ(Last(copy), "7");
  const Texts moved = std::move(texts);
  CHECK_EQ(moved.size(), 3);
  texts = copy;
  CHECK_EQ(Last(texts), "7");
  texts = Texts();
  CHECK(texts.empty());
}

TEST_CASE("SlimVector: elements are appended in one piece, with room made before or not") {
  const Texts source = Numbers(5);
  Texts texts;
  texts.Append(source.begin(), source.begin());
  CHECK(texts.empty());
  texts.MakeRoom(7);
  texts.Append(source.begin(), source.end());
  texts.Append(source.begin(), source.begin() + 4);
  CHECK_EQ(texts.size(), 9);
  CHECK_EQ(Last(texts), "3");
}

TEST_CASE("SlimVector: what is erased is gone, the rest moves up") {
  Texts texts = Numbers(6);
  EraseIf(texts, [](const std::string& text) { return text.back() == '1' || text.back() == '5'; });
  CHECK_EQ(texts.size(), 4);
  CHECK_EQ(texts[1].back(), '2');
  CHECK_EQ(Last(texts), "4");
  texts.clear();
  CHECK(texts.empty());
  texts.push_back("again 9");
  CHECK_EQ(Last(texts), "9");
}

}  // namespace
}  // namespace strata
