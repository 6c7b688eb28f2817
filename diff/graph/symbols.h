#pragma once
#include <map>
#include <string>
#include <string_view>

#include "diff/graph/listing.h"

namespace strata {

/// Which symbol of `after` is which of `before`, where their names differ: `s77` is what `s0` was.
/// Names of symbols are names, and no difference.
class SymbolNames {
 public:
  SymbolNames() = default;
  /// Inputs at the same position decide, if all agree and more types are equal than under the names
  /// as they are; else symbols that one side alone has, in order of appearance, if they are as
  /// many.
  SymbolNames(const Listing& before, const Listing& after);

  /// All data-dependent sizes under one name: those of copies are each its own.
  static SymbolNames UnbackedAsOne(const Module& module);

  bool empty() const { return before_of_.empty(); }
  /// The name on the before side.
  std::string_view Of(std::string_view after_name) const;
  /// A text of the after side with the names of the before side.
  std::string Translate(std::string_view text) const;
  /// A hash of an expression under these names, the same for all its spellings.
  uint64_t Hash(const DimTable& dims, DimId dim) const;

 private:
  std::map<std::string, std::string, std::less<>> before_of_;
};

}  // namespace strata
