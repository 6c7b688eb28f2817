#include "base/slim_vector.h"

#include <algorithm>
#include <array>
#include <cstdint>
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

TEST_CASE("SlimVector: a single index is inside, and moves out when others follow") {
  SlimVector<int32_t> numbers;
  CHECK_EQ(sizeof numbers, sizeof(void*));
  CHECK(numbers.empty());
  numbers.push_back(-7);
  const auto* const begin = reinterpret_cast<const char*>(numbers.data());
  const auto* const own = reinterpret_cast<const char*>(&numbers);
  CHECK((begin >= own && begin < own + sizeof numbers));
  SlimVector<int32_t> copy = numbers, moved = std::move(numbers);
  CHECK(numbers.empty());  // NOLINT: a moved one is empty
  for (SlimVector<int32_t>* one : {&copy, &moved}) {
    REQUIRE_EQ(one->size(), 1);
    CHECK_EQ(one->front(), -7);
    for (const int32_t next : {8, 9, 10})
      one->push_back(next);
    CHECK(std::ranges::equal(*one, std::array{-7, 8, 9, 10}));
  }
  copy = moved;
  copy.erase(copy.begin(), copy.begin() + 3);
  CHECK(std::ranges::equal(copy, std::array{10}));
  SlimVector<int32_t> single;
  const std::array one{11};
  single.Append(one.data(), one.data() + 1);
  std::swap(single, copy);
  CHECK(std::ranges::equal(copy, one));
  EraseIf(copy, [](int32_t number) { return number == 11; });
  CHECK(copy.empty());
  copy.push_back(12);
  copy.clear();
  CHECK(copy.empty());
  CHECK_EQ(copy.begin(), copy.end());
}

}  // namespace
}  // namespace strata
