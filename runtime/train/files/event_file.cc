#include "runtime/train/files/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

namespace strata {
namespace {

/// Fields of protocol buffers by their numbers; the few wire types that events need.
class Message {
 public:
  Message& Varint(uint32_t field, uint64_t value) {
    Key(field, 0);
    AppendVarint(value);
    return *this;
  }
  Message& Double(uint32_t field, double value) {
    Key(field, 1);
    AppendFixed(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  Message& Float(uint32_t field, float value) {
    Key(field, 5);
    AppendFixed(std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  Message& Bytes(uint32_t field, std::string_view bytes) {
    Key(field, 2);
    AppendVarint(bytes.size());
    text_ += bytes;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void Key(uint32_t field, uint32_t wire_type) { AppendVarint(field << 3U | wire_type); }
  void AppendVarint(uint64_t value) {
    for (; value >= 0x80U; value >>= 7U)
      text_ += static_cast<char>(value | 0x80U);
    text_ += static_cast<char>(value);
  }
  void AppendFixed(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      text_ += static_cast<char>(value >> (8 * i));
  }

  std::string text_;
};

// Field numbers of tensorflow.Event, tensorflow.Summary and tensorflow.SessionLog.
constexpr uint32_t kWallTime = 1;
constexpr uint32_t kStep = 2;
constexpr uint32_t kFileVersion = 3;
constexpr uint32_t kSummary = 5;
constexpr uint32_t kSessionLog = 7;
constexpr uint32_t kStatus = 1;
constexpr uint64_t kStart = 1;
constexpr uint32_t kValue = 1;
constexpr uint32_t kTag = 1;
constexpr uint32_t kSimpleValue = 2;

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}

/// The format stores checksums of data that hold checksums themselves, so it mixes them.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15U | crc << 17U) + 0xa282ead8U;
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = MakeCrcTable();
  uint32_t crc = 0xffffffffU;
  for (const char c : bytes)
    crc = crc >> 8U ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xffU];
  return ~crc;
}

std::string FormatTfRecord(std::string_view data) {
  const auto little_endian = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i)
      text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const std::string length = little_endian(data.size(), 8);
  std::string record = length + little_endian(MaskedCrc(length), 4);
  record += data;
  return record + little_endian(MaskedCrc(data), 4);
}

Result<EventFile> EventFile::Create(const std::string& folder, int64_t first_step, double seconds) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored)) {
    return Error(ErrorCode::kIo, "cannot make a folder: {}: {}; choose another dump_folder", folder,
                 error ? error.message() : "a file has this name");
  }
  EventFile file;
  file.path_ = fmt::format("{}/events.out.tfevents.{}.{}.{}.0", folder,
                           static_cast<int64_t>(seconds), HostName(), ::getpid());
  file.descriptor_ =
      ::open(file.path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (file.descriptor_ < 0) {
    return Error(ErrorCode::kIo, "cannot write: {}: {}; choose another dump_folder", file.path_,
                 std::strerror(errno));
  }
  Message version;
  version.Double(kWallTime, seconds).Bytes(kFileVersion, "brain.Event:2");
  STRATA_RETURN_IF_ERROR(file.Append(FormatTfRecord(version.text())));
  Message session, start;
  session.Varint(kStatus, kStart);
  start.Double(kWallTime, seconds)
      .Varint(kStep, static_cast<uint64_t>(first_step))
      .Bytes(kSessionLog, session.text());
  STRATA_RETURN_IF_ERROR(file.Append(FormatTfRecord(start.text())));
  return file;
}

EventFile::EventFile(EventFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

EventFile& EventFile::operator=(EventFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status EventFile::Add(int64_t step, double seconds,
                      const std::vector<std::pair<std::string_view, double>>& scalars) {
  Message summary;
  for (const auto& [tag, scalar] : scalars) {
    Message value;
    value.Bytes(kTag, tag).Float(kSimpleValue, static_cast<float>(scalar));
    summary.Bytes(kValue, value.text());
  }
  Message event;
  event.Double(kWallTime, seconds)
      .Varint(kStep, static_cast<uint64_t>(step))
      .Bytes(kSummary, summary.text());
  return Append(FormatTfRecord(event.text()));
}

Status EventFile::Append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return Error(ErrorCode::kIo,
                   "cannot write: {}: {}; make room, or take "
                   "metrics.enable_tensorboard = false",
                   path_, std::strerror(errno));
    }
    record.remove_prefix(static_cast<size_t>(written));
  }
  return Ok();
}

}  // namespace strata
