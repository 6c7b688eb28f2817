#include "ir/dim.h"

#include <algorithm>
#include <array>

#include "base/checked_math.h"

namespace strata {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDull;
}

/// FX names numbers that are known at run time only u0, u1, … and zuf0, zuf1, … (floats).
bool IsUnbackedName(std::string_view name) {
  if (name.starts_with("zuf")) return true;
  return name.size() > 1 && name[0] == 'u' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

/// `base ** exponent` in a product.
struct DimTable::Factor {
  DimId base;
  int64_t exponent;
};

/// `factor * rest` in a sum.
struct DimTable::Term {
  DimId rest;
  int64_t factor;
};

DimTable::DimTable(const DimTable& other, StringTable& strings)
    : strings_(strings),
      entries_(other.entries_),
      pool_(other.pool_),
      index_(other.index_),
      symbols_(other.symbols_),
      symbol_index_(other.symbol_index_) {}

DimId DimTable::Intern(const Entry& entry, std::span<const DimId> operands) {
  uint64_t hash = Mix(static_cast<uint64_t>(entry.kind), static_cast<uint64_t>(entry.value));
  hash = Mix(hash, static_cast<uint32_t>(entry.head.index));
  for (DimId operand : operands)
    hash = Mix(hash, static_cast<uint32_t>(operand.index));

  std::vector<DimId>& bucket = index_[hash];
  for (DimId candidate : bucket) {
    const Entry& other = entries_[Index(candidate)];
    if (other.kind == entry.kind && other.head == entry.head && other.value == entry.value &&
        std::ranges::equal(this->operands(candidate), operands)) {
      return candidate;
    }
  }
  const DimId id{static_cast<int32_t>(entries_.size())};
  Entry& added = entries_.emplace_back(entry);
  added.begin = static_cast<uint32_t>(pool_.size());
  added.count = static_cast<uint32_t>(operands.size());
  // `operands` may lie in the pool itself.
  const std::vector<DimId> copied(operands.begin(), operands.end());
  pool_.insert(pool_.end(), copied.begin(), copied.end());
  bucket.push_back(id);
  return id;
}

DimId DimTable::Const(int64_t value) {
  return Intern({.kind = DimKind::kConst, .head = {}, .value = value, .spelling = {}}, {});
}

DimId DimTable::Sym(std::string_view name) {
  const StrId head = strings_.Intern(name);
  if (!symbol_index_.contains(head)) {
    const bool backed = !IsUnbackedName(name);
    SetSymbol({.name = head, .hint = {}, .min = backed ? 0 : INT64_MIN, .backed = backed});
  }
  return Intern({.kind = DimKind::kSymbol, .head = head, .spelling = {}}, {});
}

DimId DimTable::Add(DimId a, DimId b) {
  return MakeSum(std::array{a, b});
}
DimId DimTable::Mul(DimId a, DimId b) {
  return MakeProduct(std::array{a, b});
}
DimId DimTable::FloorDiv(DimId a, DimId b) {
  return MakeFloorDiv(a, b);
}

DimId DimTable::Make(DimKind kind, std::span<const DimId> operands, StrId head) {
  switch (kind) {
    case DimKind::kAdd:
      return MakeSum(operands);
    case DimKind::kMul:
      return MakeProduct(operands);
    case DimKind::kPow:
      return MakePower(operands[0], operands[1]);
    case DimKind::kFloorDiv:
      return MakeFloorDiv(operands[0], operands[1]);
    case DimKind::kMod:
      return MakeMod(operands[0], operands[1]);
    case DimKind::kMin:
    case DimKind::kMax:
      return MakeExtremum(kind, operands);
    case DimKind::kCall:
      return Intern({.kind = kind, .head = head, .spelling = {}}, operands);
    case DimKind::kConst:
    case DimKind::kSymbol:
      break;
  }
  STRATA_CHECK(false, "constants and symbols have no operands");
}

DimTable::Term DimTable::SplitTerm(DimId dim) {
  const std::span<const DimId> factors = operands(dim);
  if (kind(dim) != DimKind::kMul || kind(factors[0]) != DimKind::kConst) return {dim, 1};
  const int64_t factor = value(factors[0]);
  if (factors.size() == 2) return {factors[1], factor};
  const std::vector<DimId> rest(factors.begin() + 1, factors.end());
  return {Intern({.kind = DimKind::kMul, .head = {}, .spelling = {}}, rest), factor};
}

DimId DimTable::Scale(int64_t factor, DimId rest) {
  if (factor == 1) return rest;
  std::vector<DimId> factors = {Const(factor)};
  if (kind(rest) == DimKind::kMul) {
    const std::span<const DimId> inner = operands(rest);
    factors.insert(factors.end(), inner.begin(), inner.end());
  } else {
    factors.push_back(rest);
  }
  return Intern({.kind = DimKind::kMul, .head = {}, .spelling = {}}, factors);
}

DimId DimTable::MakeSum(std::span<const DimId> summands) {
  int64_t constant = 0;
  std::vector<Term> terms;
  std::vector<DimId> unfolded;  // constants whose sum would overflow
  const auto add = [&](DimId dim) {
    if (kind(dim) == DimKind::kConst) {
      if (const std::optional<int64_t> sum = CheckedAdd(constant, value(dim))) {
        constant = *sum;
      } else {
        unfolded.push_back(dim);
      }
    } else {
      terms.push_back(SplitTerm(dim));
    }
  };
  for (DimId summand : summands) {
    if (kind(summand) != DimKind::kAdd) {
      add(summand);
      continue;
    }
    // By index: splitting a term may grow the pool.
    const size_t count = operands(summand).size();
    for (size_t i = 0; i < count; ++i)
      add(operands(summand)[i]);
  }
  std::ranges::stable_sort(
      terms, [&](const Term& a, const Term& b) { return Compare(a.rest, b.rest) < 0; });

  std::vector<DimId> sum;
  for (size_t i = 0; i < terms.size();) {
    const DimId rest = terms[i].rest;
    int64_t factor = 0;
    for (; i < terms.size() && terms[i].rest == rest; ++i) {
      if (const std::optional<int64_t> folded = CheckedAdd(factor, terms[i].factor)) {
        factor = *folded;
      } else {
        sum.push_back(Scale(terms[i].factor, rest));
      }
    }
    if (factor != 0) sum.push_back(Scale(factor, rest));
  }
  if (constant != 0 || (sum.empty() && unfolded.empty())) sum.push_back(Const(constant));
  sum.insert(sum.end(), unfolded.begin(), unfolded.end());
  return sum.size() == 1 ? sum[0]
                         : Intern({.kind = DimKind::kAdd, .head = {}, .spelling = {}}, sum);
}

DimId DimTable::MakeProduct(std::span<const DimId> multiplicands) {
  int64_t constant = 1;
  std::vector<Factor> factors;
  std::vector<DimId> unfolded;
  const auto multiply = [&](DimId dim) {
    if (kind(dim) == DimKind::kConst) {
      if (const std::optional<int64_t> product = CheckedMul(constant, value(dim))) {
        constant = *product;
      } else {
        unfolded.push_back(dim);
      }
    } else if (kind(dim) == DimKind::kPow && kind(operands(dim)[1]) == DimKind::kConst) {
      factors.push_back({operands(dim)[0], value(operands(dim)[1])});
    } else {
      factors.push_back({dim, 1});
    }
  };
  for (DimId multiplicand : multiplicands) {
    if (kind(multiplicand) == DimKind::kMul) {
      for (DimId factor : operands(multiplicand))
        multiply(factor);
    } else {
      multiply(multiplicand);
    }
  }
  if (constant == 0) return Const(0);
  std::ranges::stable_sort(
      factors, [&](const Factor& a, const Factor& b) { return Compare(a.base, b.base) < 0; });

  std::vector<DimId> product;
  for (size_t i = 0; i < factors.size();) {
    const DimId base = factors[i].base;
    int64_t exponent = 0;
    for (; i < factors.size() && factors[i].base == base; ++i) {
      if (const std::optional<int64_t> folded = CheckedAdd(exponent, factors[i].exponent)) {
        exponent = *folded;
      } else {
        product.push_back(MakePower(base, Const(factors[i].exponent)));
      }
    }
    if (exponent != 0) product.push_back(MakePower(base, Const(exponent)));
  }
  product.insert(product.begin(), unfolded.begin(), unfolded.end());
  if (product.empty()) return Const(constant);
  if (constant != 1 && product.size() == 1 && kind(product[0]) == DimKind::kAdd) {
    std::vector<DimId> distributed;
    const std::vector<DimId> terms(operands(product[0]).begin(), operands(product[0]).end());
    for (DimId term : terms)
      distributed.push_back(MakeProduct(std::array{Const(constant), term}));
    return MakeSum(distributed);
  }
  if (constant != 1) product.insert(product.begin(), Const(constant));
  return product.size() == 1 ? product[0]
                             : Intern({.kind = DimKind::kMul, .head = {}, .spelling = {}}, product);
}

DimId DimTable::MakePower(DimId base, DimId exponent) {
  const std::optional<int64_t> e = AsConst(exponent);
  if (e == 0) return Const(1);
  if (e == 1) return base;
  if (e && kind(base) == DimKind::kConst) {
    if (const std::optional<int64_t> power = CheckedPow(value(base), *e)) return Const(*power);
  }
  return Intern({.kind = DimKind::kPow, .head = {}, .spelling = {}}, std::array{base, exponent});
}

std::optional<DimId> DimTable::DivideExactly(DimId dim, int64_t divisor) {
  std::vector<DimId> terms = {dim};
  if (kind(dim) == DimKind::kAdd) terms.assign(operands(dim).begin(), operands(dim).end());
  for (DimId& term : terms) {
    const std::optional<int64_t> constant = AsConst(term);
    const Term split = constant ? Term{Const(1), *constant} : SplitTerm(term);
    if (CheckedMod(split.factor, divisor) != 0) return std::nullopt;
    const std::optional<int64_t> quotient = CheckedFloorDiv(split.factor, divisor);
    if (!quotient) return std::nullopt;
    term = MakeProduct(std::array{Const(*quotient), split.rest});
  }
  return MakeSum(terms);
}

DimId DimTable::MakeFloorDiv(DimId a, DimId b) {
  if (const std::optional<int64_t> divisor = AsConst(b); divisor && *divisor != 0) {
    if (const std::optional<int64_t> dividend = AsConst(a)) {
      if (const auto quotient = CheckedFloorDiv(*dividend, *divisor)) return Const(*quotient);
    }
    if (const std::optional<DimId> quotient = DivideExactly(a, *divisor)) return *quotient;
  }
  return Intern({.kind = DimKind::kFloorDiv, .head = {}, .spelling = {}}, std::array{a, b});
}

DimId DimTable::MakeMod(DimId a, DimId b) {
  if (const std::optional<int64_t> divisor = AsConst(b); divisor && *divisor != 0) {
    if (const std::optional<int64_t> dividend = AsConst(a)) {
      return Const(*CheckedMod(*dividend, *divisor));
    }
    if (DivideExactly(a, *divisor)) return Const(0);
  }
  return Intern({.kind = DimKind::kMod, .head = {}, .spelling = {}}, std::array{a, b});
}

DimId DimTable::MakeExtremum(DimKind extremum, std::span<const DimId> operands_given) {
  std::optional<int64_t> constant;
  std::vector<DimId> rest;
  const auto take = [&](DimId dim) {
    if (const std::optional<int64_t> number = AsConst(dim)) {
      constant = !constant                   ? *number
                 : extremum == DimKind::kMax ? std::max(*constant, *number)
                                             : std::min(*constant, *number);
    } else {
      rest.push_back(dim);
    }
  };
  for (DimId dim : operands_given) {
    if (kind(dim) == extremum) {
      for (DimId inner : operands(dim))
        take(inner);
    } else {
      take(dim);
    }
  }
  std::ranges::stable_sort(rest, [&](DimId a, DimId b) { return Compare(a, b) < 0; });
  rest.erase(std::unique(rest.begin(), rest.end()), rest.end());
  if (constant) rest.insert(rest.begin(), Const(*constant));
  return rest.size() == 1 ? rest[0] : Intern({.kind = extremum, .head = {}, .spelling = {}}, rest);
}

std::span<const DimId> DimTable::operands(DimId dim) const {
  const Entry& entry = entries_[Index(dim)];
  return {pool_.data() + entry.begin, entry.count};
}

std::optional<int64_t> DimTable::AsConst(DimId dim) const {
  if (!dim.valid() || kind(dim) != DimKind::kConst) return std::nullopt;
  return value(dim);
}

int DimTable::Compare(DimId a, DimId b) const {
  if (a == b) return 0;
  if (kind(a) != kind(b)) return kind(a) < kind(b) ? -1 : 1;
  if (kind(a) == DimKind::kConst) return value(a) < value(b) ? -1 : 1;
  if (const int order = name(a).compare(name(b)); order != 0) return order;
  const std::span<const DimId> left = operands(a), right = operands(b);
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (const int order = Compare(left[i], right[i]); order != 0) return order;
  }
  return left.size() < right.size() ? -1 : 1;
}

void DimTable::SetSymbol(const Symbol& symbol) {
  const auto [it, inserted] = symbol_index_.try_emplace(symbol.name, symbols_.size());
  if (inserted) {
    symbols_.push_back(symbol);
  } else {
    symbols_[it->second] = symbol;
  }
}

const Symbol* DimTable::FindSymbol(StrId name) const {
  const auto it = symbol_index_.find(name);
  return it == symbol_index_.end() ? nullptr : &symbols_[it->second];
}

}  // namespace strata
