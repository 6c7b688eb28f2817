#include "prove/values/field.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"

namespace strata::prove {
namespace {

constexpr uint64_t kExpFunction = 0x6578706f6e656e74U;
constexpr uint64_t kTruncateFunction = 0x7472756e63617465U;
constexpr uint64_t kMagnitudeFunction = 0x6d61676e69747564U;

/// Fractions of these denominators, up to 10^7, stand in their order, as whole numbers do. Without
/// a factor 1/2, whose image is half of the prime, would be less than all others.
constexpr int64_t kDenominators = int64_t{1024} * 9 * 625 * 1001;
constexpr int64_t kLargestInOrder = 10'000'000;

/// The number of 1/kDenominators that a number is; negative for half of the field.
int64_t Multiple(Residue a) {
  const Residue multiple = Mul(a, static_cast<Residue>(kDenominators));
  const auto value = static_cast<int64_t>(multiple);
  return multiple <= kPrime / 2 ? value : value - static_cast<int64_t>(kPrime);
}

/// Another number stands among those from 1/8 to 32 of either sign, and each factor of 2 has as
/// many: so that some are on either side of a bound, and between two of them.
double RandomPlace(int64_t multiple) {
  const uint64_t bits = Mix(kMagnitudeFunction ^ static_cast<uint64_t>(std::abs(multiple)));
  constexpr uint64_t kSteps = 1U << 20U;
  const double mantissa = 1 + static_cast<double>(bits % kSteps) / kSteps;
  const double magnitude =
      std::ldexp(static_cast<double>(kDenominators) * mantissa, static_cast<int>(bits >> 61U) - 3);
  const bool is_negative = (bits >> 60U & 1U) != static_cast<uint64_t>(multiple < 0);
  return is_negative ? -magnitude : magnitude;
}

/// Where a value stands in the order, in 1/kDenominators; those of one place stand as their
/// multiples do.
double Place(Residue a) {
  if (a == kInfinity) return std::numeric_limits<double>::infinity();
  if (a == kMinusInfinity) return -std::numeric_limits<double>::infinity();
  const int64_t multiple = Multiple(a);
  if (std::abs(multiple) <= kDenominators * kLargestInOrder) return static_cast<double>(multiple);
  constexpr int64_t kLargestWhole = int64_t{1} << 50;
  const int64_t whole = a <= kPrime / 2 ? static_cast<int64_t>(a)
                                        : static_cast<int64_t>(a) - static_cast<int64_t>(kPrime);
  return std::abs(whole) <= kLargestWhole
             ? static_cast<double>(whole) * static_cast<double>(kDenominators)
             : RandomPlace(multiple);
}

bool IsPositive(Residue a) {
  return a == kInfinity || (IsNumber(a) && Place(a) > 0);
}

/// A number whose square is `a`, or else -a: one of the two has a root. So the root of a product is
/// the product of the roots, and that of 1/a is 1/root.
Residue Root(Residue a) {
  return Power(a, (kPrime + 1) / 4);  // the prime is 3 modulo 4
}

Residue Fraction(int64_t numerator, int64_t denominator) {
  return Div(FromInteger(numerator), FromInteger(denominator));
}

constexpr int64_t kMaxTerm = 4096;      // of fractions nearest to a double
constexpr int64_t kMaxFloatTerm = 512;  // to a float: more would be nearest by chance

bool IsNearest(double value, double exact, int64_t numerator, int64_t denominator) {
  if (value == exact) return true;
  return numerator <= kMaxFloatTerm && denominator <= kMaxFloatTerm &&
         value == static_cast<double>(static_cast<float>(exact));
}

/// The image of n/d or its root if `value`, which is positive, is nearest to it; else kUndefined.
Residue FromSmallFraction(double value) {
  for (int64_t d = 1; d <= kMaxTerm; ++d) {
    const double n = std::round(value * static_cast<double>(d));
    if (n < 1 || n > static_cast<double>(kMaxTerm)) continue;
    if (IsNearest(value, n / static_cast<double>(d), static_cast<int64_t>(n), d))
      return Fraction(static_cast<int64_t>(n), d);
  }
  for (int64_t d = 1; d <= kMaxTerm; ++d) {
    const double n = std::round(value * value * static_cast<double>(d));
    if (n < 1 || n > static_cast<double>(kMaxTerm)) continue;
    const double root = std::sqrt(n / static_cast<double>(d));
    const double inverse = 1.0 / std::sqrt(static_cast<double>(d) / n);
    if (value == root || value == inverse) return Root(Fraction(static_cast<int64_t>(n), d));
  }
  return kUndefined;
}

/// m·2^e, exactly.
Residue FromDyadic(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  const Residue m = FromInteger(static_cast<int64_t>(std::ldexp(mantissa, 53)));
  exponent -= 53;
  const Residue power = Power(2, static_cast<uint64_t>(std::abs(exponent)));
  return exponent < 0 ? Div(m, power) : Mul(m, power);
}

}  // namespace

namespace internal {

Residue AddCodes(Residue a, Residue b) {
  if (a == kUndefined || b == kUndefined) return kUndefined;
  if (a == kNan || b == kNan) return kNan;
  if (IsNumber(a)) return b;
  if (IsNumber(b) || a == b) return a;
  return kNan;
}

Residue MulCodes(Residue a, Residue b) {
  if (a == kUndefined || b == kUndefined) return kUndefined;
  if (a == kNan || b == kNan || a == 0 || b == 0) return kNan;
  return IsPositive(a) == IsPositive(b) ? kInfinity : kMinusInfinity;
}

}  // namespace internal

Residue Neg(Residue a) {
  if (a == kInfinity) return kMinusInfinity;
  if (a == kMinusInfinity) return kInfinity;
  if (!IsNumber(a) || a == 0) return a;
  return kPrime - a;
}

Residue Inverse(Residue a) {
  if (a == 0) return kInfinity;
  if (a == kInfinity || a == kMinusInfinity) return 0;
  if (!IsNumber(a)) return a;
  return Power(a, kPrime - 2);
}

void InvertAll(std::span<Residue> elements) {
  // Montgomery, "Speeding the Pollard and elliptic curve methods of factorization", 1987.
  std::vector<Residue> products;  // of the numbers before each one
  products.reserve(elements.size());
  Residue product = 1;
  const auto is_unit = [](Residue a) { return IsNumber(a) && a != 0; };
  for (const Residue element : elements) {
    products.push_back(product);
    if (is_unit(element)) product = Mul(product, element);
  }
  Residue inverse = Inverse(product);
  for (size_t i = elements.size(); i-- > 0;) {
    const Residue element = elements[i];
    if (is_unit(element)) {
      elements[i] = Mul(inverse, products[i]);
      inverse = Mul(inverse, element);
    } else {
      elements[i] = Inverse(element);
    }
  }
}

Residue Power(Residue a, uint64_t exponent) {
  Residue power = 1;
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) power = Mul(power, a);
    if (exponent > 1) a = Mul(a, a);
  }
  return power;
}

