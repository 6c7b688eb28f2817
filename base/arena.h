#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata {

/// A growing array in blocks of 2^kBits elements: references to elements stay valid, and growth
/// copies nothing. Elements that are added together, a row, are contiguous, also where there are
/// more of them than a block has.
template <class T, int kBits>
class Arena {
 public:
  Arena() = default;
  Arena(const Arena& other) : size_(other.size_), end_(other.end_) {
    for (const Run& run : other.runs_) {
      AddRun(run.blocks);
      std::copy_n(run.elements.get(), run.blocks << kBits, runs_.back().elements.get());
    }
  }
  Arena& operator=(const Arena& other) {
    Arena copy(other);
    std::swap(blocks_, copy.blocks_);
    std::swap(runs_, copy.runs_);
    std::swap(size_, copy.size_);
    std::swap(end_, copy.end_);
    return *this;
  }

  /// One more than the largest index. A row that does not fit into the rest of a block leaves it
  /// unused.
  uint32_t size() const { return size_; }
  T& operator[](uint32_t i) { return blocks_[i >> kBits][i & (kBlock - 1)]; }
  const T& operator[](uint32_t i) const { return blocks_[i >> kBits][i & (kBlock - 1)]; }
  /// REQUIRES: the elements are of one row.
  std::span<T> Row(uint32_t begin, size_t count) {
    return count == 0 ? std::span<T>() : std::span<T>(&(*this)[begin], count);
  }
  std::span<const T> Row(uint32_t begin, size_t count) const {
    return count == 0 ? std::span<const T>() : std::span<const T>(&(*this)[begin], count);
  }

  /// The index of the first of `count` new elements.
  uint32_t AddRow(size_t count) {
    if (count > end_ - size_) {
      size_ = end_;
      const size_t blocks = (count + kBlock - 1) >> kBits;
      STRATA_CHECK(blocks_.size() + blocks <= UINT32_MAX >> kBits, "an arena is full");
      AddRun(blocks);
      end_ += static_cast<uint32_t>(blocks << kBits);
    }
    const uint32_t begin = size_;
    size_ += static_cast<uint32_t>(count);
    return begin;
  }
  uint32_t Add(T element) {
    const uint32_t index = AddRow(1);
    (*this)[index] = std::move(element);
    return index;
  }

 private:
  static constexpr size_t kBlock = size_t{1} << kBits;
  /// Contiguous blocks.
  struct Run {
    std::unique_ptr<T[]> elements;
    size_t blocks;
  };

  void AddRun(size_t blocks) {
    runs_.push_back({std::make_unique_for_overwrite<T[]>(blocks << kBits), blocks});
    for (size_t block = 0; block < blocks; ++block)
      blocks_.push_back(runs_.back().elements.get() + (block << kBits));
  }

  std::vector<T*> blocks_;
  std::vector<Run> runs_;
  uint32_t size_ = 0, end_ = 0;  // end_: of the blocks
};

}  // namespace strata
