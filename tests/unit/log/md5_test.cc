#include "tlparse-export/torch_trace/read/md5.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("md5: the test suite of RFC 1321") {
  CHECK_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  CHECK_EQ(Md5Hex("a"), "0cc175b9c0f1b6a831c399e269772661");
  CHECK_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  CHECK_EQ(Md5Hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK_EQ(Md5Hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  CHECK_EQ(Md5Hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
           "d174ab98d277d9f5a5611c2c9f419d9f");
  CHECK_EQ(Md5Hex("1234567890123456789012345678901234567890"
                  "1234567890123456789012345678901234567890"),
           "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_CASE("md5: lengths around block boundaries") {
  // Python: hashlib.md5(b"x" * n).hexdigest()
  CHECK_EQ(Md5Hex(std::string(55, 'x')), "04364420e25c512fd958a70738aa8f72");
  CHECK_EQ(Md5Hex(std::string(56, 'x')), "668a72d5ba17f08e62dabcafad6db14b");
  CHECK_EQ(Md5Hex(std::string(63, 'x')), "7dc2ca208106a2f703567bdff99d8981");
  CHECK_EQ(Md5Hex(std::string(64, 'x')), "c1bb4f81d892b2d57947682aeb252456");
  CHECK_EQ(Md5Hex(std::string(65, 'x')), "1bc932052302d074bdec39795fe00cf6");
  CHECK_EQ(Md5Hex(std::string(1000, 'x')), "398533d48111e9f664b1f64cb10c4b63");
}

TEST_CASE("md5: many texts at once") {
  // Of all lengths around block boundaries, so that lanes end at different times.
  std::vector<std::string> texts;
  for (size_t n = 0; n < 300; ++n) {
    std::string& text = texts.emplace_back();
    for (size_t i = 0; i < n * 37 % 300; ++i)
      text += static_cast<char>('a' + (n + i * i) % 26);
  }
  texts.push_back(std::string(100'000, 'x'));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{2}, size_t{9}, size_t{17}, views.size()}) {
    const std::span some = std::span(views).last(count);
    const std::vector<std::string> sums = Md5HexOfAll(some);
    REQUIRE_EQ(sums.size(), count);
    for (size_t i = 0; i < count; ++i)
      CHECK_EQ(sums[i], Md5Hex(some[i]));
  }
}

}  // namespace
}  // namespace strata
