#include "diff/model/field_diffs.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace strata {
namespace {

/// The sizes of the texts that follow it: a byte each where all are short, as nearly always.
struct Head {
  static constexpr uint32_t kNone = UINT32_MAX;
  std::array<uint32_t, 3> sizes{};  ///< of path, before and after
  bool derived = false;

  static uint32_t SizeOf(const std::optional<std::string_view>& text) {
    return text ? static_cast<uint32_t>(text->size()) : kNone;
  }

  bool is_long() const {
    return std::ranges::any_of(sizes,
                               [](uint32_t size) { return size != kNone && size >= kNoText; });
  }
  size_t NumBytes() const { return 1 + sizes.size() * (is_long() ? sizeof(uint32_t) : 1); }
  size_t NumBytesOfTexts() const {
    size_t bytes = 0;
    for (const uint32_t size : sizes)
      bytes += size == kNone ? 0 : size;
    return bytes;
  }

  void AppendTo(SlimVector<char>& bytes) const {
    const auto append = [&](const auto& value) {
      const auto* const begin = reinterpret_cast<const char*>(&value);
      bytes.Append(begin, begin + sizeof value);
    };
    append(static_cast<uint8_t>((derived ? kDerived : 0) | (is_long() ? kLong : 0)));
    for (const uint32_t size : sizes) {
      if (is_long()) {
        append(size);
      } else {
        append(size == kNone ? kNoText : static_cast<uint8_t>(size));
      }
    }
  }

  /// Not aligned: texts stand before it.
  static Head At(const char* at) {
    const auto take = [&](auto& value) {
      std::memcpy(&value, at, sizeof value);
      at += sizeof value;
    };
    uint8_t flags = 0;
    take(flags);
    Head head{.derived = (flags & kDerived) != 0};
    for (uint32_t& size : head.sizes) {
      if ((flags & kLong) != 0) {
        take(size);
        continue;
      }
      uint8_t small = 0;
      take(small);
      size = small == kNoText ? kNone : small;
    }
    return head;
  }

 private:
  static constexpr uint8_t kDerived = 1, kLong = 2;  // flags
  static constexpr uint8_t kNoText = 255;            // kNone as a byte
};

}  // namespace

FieldDiff FieldDiffs::Iterator::operator*() const {
  const Head head = Head::At(at_);
  const char* text = at_ + head.NumBytes();
  const auto next = [&](uint32_t size) -> std::optional<std::string_view> {
    if (size == Head::kNone) return std::nullopt;
    const std::string_view view(text, size);
    text += size;
    return view;
  };
  FieldDiff field;
  field.path = *next(head.sizes[0]);
  field.before = next(head.sizes[1]);
  field.after = next(head.sizes[2]);
  field.derived = head.derived;
  return field;
}

FieldDiffs::Iterator& FieldDiffs::Iterator::operator++() {
  const Head head = Head::At(at_);
  at_ += head.NumBytes() + head.NumBytesOfTexts();
  return *this;
}

void FieldDiffs::Add(const FieldDiff& field) {
  const Head head{{static_cast<uint32_t>(field.path.size()), Head::SizeOf(field.before),
                   Head::SizeOf(field.after)},
                  field.derived};
  bytes_.MakeRoom(head.NumBytes() + head.NumBytesOfTexts());
  head.AppendTo(bytes_);
  const auto append = [&](std::string_view text) {
    bytes_.Append(text.data(), text.data() + text.size());
  };
  append(field.path);
  append(field.before.value_or(""));
  append(field.after.value_or(""));
}

}  // namespace strata
