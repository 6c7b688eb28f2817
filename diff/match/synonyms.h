#pragma once
#include <cstddef>
#include <cstdint>

#include "diff/match/labels.h"

namespace strata {

/// Operators that one side alone has, and that stand where another operator stood: a pass replaced
/// one by the other everywhere (`aten.view` by `aten.reshape`). While a scope lives, such operators
/// have one label, so that the replaced nodes look like any other to the matcher. Fields are
/// compared after it, with labels as they are.
class SynonymScope {
 public:
  /// REQUIRES: `after` outlives the scope.
  SynonymScope(const Labels& before, Labels& after);
  ~SynonymScope();
  SynonymScope(const SynonymScope&) = delete;
  SynonymScope& operator=(const SynonymScope&) = delete;

  /// How many pairs of operators were compared: what the search costs.
  size_t comparisons() const { return comparisons_; }

 private:
  Labels& after_;
  size_t comparisons_ = 0;
  IdVector<LabelId, uint64_t> own_ops_;  // of labels that were renamed; 0: it was not
};

}  // namespace strata
