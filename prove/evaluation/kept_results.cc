#include "prove/evaluation/kept_results.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "prove/evaluation/evaluator.h"
#include "prove/values/compare.h"

namespace strata::prove {
namespace {

/// Of what equals the value; none: anything does, or an element of it equals any other.
std::optional<uint64_t> HashOf(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return static_cast<uint64_t>(*number);
  const auto* tensor = std::get_if<Tensor>(&value);
  return tensor == nullptr ? std::nullopt : std::optional(ContentHash(*tensor));
}

bool HasUndefined(const Value& value) {
  const auto* tensor = std::get_if<Tensor>(&value);
  if (tensor == nullptr || tensor->domain() == Domain::kInteger) return false;
  return std::ranges::any_of(tensor->Read(), [](uint64_t word) { return word == kUndefined; });
}

/// The first rank that has result `i` in the same memory.
size_t FirstWith(std::span<const Values> results, size_t rank, size_t i) {
  size_t first = 0;
  while (first < rank && !IsSameMemory(results[first][i], results[rank][i]))
    ++first;
  return first;
}

}  // namespace

void KeptResults::Clear() {
  by_id_.clear();
  counted_.clear();
  words_ = 0;
}

void KeptResults::Keep(NodeId node, std::span<const Values> results) {
  Results& kept = by_id_[graph_.node(node).stable_id];
  kept = {.node = node, .values = {}, .hashes = {}};
  size_t words = 0;
  bool is_undefined = false;
  for (const Values& values : results) {
    for (const Value& value : values) {
      const auto* tensor = std::get_if<Tensor>(&value);
      const bool is_new = tensor != nullptr && !counted_.contains(tensor->storage().get());
      if (is_new) words += tensor->storage()->words.size();
    }
  }
  const bool fits = words_ + words <= max_words_;
  for (size_t rank = 0; rank < results.size() && !fits && !is_undefined; ++rank) {
    std::vector<std::optional<uint64_t>>& hashes = kept.hashes.emplace_back();
    for (size_t i = 0; i < results[rank].size(); ++i) {
      const size_t first = FirstWith(results, rank, i);
      is_undefined = is_undefined || (first == rank && HasUndefined(results[rank][i]));
      hashes.push_back(first < rank ? kept.hashes[first][i] : HashOf(results[rank][i]));
    }
  }
  if (!fits && !is_undefined) return;
  kept.hashes.clear();
  words_ += words;
  for (const Values& values : results) {
    Values& own = kept.values.emplace_back();
    for (const Value& value : values) {
      own.push_back(shared_.IsWritten(node) ? CopyOf(value) : value);
      if (const auto* tensor = std::get_if<Tensor>(&own.back()))
        counted_.insert(tensor->storage().get());
    }
  }
}

const KeptResults::Results* KeptResults::Find(StableId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

size_t NumResults(const KeptResults::Results& kept) {
  return kept.values.empty() ? kept.hashes[0].size() : kept.values[0].size();
}

bool IsEqual(const KeptResults::Results& kept, size_t i, std::span<const Values> results,
             size_t j) {
  std::vector<std::optional<uint64_t>> hashes;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const Value& actual = results[rank][j];
    if (!kept.values.empty()) {
      if (!SameValue(kept.values[rank][i], actual)) return false;
      continue;
    }
    const std::optional<uint64_t>& expected = kept.hashes[rank][i];
    const size_t first = FirstWith(results, rank, j);
    hashes.push_back(first < rank ? hashes[first] : HashOf(actual));
    if (expected && hashes.back() != expected) return false;
  }
  return true;
}

}  // namespace strata::prove
