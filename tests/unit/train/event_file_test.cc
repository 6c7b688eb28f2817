#include "runtime/train/files/event_file.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::TempDir;

TEST_CASE("checksums are those of RFC 3720") {
  CHECK_EQ(Crc32c(""), 0U);
  CHECK_EQ(Crc32c("123456789"), 0xe3069283U);
  CHECK_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  CHECK_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

template <class T>
T ReadAs(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8U;
  return rotated >> 17U | rotated << 15U;
}

/// Splits a TFRecord file and checks its checksums.
std::vector<std::string> Records(std::string_view bytes) {
  std::vector<std::string> records;
  while (!bytes.empty()) {
    REQUIRE_GE(bytes.size(), 16);
    const auto length = static_cast<size_t>(ReadAs<uint64_t>(bytes, 0));
    REQUIRE_GE(bytes.size(), 16 + length);
    CHECK_EQ(Unmask(ReadAs<uint32_t>(bytes, 8)), Crc32c(bytes.substr(0, 8)));
    CHECK_EQ(Unmask(ReadAs<uint32_t>(bytes, 12 + length)), Crc32c(bytes.substr(12, length)));
    records.emplace_back(bytes.substr(12, length));
    bytes.remove_prefix(16 + length);
  }
  return records;
}

TEST_CASE("an event file holds its version, where it begins, and the points, as protocol buffers") {
  const TempDir dir;
  std::string path;
  {
    Result<EventFile> file = EventFile::Create(dir / "a/tb", 300, 1.5);
    REQUIRE_OK(file);
    REQUIRE_OK(file->Add(300, 2.5, {{"loss", 0.5}, {"lr", 2.0}}));
    path = file->path();
  }
  CHECK_NE(path.find("/a/tb/events.out.tfevents.1."), std::string::npos);
  const std::vector<std::string> records = Records(*ReadFile(path));
  REQUIRE_EQ(records.size(), 3);
  // Event: 1 wall_time double, 2 step int64, 3 file_version string, 5 summary, 7 session_log (1
  // status: 1 START). By hand, from event.proto and the encoding's description.
  const auto fixed = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  CHECK_EQ(records[0], "\x09" + fixed(1.5) +
                           "\x1a\x0d"
                           "brain.Event:2");
  // TensorBoard's event_accumulator.py drops points from this step on.
  CHECK_EQ(records[1], "\x09" + fixed(1.5) + "\x10\xac\x02\x3a\x02\x08\x01");
  const std::string loss = "\x0a\x04loss\x15" + fixed(0.5F);
  const std::string lr = "\x0a\x02lr\x15" + fixed(2.0F);
  const std::string summary = "\x0a\x0b" + loss + "\x0a\x09" + lr;
  CHECK_EQ(records[2],
           "\x09" + fixed(2.5) + "\x10\xac\x02\x2a" + static_cast<char>(summary.size()) + summary);
}

TEST_CASE("a folder that cannot be written is told") {
  const TempDir dir;
  REQUIRE_OK(WriteFile(dir / "tb", "a file"));
  const Result<EventFile> file = EventFile::Create(dir / "tb", 1, 1.0);
  REQUIRE_FALSE(file);
  CHECK_EQ(file.error().message(), "cannot make a folder: " + dir.path() +
                                       "/tb: Not a directory; choose another dump_folder");
}

}  // namespace
}  // namespace strata
