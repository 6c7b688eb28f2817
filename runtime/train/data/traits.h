#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
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
