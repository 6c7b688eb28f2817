#include "ir/strings.h"

#include <algorithm>
#include <cstring>
#include <xxhash.h>

namespace strata {
namespace {

constexpr size_t kInitialSlots = 256;
constexpr size_t kBlockBytes = 64 * 1024;

}  // namespace

StringTable::StringTable() : slots_(kInitialSlots, -1) {}

StringTable::StringTable(const StringTable& other) : StringTable() {
  for (std::string_view text : other.texts_)
    Intern(text);
}

size_t StringTable::SlotOf(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const int32_t index = slots_[slot];
    if (index < 0) return slot;
    const auto i = static_cast<size_t>(index);
    if (hashes_[i] == hash && texts_[i] == text) return slot;
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

std::string_view StringTable::Store(std::string_view text) {
  if (blocks_.empty() || block_used_ + text.size() > block_size_) {
    block_size_ = std::max(kBlockBytes, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_size_));
    block_used_ = 0;
  }
  char* place = blocks_.back().get() + block_used_;
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  block_used_ += text.size();
  return {place, text.size()};
}

StrId StringTable::Intern(std::string_view text) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  size_t slot = SlotOf(text, hash);
  if (slots_[slot] >= 0) return {slots_[slot]};
  if (2 * (texts_.size() + 1) > slots_.size()) {
    Grow();
    slot = SlotOf(text, hash);
  }
  const auto index = static_cast<int32_t>(texts_.size());
  texts_.push_back(Store(text));
  hashes_.push_back(hash);
  slots_[slot] = index;
  return {index};
}

StrId StringTable::Find(std::string_view text) const {
  return {slots_[SlotOf(text, XXH3_64bits(text.data(), text.size()))]};
}

}  // namespace strata
