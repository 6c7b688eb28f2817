#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "diff/match/matching.h"
#include "diff/model/graph_diff.h"
#include "diff/pattern/hunk_items.h"
#include "diff/pattern/hunk_places.h"

namespace strata {

/// The keys of hunks (see FindHunks), and with them their places.
class HunkKeys {
 public:
  /// REQUIRES: all outlive this.
  HunkKeys(const Matching& matching, const GraphDiff& diff, const HunkItems& items,
           const HunkPlaces& places)
      : matching_(matching), diff_(diff), items_(items), places_(places) {}

  AllHunkFacts Compute(const HunkMembers& hunks);

 private:
  uint64_t Signature(const HunkItem& item);
  uint64_t SignatureOfNode(Side side, EntityId id) const;
  uint64_t HashOfText(Side side, std::string_view path, std::string_view text);
  bool IsName(Side side, std::string_view text);
  uint64_t Widened(size_t member, bool consumers) const;

  const Matching& matching_;
  const GraphDiff& diff_;
  const HunkItems& items_;
  const HunkPlaces& places_;
  std::vector<uint64_t> hashes_;                          // by item
  std::array<std::unordered_set<std::string>, 2> names_;  // empty: not needed so far
};

}  // namespace strata
