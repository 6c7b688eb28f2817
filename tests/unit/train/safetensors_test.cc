#include "runtime/files/safetensors.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

/// A file's bytes: length, header, data.
std::string FileOf(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + std::string(header) + std::string(data_bytes, '\1');
}

Result<SafetensorsFile> ParseBytes(const std::string& bytes) {
  return SafetensorsFile::Parse(std::as_bytes(std::span(bytes)), "w");
}

/// What is wrong with a header, without the frame that is equal for all.
std::string Complaint(std::string_view header, size_t data_bytes) {
  const Result<SafetensorsFile> file = ParseBytes(FileOf(header, data_bytes));
  if (file) return "";
  CHECK_EQ(file.error().code(), ErrorCode::kCorrupt);
  const std::string& message = file.error().message();
  const std::string front = "not a safetensors file: w: ";
  const std::string back = "; make the file anew";
  REQUIRE(message.starts_with(front));
  REQUIRE(message.ends_with(back));
  return message.substr(front.size(), message.size() - front.size() - back.size());
}

TEST_CASE("tensors that were written read back") {
  const TempDir dir;
  const std::vector<float> weight = {1.0F, -2.0F, 0.5F, 3.0F, 4.0F, 5.0F};
  const std::vector<int64_t> ids = {7, -1};
  CHECK_OK(WriteSafetensors(
      dir / "w",
      {{"w\"eight\n", TensorDtype::kF32, {2, 3}, std::as_bytes(std::span(weight))},
       {"ids", TensorDtype::kI64, {2}, std::as_bytes(std::span(ids))},
       {"empty", TensorDtype::kBF16, {0, 4}, {}},
       {"scalar", TensorDtype::kF32, {}, std::as_bytes(std::span(weight).first(1))}},
      {{"step", "20"}}));

  const Result<SafetensorsFile> file = SafetensorsFile::Open(dir / "w");
  REQUIRE_OK(file);
  CHECK_EQ(file->path(), dir / "w");
  std::string listing;
  for (const TensorView& tensor : file->tensors()) {
    listing += tensor.name + " " + DescribeType(tensor.dtype, tensor.shape) + "; ";
  }
  CHECK_EQ(listing, "empty BF16 [0, 4]; ids I64 [2]; scalar F32 []; w\"eight\n F32 [2, 3]; ");
  CHECK_EQ(file->metadata(), std::map<std::string, std::string>{{"step", "20"}});

  const TensorView* found = file->Find("w\"eight\n");
  REQUIRE(found != nullptr);
  std::vector<float> values(6);
  REQUIRE_EQ(found->bytes.size(), 24);
  std::memcpy(values.data(), found->bytes.data(), 24);
  CHECK_EQ(values, weight);
  CHECK(file->Find("weight") == nullptr);
}

TEST_CASE("the written bytes are sorted by name, with data at a multiple of 8") {
  const TempDir dir;
  const std::vector<uint8_t> b = {1, 2, 3};
  const std::vector<uint8_t> a = {9};
  CHECK_OK(
      WriteSafetensors(dir / "w", {{"b", TensorDtype::kU8, {3}, std::as_bytes(std::span(b))},
                                   {"a", TensorDtype::kU8, {1}, std::as_bytes(std::span(a))}}));
  const std::string header = R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, )"
                             R"("b": {"dtype": "U8", "shape": [3], "data_offsets": [1, 4]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  std::string expected = FileOf(header + padding, 0) + "\x09\x01\x02\x03";
  CHECK_EQ(*ReadFile(dir / "w"), expected);
}

TEST_CASE("views survive a move of the file") {
  const TempDir dir;
  const std::vector<uint8_t> data = {42};
  CHECK_OK(
      WriteSafetensors(dir / "w", {{"x", TensorDtype::kU8, {1}, std::as_bytes(std::span(data))}}));
  Result<SafetensorsFile> file = SafetensorsFile::Open(dir / "w");
  REQUIRE_OK(file);
  const SafetensorsFile moved = *std::move(file);
  CHECK_EQ(moved.Find("x")->bytes[0], std::byte{42});
}

TEST_CASE("a file without tensors is fine") {
  CHECK_EQ(Complaint("{}", 0), "");
  CHECK_EQ(Complaint("{ }  ", 3), "");
}

