#include "tlparse-export/torch_trace/read/decompress.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <zstd.h>

#include "tests/support/results.h"

namespace strata {
namespace {

std::string Zstd(std::string_view content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 3));
  return out;
}

// printf abc | gzip --no-name
constexpr std::string_view kGzip(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4a\x06\x00\xc2\x41\x24\x35\x03\x00\x00\x00",
    23);

TEST_CASE("decompress: gzip and zstd are recognized by content, other bytes stay unchanged") {
  CHECK_EQ(*Decompress("plain", "f"), "plain");
  CHECK_EQ(*Decompress("", "f"), "");
  CHECK_EQ(*Decompress(std::string(kGzip), "f"), "abc");
  CHECK_EQ(*Decompress(Zstd("abc"), "f"), "abc");
  CHECK_EQ(*Decompress(Zstd(""), "f"), "");
}

TEST_CASE("decompress: concatenated streams are one content") {
  CHECK_EQ(*Decompress(std::string(kGzip) + std::string(kGzip), "f"), "abcabc");
  CHECK_EQ(*Decompress(Zstd("abc") + Zstd("def"), "f"), "abcdef");
}

TEST_CASE("decompress: large contents, at and around the size of a piece") {
  for (const size_t size :
       {(size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{5} << 20}) {
    const std::string content(size, 'x');
    CHECK(*Decompress(Zstd(content), "f") == content);
  }
}

TEST_CASE("decompress: truncated or changed data is an error") {
  const std::string what = "damaged: f: the compressed data is cut or changed";
  const std::string zstd = Zstd(std::string(1000, 'x'));
  for (const std::string& good : {std::string(kGzip), zstd}) {
    for (size_t size = 4; size < good.size(); ++size)
      CHECK_EQ(testing::MessageOf(Decompress(good.substr(0, size), "f")), what);
    CHECK_EQ(testing::MessageOf(Decompress(good + "junk", "f")), what);
  }
}

}  // namespace
}  // namespace strata
