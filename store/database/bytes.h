#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

/// Appends the primitive encodings of the trace format to a string: LEB128 varints, zigzag for
/// signed numbers, little-endian fixed words.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void Byte(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }
  void Signed(int64_t value) {
    Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void Fixed64(uint64_t value) {
    char bytes[8];
    for (int i = 0; i < 8; ++i)
      bytes[i] = static_cast<char>(value >> (8 * i));
    out_.append(bytes, sizeof(bytes));
  }
  void Double(double value) { Fixed64(std::bit_cast<uint64_t>(value)); }
  /// Length, then bytes.
  void Sized(std::string_view bytes) {
    Varint(bytes.size());
    out_.append(bytes);
  }

 private:
  std::string& out_;
};

/// Reads what ByteWriter wrote. Reading beyond the end or a number that does not fit makes the
/// reader fail: it gives zeros from then on, and `ok()` is false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  /// All was read and nothing was wrong.
  bool AtEnd() const { return ok_ && position_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - position_; }
  size_t position() const { return position_; }

  uint8_t Byte() {
    if (position_ == bytes_.size()) return Fail();
    return static_cast<uint8_t>(bytes_[position_++]);
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      if (shift == 63 && byte > 1) return Fail();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Fail();
  }
  int64_t Signed() {
    const uint64_t value = Varint();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  /// A varint of at most `limit`.
  uint64_t Bounded(uint64_t limit) {
    const uint64_t value = Varint();
    return value <= limit ? value : Fail();
  }
  int32_t Int32() {
    const int64_t value = Signed();
    return value == static_cast<int32_t>(value) ? static_cast<int32_t>(value) : Fail();
  }
  /// A number of things of at least one byte each.
  size_t Count() {
    const uint64_t value = Varint();
    return value <= left() ? value : Fail();
  }
  uint64_t Fixed64() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value |= static_cast<uint64_t>(Byte()) << (8 * i);
    return value;
  }
  double Double() { return std::bit_cast<double>(Fixed64()); }
  std::string_view Sized() {
    const size_t size = Count();
    const std::string_view bytes = bytes_.substr(position_, size);
    position_ += size;
    return bytes;
  }
  /// Marks what was read as wrong; gives 0.
  uint8_t Fail() {
    ok_ = false;
    position_ = bytes_.size();
    return 0;
  }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace strata
