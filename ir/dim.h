#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/ids.h"
#include "ir/strings.h"

namespace strata {

enum class DimKind : uint8_t {
  kConst,
  kSymbol,
  kAdd,
  kMul,
  kFloorDiv,
  kMod,
  kPow,
  kMin,
  kMax,
  kCall,  ///< any other function of the symbolic algebra, by name: FloatTrueDiv, ToFloat, …
};

/// What is known of a symbol. Two symbols of one name are one symbol.
struct Symbol {
  StrId name;
  std::optional<int64_t> hint;       ///< the size seen while tracing
  int64_t min = 0, max = INT64_MAX;  ///< inclusive
  bool backed = true;                ///< false: known at run time only (u0, u1, …)
};

/// Hash-consed integer expressions: sizes and strides. Equal expressions have equal ids; unequal
/// ids may still be equal numbers (`s0*2` and `s0+s0` are folded, `Mod(s0*2, 2)` is not).
///
/// Sums and products are flattened, constants folded and operands sorted (by structure, not by id),
/// so that expressions that differ in spelling only are one. The spelling of a foreign text is kept
/// beside its first use. Numbers beyond 64-bit integers, and `oo`, `True` and the like, are
/// calls without operands. Numbers that would overflow are not folded.
class DimTable {
 public:
  explicit DimTable(StringTable& strings) : strings_(strings) {}
  DimTable(const DimTable& other, StringTable& strings);

  DimId Const(int64_t value);
  DimId Sym(std::string_view name);
  DimId Add(DimId a, DimId b);
  DimId Mul(DimId a, DimId b);
  DimId FloorDiv(DimId a, DimId b);
  /// Any expression but a constant or a symbol. `head` names the function of a kCall; the names of
  /// operators (`<`, `/`, `&`, …) print between their operands.
  DimId Make(DimKind kind, std::span<const DimId> operands, StrId head = {});

  /// Parses the text that sympy prints in FX annotations: `s77`, `2*s77`, `((s75*s96)//2)`,
  /// `Max(1, s0)`, `s0**2`. The id prints as `text` again, unless it was parsed before from an
  /// equal expression in another spelling.
  Result<DimId> Parse(std::string_view text);
  void Print(DimId dim, std::string& out) const;
  std::string ToString(DimId dim) const;
  /// As `Print`, but the same for all spellings of one expression.
  void PrintCanonical(DimId dim, std::string& out) const;

  DimKind kind(DimId dim) const { return entries_[Index(dim)].kind; }
  /// REQUIRES: kind is kConst.
  int64_t value(DimId dim) const { return entries_[Index(dim)].value; }
  /// The number when `dim` is constant.
  std::optional<int64_t> AsConst(DimId dim) const;
  /// The number under the symbols' hints; none when a symbol has none, a function is unknown, or
  /// the number does not fit.
  std::optional<int64_t> Hint(DimId dim) const;
  /// True when equal for all values of the symbols; false when unequal or not decidable.
  bool ProvablyEqual(DimId a, DimId b) const;
  bool ProvablyLess(DimId a, DimId b) const;  ///< a < b for all values; false when not decidable
  std::span<const DimId> operands(DimId dim) const;
  /// The symbol or function name. REQUIRES: kind is kSymbol or kCall.
  std::string_view name(DimId dim) const { return strings_[entries_[Index(dim)].head]; }

  /// Declares or updates what is known of a symbol. Symbols that were only mentioned have no hint;
  /// they are sizes (≥ 0), or, when named u0, u1, … as FX names unbacked ones, any number.
  void SetSymbol(const Symbol& symbol);
  const Symbol* FindSymbol(StrId name) const;
  std::span<const Symbol> symbols() const { return symbols_; }  ///< in order of first mention
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    DimKind kind;
    StrId head;
    uint32_t begin = 0, count = 0;  // operands
    int64_t value = 0;
    StrId spelling;       // as first parsed, where it differs from ours
    bool parsed = false;  // the spelling is settled
  };
  class Parser;
  struct Factor;
  struct Term;
  /// Inclusive; the ends of int64 stand for infinity.
  struct Range {
    int64_t lo, hi;
  };
  static size_t Index(DimId dim) { return static_cast<size_t>(dim.index); }
  DimId Intern(const Entry& entry, std::span<const DimId> operands);
  DimId MakeSum(std::span<const DimId> operands);
  DimId MakeProduct(std::span<const DimId> operands);
  DimId MakePower(DimId base, DimId exponent);
  DimId MakeFloorDiv(DimId a, DimId b);
  DimId MakeMod(DimId a, DimId b);
  DimId MakeExtremum(DimKind kind, std::span<const DimId> operands);
  DimId Scale(int64_t factor, DimId rest);
  /// `dim / divisor` when every term is a multiple of it.
  std::optional<DimId> DivideExactly(DimId dim, int64_t divisor);
  Term SplitTerm(DimId dim);
  /// A total order by structure, the same in every table.
  int Compare(DimId a, DimId b) const;
  Range RangeOf(DimId dim) const;
  Range RangeOfDifference(DimId a, DimId b) const;
  void PrintPlain(DimId dim, std::string& out, int precedence) const;

  StringTable& strings_;
  std::vector<Entry> entries_;
  std::vector<DimId> pool_;
  std::unordered_map<uint64_t, std::vector<DimId>> index_;
  std::vector<Symbol> symbols_;
  std::unordered_map<StrId, size_t> symbol_index_;
};

}  // namespace strata
