#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace strata {

/// Numbers that symbols had while a graph was traced, by the names of symbols.
using Hints = std::map<std::string, int64_t, std::less<>>;

/// What the records `create_symbol` of a run say: the size that each symbol of a compilation has
/// while it is traced. Remembers the last compilations.
class SymbolHints {
 public:
  /// Takes a record's envelope, a JSON object. Only records `create_symbol` say anything.
  void Learn(std::string_view compile, std::string_view envelope);
  /// Of the symbols of a compilation that were created so far.
  const Hints& Of(std::string_view compile) const;

 private:
  struct Compilation {
    std::string id;
    Hints hints;
  };
  std::deque<Compilation> compilations_;
};

/// Gives hints to the symbols of a module that have none.
void ApplyHints(const Hints& hints, Module& module);

}  // namespace strata