Residue FromInteger(int64_t value) {
  const int64_t prime = static_cast<int64_t>(kPrime);
  const int64_t rest = value % prime;
  return static_cast<Residue>(rest < 0 ? rest + prime : rest);
}

namespace {

/// A float that was written with few digits, as 0.999 in f32, is the double of these digits; more
/// would be so by chance.
double AsWritten(double value) {
  constexpr size_t kMostDigits = 4;
  const auto rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) != value) return value;
  std::array<char, 32> buffer{};
  const char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), rounded,
                                        std::chars_format::scientific)
                              .ptr;
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const std::string_view mantissa = text.substr(0, text.find('e'));
  if (mantissa.size() > kMostDigits + 1) return value;  // with its point
  double written = value;
  std::from_chars(text.data(), end, written);
  return written;
}

Residue OfFraction(double value) {
  const double size = AsWritten(std::abs(value));
  Residue image = FromSmallFraction(size);
  if (image == kUndefined) {
    const auto nearest = static_cast<double>(static_cast<float>(size));
    const bool has_float = std::isfinite(nearest) && nearest > 0;
    const double rounded = has_float ? AsWritten(nearest) : size;
    if (has_float) image = FromSmallFraction(rounded);
    if (image == kUndefined) image = FromDyadic(rounded);
  }
  return value < 0 ? Neg(image) : image;
}

}  // namespace

