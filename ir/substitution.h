#pragma once
#include <map>
#include <utility>

#include "ir/module.h"

namespace strata {

/// Replaces symbols by expressions: with s0 → s0//2 the size 32*s0 becomes 32*(s0//2). Replacements
/// are simultaneous: what a symbol becomes is not replaced again.
///
/// REQUIRES: the module outlives the substitution.
class Substitution {
 public:
  /// `replacements` by symbol (an expression of kind kSymbol).
  Substitution(Module& module, std::map<DimId, DimId> replacements)
      : module_(module), dims_(std::move(replacements)) {}

  /// Adds a symbol that was not replaced so far. What was computed before stays as it is.
  void Add(DimId symbol, DimId replacement) { dims_.insert_or_assign(symbol, replacement); }

  DimId operator()(DimId dim);
  /// Sizes, strides and offset of a tensor, or the number of an integer. None stays none.
  TypeId operator()(TypeId type);
  /// The same argument when it mentions no replaced symbol; integers where no symbol is left.
  /// Elements of spans are not visited.
  Arg operator()(const Arg& arg);

 private:
  Module& module_;
  std::map<DimId, DimId> dims_;  // by expression, with all that was asked for
  std::map<TypeId, TypeId> types_;
};

}  // namespace strata
