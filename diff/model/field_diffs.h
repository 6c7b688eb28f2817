#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/slim_vector.h"

namespace strata {

/// A property in which the two nodes of a pair differ. The texts are of the list that has it.
struct FieldDiff {
  std::string_view path;                          ///< "target", "args[1][0]", "operands[0]", …
  std::optional<std::string_view> before, after;  ///< as printed; none: the side has no such thing
  bool derived = false;                           ///< a consequence of another change
};

/// A list of fields with their texts, in one piece of memory: a graph may have one for each node.
class FieldDiffs {
 public:
  class Iterator {
   public:
    using value_type = FieldDiff;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;
    Iterator() = default;
    explicit Iterator(const char* at) : at_(at) {}
    FieldDiff operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) = default;

   private:
    const char* at_ = nullptr;
  };

  /// Copies the texts.
  void Add(const FieldDiff& field);
  Iterator begin() const { return Iterator(bytes_.begin()); }
  Iterator end() const { return Iterator(bytes_.end()); }
  bool empty() const { return bytes_.empty(); }
  /// Counts them.
  size_t size() const { return static_cast<size_t>(std::ranges::distance(begin(), end())); }

 private:
  SlimVector<char> bytes_;  // of each a Head, then its texts
};

}  // namespace strata