Residue FromLiteral(double value) {
  if (std::isnan(value)) return kNan;
  if (std::isinf(value)) return value > 0 ? kInfinity : kMinusInfinity;
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::abs(value) <= kExactIntegers)
    return FromInteger(static_cast<int64_t>(value));
  // A program has few literals, and every rank reads them.
  constexpr size_t kMostKnown = 1024;
  thread_local std::unordered_map<double, Residue> known;
  if (const auto found = known.find(value); found != known.end()) return found->second;
  if (known.size() == kMostKnown) known.clear();
  return known.emplace(value, OfFraction(value)).first->second;
}

int Compare(Residue a, Residue b) {
  if (a == b) return 0;
  const double first = Place(a), second = Place(b);
  if (first != second) return first < second ? -1 : 1;
  return Multiple(a) < Multiple(b) ? -1 : 1;
}

int CompareToLiteral(Residue a, double literal) {
  const Residue image = FromLiteral(literal);
  if (a == image || !IsNumber(a) || !IsNumber(image)) return Compare(a, image);
  return Place(a) < literal * static_cast<double>(kDenominators) ? -1 : 1;
}

Residue PartOfOne(uint64_t bits) {
  static const Residue kUnit = Inverse(FromInteger(kDenominators));
  return Mul(bits % static_cast<uint64_t>(kDenominators), kUnit);
}

std::optional<int64_t> WholeOf(Residue a) {
  constexpr int64_t kLargest = int64_t{1} << 20, kLargestWhole = int64_t{1} << 50;
  if (!IsNumber(a)) return std::nullopt;
  if (const int64_t whole = Multiple(a) / kDenominators; std::abs(whole) < kLargest) return whole;
  const int64_t number =
      static_cast<int64_t>(a) - (a <= kPrime / 2 ? 0 : static_cast<int64_t>(kPrime));
  return std::abs(number) < kLargestWhole ? std::optional(number) : std::nullopt;
}

int64_t Truncate(Residue a) {
  if (const std::optional<int64_t> whole = WholeOf(a)) return *whole;
  if (!IsNumber(a)) return static_cast<int64_t>(a) - static_cast<int64_t>(kPrime);
  const bool is_negative = a > kPrime / 2;
  const auto known =
      static_cast<int64_t>(Uninterpreted(kTruncateFunction, is_negative ? kPrime - a : a) / 2);
  return is_negative ? -known : known;
}

Residue Uninterpreted(uint64_t function, Residue a) {
  if (a == kUndefined || a == kNan) return a;
  return 1 + Mix(function ^ Mix(a ^ Mix(function))) % (kPrime - 1);
}

void ExpAll(std::span<Residue> elements) {
  std::vector<size_t> places;  // of the negative ones
  std::vector<Residue> inverses;
  for (size_t i = 0; i < elements.size(); ++i) {
    Residue& a = elements[i];
    if (a == 0 || a == kMinusInfinity) {
      a = a == 0 ? 1 : 0;
    } else if (IsNumber(a) && a > kPrime / 2) {
      places.push_back(i);
      inverses.push_back(Uninterpreted(kExpFunction, kPrime - a));
    } else if (IsNumber(a)) {
      a = Uninterpreted(kExpFunction, a);
    }
  }
  InvertAll(inverses);
  for (size_t k = 0; k < places.size(); ++k)
    elements[places[k]] = inverses[k];
}

}  // namespace strata::prove
