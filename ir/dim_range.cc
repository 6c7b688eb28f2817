#include <algorithm>
#include <array>
#include <limits>

#include "base/checked_math.h"
#include "ir/dim.h"

namespace strata {
namespace {

constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();
constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();

int64_t SaturatingAdd(int64_t a, int64_t b) {
  const std::optional<int64_t> sum = CheckedAdd(a, b);
  return sum ? *sum : (a < 0 ? kNegInf : kPosInf);
}

int64_t SaturatingMul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kNegInf || a == kPosInf || b == kNegInf || b == kPosInf) {
    return (a < 0) == (b < 0) ? kPosInf : kNegInf;
  }
  const std::optional<int64_t> product = CheckedMul(a, b);
  return product ? *product : ((a < 0) == (b < 0) ? kPosInf : kNegInf);
}

// Arithmetic of ranges; the type is private to DimTable.

template <class Range>
Range Anything() {
  return {kNegInf, kPosInf};
}

template <class Range>
Range Sum(const Range& a, const Range& b) {
  return {a.lo == kNegInf || b.lo == kNegInf ? kNegInf : SaturatingAdd(a.lo, b.lo),
          a.hi == kPosInf || b.hi == kPosInf ? kPosInf : SaturatingAdd(a.hi, b.hi)};
}

template <class Range>
Range Product(const Range& a, const Range& b) {
  const std::array<int64_t, 4> ends = {SaturatingMul(a.lo, b.lo), SaturatingMul(a.lo, b.hi),
                                       SaturatingMul(a.hi, b.lo), SaturatingMul(a.hi, b.hi)};
  return {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
}

template <class Range>
Range FloorQuotient(const Range& a, const Range& b) {
  if (b.lo < 1 || a.lo < 0) return Anything<Range>();
  return {b.hi == kPosInf ? 0 : a.lo / b.hi, a.hi == kPosInf ? kPosInf : a.hi / b.lo};
}

/// Of any number divided by `b`.
template <class Range>
Range Modulo(const Range& b) {
  if (b.lo < 1) return Anything<Range>();
  return {0, b.hi == kPosInf ? kPosInf : b.hi - 1};
}

template <class Range>
Range Power(const Range& base, std::optional<int64_t> exponent) {
  if (!exponent || *exponent < 0 || base.lo < 0) return Anything<Range>();
  const auto power = [&](int64_t end) {
    return end == kPosInf ? kPosInf : CheckedPow(end, *exponent).value_or(kPosInf);
  };
  return {power(base.lo), power(base.hi)};
}

template <class Range>
Range Minimum(const Range& a, const Range& b) {
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}

template <class Range>
Range Maximum(const Range& a, const Range& b) {
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}

}  // namespace

std::optional<int64_t> DimTable::Hint(DimId dim) const {
  if (!dim.valid()) return std::nullopt;
  switch (kind(dim)) {
    case DimKind::kConst:
      return value(dim);
    case DimKind::kSymbol: {
      const Symbol* symbol = FindSymbol(entries_[Index(dim)].head);
      return symbol != nullptr ? symbol->hint : std::nullopt;
    }
    case DimKind::kCall:
      return std::nullopt;
    default:
      break;
  }
  std::optional<int64_t> total;
  for (DimId operand : operands(dim)) {
    const std::optional<int64_t> hint = Hint(operand);
    if (!hint) return std::nullopt;
    if (!total) {
      total = hint;
      continue;
    }
    switch (kind(dim)) {
      case DimKind::kAdd:
        total = CheckedAdd(*total, *hint);
        break;
      case DimKind::kMul:
        total = CheckedMul(*total, *hint);
        break;
      case DimKind::kFloorDiv:
        total = CheckedFloorDiv(*total, *hint);
        break;
      case DimKind::kMod:
        total = CheckedMod(*total, *hint);
        break;
      case DimKind::kPow:
        total = CheckedPow(*total, *hint);
        break;
      case DimKind::kMin:
        total = std::min(*total, *hint);
        break;
      default:
        total = std::max(*total, *hint);
        break;
    }
    if (!total) return std::nullopt;
  }
  return total;
}

DimTable::Range DimTable::RangeOf(DimId dim) const {
  const std::span<const DimId> parts = operands(dim);
  const auto fold = [&](Range (*combine)(const Range&, const Range&)) {
    Range range = RangeOf(parts[0]);
    for (DimId part : parts.subspan(1))
      range = combine(range, RangeOf(part));
    return range;
  };
  switch (kind(dim)) {
    case DimKind::kConst:
      return {value(dim), value(dim)};
    case DimKind::kSymbol: {
      const Symbol* symbol = FindSymbol(entries_[Index(dim)].head);
      return symbol != nullptr ? Range{symbol->min, symbol->max} : Anything<Range>();
    }
    case DimKind::kAdd:
      return fold(Sum<Range>);
    case DimKind::kMul:
      return fold(Product<Range>);
    case DimKind::kFloorDiv:
      return FloorQuotient(RangeOf(parts[0]), RangeOf(parts[1]));
    case DimKind::kMod:
      return Modulo(RangeOf(parts[1]));
    case DimKind::kMin:
      return fold(Minimum<Range>);
    case DimKind::kMax:
      return fold(Maximum<Range>);
    case DimKind::kPow:
      return Power(RangeOf(parts[0]), AsConst(parts[1]));
    case DimKind::kCall:
      return Anything<Range>();
  }
  return Anything<Range>();
}

DimTable::Range DimTable::RangeOfDifference(DimId a, DimId b) const {
  // Terms as factor times the operands of a product, so that equal ones cancel without interning.
  struct Part {
    std::span<const DimId> factors;
    int64_t factor;
  };
  std::vector<Part> parts;
  const auto collect = [&](const DimId& dim, int64_t sign) {
    const std::span<const DimId> terms =
        kind(dim) == DimKind::kAdd ? operands(dim) : std::span<const DimId>(&dim, 1);
    for (const DimId& term : terms) {
      std::span<const DimId> factors =
          kind(term) == DimKind::kMul ? operands(term) : std::span<const DimId>(&term, 1);
      int64_t factor = sign;
      if (kind(factors[0]) == DimKind::kConst) {
        const std::optional<int64_t> signed_factor = CheckedMul(sign, value(factors[0]));
        if (!signed_factor) return false;
        factor = *signed_factor;
        factors = factors.subspan(1);
      }
      const auto same = std::ranges::find_if(
          parts, [&](const Part& part) { return std::ranges::equal(part.factors, factors); });
      if (same == parts.end()) {
        parts.push_back({factors, factor});
      } else if (const std::optional<int64_t> sum = CheckedAdd(same->factor, factor)) {
        same->factor = *sum;
      } else {
        return false;
      }
    }
    return true;
  };
  if (!collect(a, 1) || !collect(b, -1)) return Anything<Range>();

  Range difference = {0, 0};
  for (const Part& part : parts) {
    if (part.factor == 0) continue;
    Range product = {part.factor, part.factor};
    for (DimId factor : part.factors)
      product = Product(product, RangeOf(factor));
    difference = Sum(difference, product);
  }
  return difference;
}

bool DimTable::ProvablyEqual(DimId a, DimId b) const {
  if (a == b) return true;
  const Range difference = RangeOfDifference(a, b);
  return difference.lo == 0 && difference.hi == 0;
}

bool DimTable::ProvablyLess(DimId a, DimId b) const {
  return RangeOfDifference(a, b).hi < 0;
}

}  // namespace strata
