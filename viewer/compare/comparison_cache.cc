#include "viewer/compare/comparison_cache.h"

#include <algorithm>

namespace strata::viewer {

std::shared_ptr<const Comparison> ComparisonCache::Find(const std::string& key) {
  const auto found = std::ranges::find(kept_, key, &Entry::first);
  if (found == kept_.end()) return nullptr;
  std::rotate(kept_.begin(), found, found + 1);
  return kept_.front().second;
}

std::shared_ptr<const Comparison> ComparisonCache::Peek(const std::string& key) const {
  const auto found = std::ranges::find(kept_, key, &Entry::first);
  return found == kept_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const Comparison>> ComparisonCache::Put(
    std::string key, std::shared_ptr<const Comparison> comparison) {
  std::vector<std::shared_ptr<const Comparison>> gone;
  std::erase_if(kept_, [&](Entry& entry) {
    const bool replaced = entry.first == key;
    if (replaced) gone.push_back(std::move(entry.second));
    return replaced;
  });
  kept_.emplace_front(std::move(key), std::move(comparison));
  int64_t nodes = 0;
  size_t fit = 0;
  while (fit < kept_.size() && (nodes += kept_[fit].second->size()) <= most_nodes_)
    ++fit;
  while (kept_.size() > fit) {
    gone.push_back(std::move(kept_.back().second));
    kept_.pop_back();
  }
  return gone;
}

std::vector<std::shared_ptr<const Comparison>> ComparisonCache::Clear() {
  std::vector<std::shared_ptr<const Comparison>> gone;
  for (Entry& entry : kept_)
    gone.push_back(std::move(entry.second));
  kept_.clear();
  return gone;
}

}  // namespace strata::viewer
