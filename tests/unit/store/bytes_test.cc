#include "store/database/bytes.h"

#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("a length that includes itself makes the reader fail") {
  const std::string bytes = "\x01";
  ByteReader in(bytes);
  CHECK_EQ(in.Sized(), "");
  CHECK(!in.ok());
  CHECK_EQ(in.left(), 0);
}

TEST_CASE("numbers and texts read back unchanged") {
  std::string bytes;
  ByteWriter out(bytes);
  out.Varint(300);
  out.Sized("abc");
  out.Double(-0.5);
  ByteReader in(bytes);
  CHECK_EQ(in.Varint(), 300);
  CHECK_EQ(in.Sized(), "abc");
  CHECK_EQ(in.Double(), -0.5);
  CHECK(in.AtEnd());
}

}  // namespace
}  // namespace strata
