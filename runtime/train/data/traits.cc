#include "runtime/train/data/traits.h"

#include <algorithm>
#include <xxhash.h>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

constexpr size_t kSample = size_t{1} << 20U;
constexpr size_t kSamples = 64;

}  // namespace

std::optional<std::pair<size_t, size_t>> SampledHasher::Next() {
  if (size_ <= kSample * kSamples) {
    if (next_++ > 0) return std::nullopt;
    return std::pair(size_t{0}, size_);
  }
  if (next_ == kSamples) return std::nullopt;
  const size_t last = size_ - kSample;
  const auto begin = static_cast<size_t>(static_cast<double>(last) * static_cast<double>(next_++) /
                                         static_cast<double>(kSamples - 1));
  return std::pair(std::min(begin, last), kSample);
}

void SampledHasher::Add(std::span<const std::byte> piece) {
  hash_ = XXH3_64bits_withSeed(piece.data(), piece.size(), hash_);
}

std::string SampledHasher::Digits() const {
  return fmt::format("{:016x}", hash_);
}

std::string SampledHasher::Content() const {
  return fmt::format("{} bytes with hash {}", size_, Digits());
}

std::string SampledHash(std::span<const std::byte> bytes) {
  SampledHasher hasher(bytes.size());
  while (const auto range = hasher.Next())
    hasher.Add(bytes.subspan(range->first, range->second));
  return hasher.Digits();
}

std::string ContentOf(std::span<const std::byte> bytes) {
  return fmt::format("{} bytes with hash {}", bytes.size(), SampledHash(bytes));
}

Result<std::vector<std::string>> CompareTraits(const std::map<std::string, std::string>& stored,
                                               const std::vector<DataTrait>& traits,
                                               std::string_view where) {
  std::vector<std::string> kept;
  for (const DataTrait& trait : traits) {
    const auto before = stored.find(trait.name);
    if (before == stored.end() || before->second == trait.value) continue;
    const std::string what =
        fmt::format("{} is {}, was {}", trait.name, trait.value, OneLine(before->second));
    if (!trait.keeps_place) {
      return Error(
          "other data than the run's: {}: {}; resume with what it was, or begin the data anew with "
          "checkpoint.exclude_from_loading=dataloader",
          where, what);
    }
    kept.push_back(fmt::format("{}: {}: the data go on where they were", where, what));
  }
  return kept;
}

}  // namespace strata