TEST_CASE("a file that is cut short is told") {
  CHECK_EQ(MessageOf(ParseBytes("1234567")),
           "not a safetensors file: w: it is shorter than 8 bytes; make the file anew");
  std::string bytes = FileOf("{}", 0);
  bytes.pop_back();
  CHECK_EQ(MessageOf(ParseBytes(bytes)),
           "not a safetensors file: w: its header has 2 bytes, the file 9; make the file anew");
  CHECK_EQ(MessageOf(ParseBytes(std::string(8, '\xff'))),
           "not a safetensors file: w: its header has 18446744073709551615 bytes, the file 8; make "
           "the file anew");
}

TEST_CASE("a header that is no JSON object is told") {
  CHECK(Complaint("", 0).starts_with("header is not a JSON object ("));
  CHECK(Complaint("[]", 0).starts_with("header is not a JSON object ("));
  CHECK(Complaint("{} {}", 0).starts_with("header is not a JSON object ("));
  CHECK(Complaint("{\"a\xff\": 1}", 0).starts_with("header is not a JSON object ("));
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += R"({"a":)";
  CHECK(Complaint(deep, 0).starts_with("header is not a JSON object ("));
}

TEST_CASE("an entry that is no tensor is told") {
  CHECK_EQ(Complaint(R"({"a": 1})", 0), "entry 'a' is not a JSON object");
  CHECK_EQ(Complaint(R"({"__metadata__": []})", 0), "entry '__metadata__' is not a JSON object");
  CHECK_EQ(Complaint(R"({"__metadata__": {"a": 1}})", 0), "metadata 'a' is not a string");
  CHECK_EQ(Complaint(R"({"a": {"shape": [1], "data_offsets": [0, 1]}})", 1),
           "tensor 'a' lacks dtype, shape or two data_offsets");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "U8", "data_offsets": [0, 1]}})", 1),
           "tensor 'a' lacks dtype, shape or two data_offsets");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}})", 1),
           "tensor 'a' lacks dtype, shape or two data_offsets");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "U8", "shape": [1], "offset": 3}})", 1),
           "tensor 'a' has an unknown field 'offset'");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 1]}})", 1),
           "tensor 'a' has an unknown dtype 'F99'");
}

TEST_CASE("sizes must be integers of at least 0") {
  for (const char* shape : {"[-1]", "[1.5]", "[\"1\"]", "[18446744073709551615]", "3", "null"}) {
    CAPTURE(shape);
    CHECK_EQ(Complaint(fmt::format(R"({{"a": {{"dtype": "U8", "shape": {}}}}})", shape), 1),
             "shape of tensor 'a' is not a list of sizes");
  }
  CHECK_EQ(Complaint(R"({"a": {"data_offsets": [-1, 2]}})", 1),
           "data_offsets of tensor 'a' is not a list of sizes");
}

TEST_CASE("a tensor's bytes must lie in the file and fit its shape") {
  CHECK_EQ(Complaint(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 7),
           "tensor 'a' lies at bytes 0 to 8 of 7");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", 8),
           "tensor 'a' lies at bytes 8 to 0 of 8");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", 8),
           "tensor 'a' is F32 [3] but has 8 bytes");
  // 2^32 · 2^32 elements: the product wraps around to 0.
  CHECK_EQ(
      Complaint(
          R"({"a": {"dtype": "U8", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})",
          0),
      "tensor 'a' is U8 [4294967296, 4294967296] but has 0 bytes");
}

TEST_CASE("two tensors have different names and bytes") {
  CHECK_EQ(Complaint(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                         "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
                     2),
           "tensor 'a' is there twice");
  CHECK_EQ(Complaint(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]},
                         "b": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
                     3),
           "tensors 'b' and 'a' share bytes");
}

TEST_CASE("a missing file and a folder are errors, and a failed output leaves nothing") {
  const TempDir dir;
  CHECK_EQ(MessageOf(SafetensorsFile::Open(dir / "w")),
           "no such file: " + dir / "w" + ": check the path");
  CHECK_EQ(MessageOf(SafetensorsFile::Open(dir.path())),
           "is a directory: " + dir.path() + ": give a file");
  CHECK_EQ(MessageOf(WriteSafetensors("/dev/full", {})),
           "disk full: /dev/full: free some space or write to another disk");
}

}  // namespace
}  // namespace strata
