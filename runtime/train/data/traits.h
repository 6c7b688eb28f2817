#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata {

/// Something that decides which batches a source gives in which order.
struct DataTrait {
  std::string name;  ///< `dataloader.seed`
  std::string value;
  /// Whether a place in the data means the same with another value: what follows it is what would
  /// have followed, in batches of another size.
  bool keeps_place = false;
};

/// Hashes bytes of a known number; of more than 64 MiB, samples all over them. `Next` names the
/// pieces that `Add` takes, in order.
class SampledHasher {
 public:
  explicit SampledHasher(size_t size) : size_(size) {}
  /// Offset and size of the next piece; nothing after the last.
  std::optional<std::pair<size_t, size_t>> Next();
  void Add(std::span<const std::byte> piece);
  /// 16 hexadecimal digits.
  std::string Digits() const;
  /// `SIZE bytes with hash DIGITS`.
  std::string Content() const;

 private:
  size_t size_;
  size_t next_ = 0;  // piece
  uint64_t hash_ = 0;
};

/// A hash of bytes; of more than 64 MiB, of samples all over them.
std::string SampledHash(std::span<const std::byte> bytes);
/// Of a file: size and SampledHash.
std::string ContentOf(std::span<const std::byte> bytes);

/// Compares the traits of a source with those of a checkpoint in `where`, by their
/// names; what one of them lacks is not compared. Returns a sentence for each that differs and
/// keeps its place. Errors: one that differs and does not.
Result<std::vector<std::string>> CompareTraits(const std::map<std::string, std::string>& stored,
                                               const std::vector<DataTrait>& traits,
                                               std::string_view where);

}  // namespace strata
