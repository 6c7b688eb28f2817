#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata {

/// Byte-pair encoding (arXiv 1508.07909) over bytes: of all neighbouring pairs that may be merged
/// the one that was learned first is, until none is left.
class BytePairEncoder {
 public:
  /// `vocab`: bytes of each token. `merges` in the order in which they were learned. Errors: a
  /// merge of or into an unknown token.
  static Result<BytePairEncoder> Create(
      std::unordered_map<std::string, int64_t> vocab,
      const std::vector<std::pair<std::string, std::string>>& merges, bool ignore_merges);

  /// Appends the ids of a piece of text. Errors: a byte without a token.
  Status Encode(std::string_view piece, std::vector<int64_t>& ids) const;

 private:
  struct Merge {
    int64_t rank = 0, id = 0;
  };
  struct PairHash {
    size_t operator()(const std::pair<int64_t, int64_t>& pair) const {
      return static_cast<size_t>(pair.first) * 0x9e3779b97f4a7c15U ^
             static_cast<size_t>(pair.second);
    }
  };

  std::unordered_map<std::string, int64_t> vocab_;
  std::unordered_map<std::pair<int64_t, int64_t>, Merge, PairHash> merges_;
  std::vector<int64_t> bytes_;  // id of each byte, -1: none
  bool ignore_merges_ = false;  // a piece that is a token is that token
};

}  // namespace strata
