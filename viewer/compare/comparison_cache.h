#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// Comparisons that were shown or made ahead, by what names them. Those used last stay, as long as
/// all together have few enough nodes.
class ComparisonCache {
 public:
  /// A comparison of 100,000 nodes takes about 60 MB.
  static constexpr int64_t kMostNodes = 320'000;

  explicit ComparisonCache(int64_t most_nodes = kMostNodes) : most_nodes_(most_nodes) {}

  /// Null: it is not there. What is found counts as used.
  std::shared_ptr<const Comparison> Find(const std::string& key);
  /// The same, without counting as used.
  std::shared_ptr<const Comparison> Peek(const std::string& key) const;
  /// Returns what has to go for it. One that is too large is not kept.
  std::vector<std::shared_ptr<const Comparison>> Put(std::string key,
                                                     std::shared_ptr<const Comparison> comparison);
  /// Returns all.
  std::vector<std::shared_ptr<const Comparison>> Clear();
  size_t size() const { return kept_.size(); }

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const Comparison>>;
  const int64_t most_nodes_;
  std::deque<Entry> kept_;  // used last first
};

}  // namespace strata::viewer
