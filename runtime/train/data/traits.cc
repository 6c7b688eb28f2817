#include "runtime/train/data/traits.h"

#include <algorithm>
#include <cstdint>
#include <xxhash.h>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

constexpr size_t kSample = size_t{1} << 20U;
constexpr size_t kSamples = 64;

}  // namespace

std::string SampledHash(std::span<const std::byte> bytes) {
  uint64_t hash = 0;
  if (bytes.size() <= kSample * kSamples) {
    hash = XXH3_64bits(bytes.data(), bytes.size());
  } else {
    const size_t last = bytes.size() - kSample;
    for (size_t i = 0; i < kSamples; ++i) {
      const auto begin = static_cast<size_t>(static_cast<double>(last) * static_cast<double>(i) /
                                             static_cast<double>(kSamples - 1));
      hash = XXH3_64bits_withSeed(bytes.data() + std::min(begin, last), kSample, hash);
    }
  }
  return fmt::format("{:016x}", hash);
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
