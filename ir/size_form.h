#pragma once
#include <cstdint>
#include <map>

namespace strata {

/// A number as a function of sizes that are known at run time only: constant + Σ factor · size.
/// What names a size is up to who makes the form: the slot of a plan that it is read into, a place
/// in a list.
struct SizeForm {
  int64_t constant = 0;
  std::map<int32_t, int64_t> factors = {};  ///< none is 0

  /// `size_of(name)` gives a size.
  template <class Fn>
  int64_t At(Fn&& size_of) const {
    int64_t number = constant;
    for (const auto& [name, factor] : factors)
      number += factor * size_of(name);
    return number;
  }
  friend bool operator==(const SizeForm&, const SizeForm&) = default;
};

}  // namespace strata
