#include "ir/symbol_sizes.h"

#include <algorithm>
#include <optional>

#include "base/checked_math.h"

namespace strata {
namespace {

std::optional<int64_t> Combine(DimKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case DimKind::kAdd:
      return CheckedAdd(a, b);
    case DimKind::kMul:
      return CheckedMul(a, b);
    case DimKind::kFloorDiv:
      return CheckedFloorDiv(a, b);
    case DimKind::kMod:
      return CheckedMod(a, b);
    case DimKind::kPow:
      return CheckedPow(a, b);
    case DimKind::kMin:
      return std::min(a, b);
    case DimKind::kMax:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

/// REQUIRES: `number` is odd.
int64_t PrimeAfter(int64_t number) {
  const auto is_prime = [](int64_t n) {
    for (int64_t divisor = 3; divisor * divisor <= n; divisor += 2) {
      if (n % divisor == 0) return false;
    }
    return true;
  };
  do {
    number += 2;
  } while (!is_prime(number));
  return number;
}

}  // namespace

Result<int64_t> NumberOf(const Module& module, DimId dim, const SymbolSizes& sizes) {
  const DimTable& dims = module.dims();
  if (const std::optional<int64_t> number = dims.AsConst(dim)) return *number;
  if (dims.kind(dim) == DimKind::kSymbol) {
    const auto known = sizes.find(dims.name(dim));
    if (known != sizes.end()) return known->second;
    return Error(ErrorCode::kUnsupported, "sizes must be numbers, and nothing tells what {} is",
                 dims.name(dim));
  }
  std::optional<int64_t> total;
  for (const DimId operand : dims.operands(dim)) {
    STRATA_TRY(const int64_t number, NumberOf(module, operand, sizes));
    total = total ? Combine(dims.kind(dim), *total, number) : number;
    if (!total) break;
  }
  if (!total || dims.kind(dim) == DimKind::kCall) {
    return Error(ErrorCode::kUnsupported, "sizes must be numbers, and {} is none",
                 dims.ToString(dim));
  }
  return *total;
}

Result<std::vector<int64_t>> NumbersOf(const Module& module, std::span<const DimId> dims,
                                       const SymbolSizes& sizes) {
  std::vector<int64_t> numbers;
  for (const DimId dim : dims) {
    STRATA_TRY(const int64_t number, NumberOf(module, dim, sizes));
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<SymbolSizes> SampleSizes(const Module& module) {
  constexpr int64_t kPrimes[] = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43};
  constexpr size_t kSamples = 3;
  std::vector<SymbolSizes> samples(1);
  int64_t last_prime = kPrimes[std::size(kPrimes) - 1];
  for (const Symbol& symbol : module.dims().symbols()) {
    samples.resize(kSamples);
    if (!symbol.backed) {
      for (SymbolSizes& sample : samples)
        sample.emplace(module.str(symbol.name), last_prime = PrimeAfter(last_prime));
      continue;
    }
    const size_t known = samples[0].size();
    for (size_t i = 0; i < kSamples; ++i) {
      int64_t size = kPrimes[(known * kSamples + i) % std::size(kPrimes)];
      if (size < symbol.min) size += symbol.min;
      if (size > symbol.max)
        size = std::max(symbol.min, symbol.max - static_cast<int64_t>(known + i));
      samples[i].emplace(module.str(symbol.name), size);
    }
  }
  return samples;
}

std::vector<SymbolSizes> BackedSampleSizes(const Module& module) {
  std::vector<SymbolSizes> samples = SampleSizes(module);
  for (const Symbol& symbol : module.dims().symbols()) {
    if (symbol.backed) continue;
    for (SymbolSizes& sample : samples)
      sample.erase(std::string(module.str(symbol.name)));
  }
  return samples;
}

DimId CopyDim(const Module& from, DimId dim, Module& to) {
  if (&from == &to) return dim;
  const DimTable& dims = from.dims();
  if (const std::optional<int64_t> number = dims.AsConst(dim)) return to.dims().Const(*number);
  if (dims.kind(dim) == DimKind::kSymbol) {
    const DimId copy = to.dims().Sym(dims.name(dim));
    const Symbol* known = dims.FindSymbol(from.strings().Find(dims.name(dim)));
    if (known != nullptr) {
      Symbol symbol = *known;
      symbol.name = to.Intern(dims.name(dim));
      to.dims().SetSymbol(symbol);
    }
    return copy;
  }
  std::vector<DimId> operands;
  for (const DimId operand : dims.operands(dim))
    operands.push_back(CopyDim(from, operand, to));
  const StrId head = dims.kind(dim) == DimKind::kCall ? to.Intern(dims.name(dim)) : StrId{};
  return to.dims().Make(dims.kind(dim), operands, head);
}

}  // namespace strata
