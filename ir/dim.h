#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/ids.h"
#include "ir/result.h"
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
/// Sums and products are flattened, constants folded and operands sorted, so that expressions that
/// differ in spelling only are one. The spelling of a foreign text is kept beside its first use.
class DimTable {
 public:
  explicit DimTable(StringTable& strings) : strings_(strings) {}
  DimTable(const DimTable& other, StringTable& strings);

  DimId Const(int64_t value);
  DimId Sym(std::string_view name);
  DimId Add(DimId a, DimId b);
  DimId Mul(DimId a, DimId b);
  DimId FloorDiv(DimId a, DimId b);
  DimId Make(DimKind kind, std::span<const DimId> operands, StrId head = {});

  /// Parses the text that sympy prints in FX annotations: `s77`, `2*s77`, `((s75*s96)//2)`,
  /// `Max(1, s0)`, `s0**2`. The id prints as `text` again.
  Result<DimId> Parse(std::string_view text);
  void Print(DimId dim, std::string& out) const;
  std::string ToString(DimId dim) const;

  DimKind kind(DimId dim) const { return entries_[Index(dim)].kind; }
  /// REQUIRES: kind is kConst.
  int64_t value(DimId dim) const { return entries_[Index(dim)].value; }
  /// The number when `dim` is constant.
  std::optional<int64_t> AsConst(DimId dim) const;
  /// The number under the symbols' hints; none when a symbol has none or a function is unknown.
  std::optional<int64_t> Hint(DimId dim) const;
  /// True when equal for all values of the symbols; false when unequal or not decidable.
  bool ProvablyEqual(DimId a, DimId b) const;
  bool ProvablyLess(DimId a, DimId b) const;  ///< a < b for all values; false when not decidable
  std::span<const DimId> operands(DimId dim) const;
  /// The symbol or function name. REQUIRES: kind is kSymbol or kCall.
  std::string_view name(DimId dim) const { return strings_[entries_[Index(dim)].head]; }

  /// Declares or updates what is known of a symbol.
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
    StrId spelling;  // as first printed, where it differs from ours
  };
  static size_t Index(DimId dim) { return static_cast<size_t>(dim.index); }
  DimId Intern(Entry entry, std::span<const DimId> operands);
  void PrintPlain(DimId dim, std::string& out, int precedence) const;

  StringTable& strings_;
  std::vector<Entry> entries_;
  std::vector<DimId> pool_;
  std::unordered_map<uint64_t, std::vector<DimId>> index_;
  std::vector<Symbol> symbols_;
  std::unordered_map<StrId, size_t> symbol_index_;
};

}  // namespace strata
