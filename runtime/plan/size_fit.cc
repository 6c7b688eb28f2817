#include "runtime/plan/size_fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/result.h"

namespace strata {
namespace {

constexpr size_t kMaxFactors = 3;
// Beyond it numbers are marks, like the end of a slice without an end, and no sizes.
constexpr int64_t kMaxNumber = int64_t{1} << 53U;

/// The vector divided by the greatest common divisor of its elements, first nonzero one positive:
/// the same for all multiples. Empty for a vector of zeros.
std::vector<int64_t> Reduced(std::vector<int64_t> numbers) {
  int64_t divisor = 0;
  for (const int64_t number : numbers)
    divisor = std::gcd(divisor, number);
  if (divisor == 0) return {};
  const auto first = std::ranges::find_if(numbers, [](int64_t n) { return n != 0; });
  if (*first < 0) divisor = -divisor;
  for (int64_t& number : numbers)
    number /= divisor;
  return numbers;
}

std::vector<int64_t> Differences(std::span<const int64_t> numbers) {
  std::vector<int64_t> differences;
  for (size_t i = 1; i < numbers.size(); ++i) {
    differences.push_back(numbers[i] - numbers[0]);
  }
  return differences;
}

}  // namespace

void SizeFit::AddSize(DimId value, std::vector<int64_t> samples) {
  STRATA_CHECK(terms_.empty() && samples.size() >= 3);
  sizes_.push_back({.value = value, .samples = std::move(samples)});
}

void SizeFit::AddUnbacked(DimId size, std::vector<int64_t> samples) {
  MakeProducts();
  terms_.push_back({.value = size, .samples = std::move(samples)});
  Index(terms_.back(), terms_.size() - 1);
}

void SizeFit::MakeProducts() {
  if (num_products_ > 0 || sizes_.empty()) return;
  // Each product of a degree has its factors in order, so that none occurs twice.
  std::vector<std::pair<Term, size_t>> degree;
  for (size_t i = 0; i < sizes_.size(); ++i)
    degree.emplace_back(sizes_[i], i);
  for (size_t factors = 1; factors <= kMaxFactors; ++factors) {
    std::vector<std::pair<Term, size_t>> next;
    for (const auto& [term, last] : degree) {
      terms_.push_back(term);
      for (size_t i = last; i < sizes_.size(); ++i) {
        Term product = {.value = dims_.Mul(term.value, sizes_[i].value), .samples = {}};
        for (size_t s = 0; s < term.samples.size(); ++s)
          product.samples.push_back(term.samples[s] * sizes_[i].samples[s]);
        next.emplace_back(std::move(product), i);
      }
    }
    degree = std::move(next);
  }
  num_products_ = terms_.size();
  for (size_t i = 0; i < terms_.size(); ++i)
    Index(terms_[i], i);
}

void SizeFit::Index(const Term& term, size_t index) {
  by_samples_.try_emplace(Reduced(term.samples), index);
  by_differences_.try_emplace(Reduced(Differences(term.samples)), index);
}

std::optional<DimId> SizeFit::Fit(std::span<const int64_t> numbers) {
  MakeProducts();
  if (std::ranges::all_of(numbers, [&](int64_t n) { return n == numbers[0]; })) {
    return dims_.Const(numbers[0]);
  }
  const auto is_size = [](int64_t n) { return n > -kMaxNumber && n < kMaxNumber; };
  if (!std::ranges::all_of(numbers, is_size)) return std::nullopt;
  if (const auto multiple = FitMultiple(numbers)) return multiple;
  if (const auto affine = FitAffine(numbers)) return affine;
  if (const auto scaled = FitScaled(numbers)) return scaled;
  return FitPair(numbers);
}

std::optional<DimId> SizeFit::FitScaled(std::span<const int64_t> numbers) {
  for (const Term& size : sizes_) {
    std::vector<int64_t> quotients;
    for (size_t i = 0; i < numbers.size() && numbers[i] % size.samples[i] == 0; ++i)
      quotients.push_back(numbers[i] / size.samples[i]);
    if (quotients.size() != numbers.size()) continue;
    if (const auto multiple = FitMultiple(quotients)) return dims_.Mul(size.value, *multiple);
  }
  return std::nullopt;
}

std::optional<DimId> SizeFit::FitMultiple(std::span<const int64_t> numbers) {
  const auto found = by_samples_.find(Reduced({numbers.begin(), numbers.end()}));
  if (found == by_samples_.end()) return std::nullopt;
  const Term& term = terms_[found->second];
  if (numbers[0] % term.samples[0] != 0) return std::nullopt;
  return dims_.Mul(dims_.Const(numbers[0] / term.samples[0]), term.value);
}

std::optional<DimId> SizeFit::FitAffine(std::span<const int64_t> numbers) {
  const std::vector<int64_t> differences = Differences(numbers);
  const auto found = by_differences_.find(Reduced(differences));
  if (found == by_differences_.end()) return std::nullopt;
  const Term& term = terms_[found->second];
  const std::vector<int64_t> steps = Differences(term.samples);
  const auto first = std::ranges::find_if(steps, [](int64_t step) { return step != 0; });
  if (first == steps.end()) return std::nullopt;
  const auto index = static_cast<size_t>(first - steps.begin());
  if (differences[index] % steps[index] != 0) return std::nullopt;
  const int64_t factor = differences[index] / steps[index];
  const int64_t offset = numbers[0] - factor * term.samples[0];
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != factor * term.samples[i] + offset) return std::nullopt;
  }
  return dims_.Add(dims_.Mul(dims_.Const(factor), term.value), dims_.Const(offset));
}

std::optional<DimId> SizeFit::FitPair(std::span<const int64_t> numbers) {
  for (size_t n = 1; n < terms_.size(); ++n) {
    for (size_t m = 0; m < std::min(n, num_products_); ++m) {
      if (const auto pair = FitPair(numbers, terms_[m], terms_[n])) return pair;
    }
  }
  return std::nullopt;
}

/// Solves for the first two samples by Cramer's rule, and checks all.
std::optional<DimId> SizeFit::FitPair(std::span<const int64_t> numbers, const Term& m,
                                      const Term& n) {
  __extension__ using Wide = __int128;
  const auto minor = [](std::span<const int64_t> a, std::span<const int64_t> b) {
    return Wide{a[0]} * b[1] - Wide{a[1]} * b[0];
  };
  const Wide determinant = minor(m.samples, n.samples);
  if (determinant == 0) return std::nullopt;
  const Wide for_m = minor(numbers, n.samples), for_n = minor(m.samples, numbers);
  if (for_m % determinant != 0 || for_n % determinant != 0) return std::nullopt;
  const Wide a = for_m / determinant, b = for_n / determinant;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (a * m.samples[i] + b * n.samples[i] != numbers[i]) return std::nullopt;
  }
  return dims_.Add(dims_.Mul(dims_.Const(static_cast<int64_t>(a)), m.value),
                   dims_.Mul(dims_.Const(static_cast<int64_t>(b)), n.value));
}

}  // namespace strata
