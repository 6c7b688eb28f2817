#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace strata::prove {

/// What stands for a floating-point number in a proof: an element of the field of integers modulo
/// the prime 2^61 - 1, or one of the codes below. There is no rounding, so equal means equal.
using Residue = uint64_t;

inline constexpr Residue kPrime = (uint64_t{1} << 61U) - 1;

/// Not in the field. Arithmetic with `kUndefined` gives it again: memory that was never written,
/// or an element that an index out of range would have read.
inline constexpr Residue kInfinity = kPrime + 1;
inline constexpr Residue kMinusInfinity = kPrime + 2;
inline constexpr Residue kNan = kPrime + 3;
inline constexpr Residue kUndefined = kPrime + 4;

constexpr bool IsNumber(Residue a) {
  return a < kPrime;
}

namespace internal {
Residue AddCodes(Residue a, Residue b);
Residue MulCodes(Residue a, Residue b);

/// `x` modulo the prime.
__extension__ constexpr Residue Reduce(unsigned __int128 x) {
  const unsigned __int128 folded = (x & kPrime) + (x >> 61U);  // below 2^68
  uint64_t sum = static_cast<uint64_t>(folded & kPrime) + static_cast<uint64_t>(folded >> 61U);
  if (sum >= kPrime) sum -= kPrime;
  return sum;
}
}  // namespace internal

inline Residue Add(Residue a, Residue b) {
  if (!IsNumber(a) || !IsNumber(b)) return internal::AddCodes(a, b);
  const Residue sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

__extension__ inline Residue Mul(Residue a, Residue b) {
  if (!IsNumber(a) || !IsNumber(b)) return internal::MulCodes(a, b);
  return internal::Reduce(static_cast<unsigned __int128>(a) * b);
}

Residue Neg(Residue a);
inline Residue Sub(Residue a, Residue b) {
  return Add(a, Neg(b));
}
/// 1/a; of 0 infinity.
Residue Inverse(Residue a);
inline Residue Div(Residue a, Residue b) {
  return Mul(a, Inverse(b));
}
/// 1/a of every element, for the price of one inverse and three products each.
void InvertAll(std::span<Residue> elements);
Residue Power(Residue a, uint64_t exponent);

Residue FromInteger(int64_t value);
/// The image of a literal. Every double is m·2^e and has an exact image; but a literal that is the
/// double or float nearest to a small fraction n/d, or to its root, stands for that number, so that
/// 1/3 times 3 is 1, and a literal that was printed as a float equals the same one printed as a
/// double.
Residue FromLiteral(double value);

/// An order of the field, the same for both graphs, in which opposites have opposite signs and
/// small fractions stand as their numbers do; the others are spread among those of usual bounds.
/// -1, 0, 1. REQUIRES: neither is NaN or undefined.
int Compare(Residue a, Residue b);

/// `Compare` with the image of a literal, which stands where its number does, however small or
/// large.
int CompareToLiteral(Residue a, double literal);

/// A fraction from 0 to 1, without 1, as a random generator draws it.
Residue PartOfOne(uint64_t bits);

/// The integer part of a fraction of small terms, towards 0, or a whole number below 2^50; none:
/// `a` is neither. One in a thousand random numbers is such a whole number.
std::optional<int64_t> WholeOf(Residue a);
/// `WholeOf`; of another number an integer of which only this is known: it is a function of the
/// number, and opposite numbers have opposite ones.
int64_t Truncate(Residue a);

/// A function of which only this is known: equal arguments give equal results. Never 0.
Residue Uninterpreted(uint64_t function, Residue a);
/// exp of every element: uninterpreted but for exp(-a) = 1/exp(a), exp(0) = 1 and exp(-inf) = 0.
void ExpAll(std::span<Residue> elements);

}  // namespace strata::prove
