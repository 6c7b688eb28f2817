#include "ir/strings.h"

#include <algorithm>
#include <xxhash.h>

namespace strata {
namespace {

constexpr size_t kInitialSlots = 256;

uint32_t HashOf(std::string_view text) {
  return static_cast<uint32_t>(XXH3_64bits(text.data(), text.size()));
}

}  // namespace

StringTable::StringTable() : slots_(kInitialSlots, -1) {}

size_t StringTable::SlotOf(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const int32_t index = slots_[slot];
    if (index < 0) return slot;
    const auto i = static_cast<size_t>(index);
    if (hashes_[i] == hash && TextAt(places_[i]) == text) return slot;
  }
}

void StringTable::Grow() {
  slots_.assign(slots_.size() * 2, -1);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    size_t slot = hashes_[i] & mask;
    while (slots_[slot] >= 0)
      slot = (slot + 1) & mask;
    slots_[slot] = static_cast<int32_t>(i);
  }
}

uint32_t StringTable::Store(std::string_view text) {
  const size_t size = text.size();
  const bool is_long = size >= kLong;
  const uint32_t place = chars_.AddRow(1 + (is_long ? sizeof size : 0) + size);
  char* at = &chars_[place];
  *at++ = static_cast<char>(is_long ? kLong : size);
  if (is_long) {
    std::memcpy(at, &size, sizeof size);
    at += sizeof size;
  }
  std::ranges::copy(text, at);
  return place;
}

StrId StringTable::Intern(std::string_view text) {
  return Intern(text, HashOf(text));
}

StrId StringTable::Intern(std::string_view text, uint32_t hash) {
  size_t slot = SlotOf(text, hash);
  if (slots_[slot] >= 0) return {slots_[slot]};
  if (2 * (size() + 1) > slots_.size()) {
    Grow();
    slot = SlotOf(text, hash);
  }
  const auto index = static_cast<int32_t>(size());
  places_.push_back(Store(text));
  hashes_.push_back(hash);
  slots_[slot] = index;
  return {index};
}

StrId StringTable::Find(std::string_view text) const {
  return {slots_[SlotOf(text, HashOf(text))]};
}

}  // namespace strata
