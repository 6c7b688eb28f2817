#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "prove/values/tensor.h"

namespace strata::prove {

/// The tensor in another domain: integers become their images, numbers complex ones.
/// REQUIRES: not from numbers to integers, unless all are small.
Tensor ConvertTo(const Tensor& tensor, Domain domain);

/// The domain in which both can be computed.
inline Domain Common(Domain a, Domain b) {
  if (a == Domain::kComplex || b == Domain::kComplex) return Domain::kComplex;
  return a == Domain::kFloat || b == Domain::kFloat ? Domain::kFloat : Domain::kInteger;
}

// Elements of the domain of integers, and what they stand for.
inline int64_t Signed(uint64_t word) {
  return static_cast<int64_t>(word);
}
inline uint64_t Word(int64_t value) {
  return static_cast<uint64_t>(value);
}

/// A contiguous tensor of these words.
inline Tensor OfWords(Domain domain, Sizes sizes, std::vector<uint64_t> words) {
  Tensor tensor(domain, {}, 0);
  auto storage = std::make_shared<Storage>();
  storage->words = std::move(words);
  Sizes strides(sizes.size());
  int64_t stride = domain == Domain::kComplex ? 2 : 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= sizes[dim] > 1 ? sizes[dim] : 1;
  }
  return {domain, std::move(storage), std::move(sizes), std::move(strides), 0};
}

/// `fn` of each word. REQUIRES: not complex.
template <class Fn>
Tensor Map(const Tensor& a, Domain domain, Fn&& fn) {
  std::vector<uint64_t> words = a.Read();
  for (uint64_t& word : words)
    word = fn(word);
  return OfWords(domain, a.sizes(), std::move(words));
}

/// `fn` of each pair of words of two tensors, broadcast. REQUIRES: not complex.
template <class Fn>
Result<Tensor> Map(const Tensor& a, const Tensor& b, Domain domain, Fn&& fn) {
  STRATA_TRY(const Sizes sizes, BroadcastSizes(a.sizes(), b.sizes()));
  STRATA_TRY(const Tensor x, a.Expand(sizes));
  STRATA_TRY(const Tensor y, b.Expand(sizes));
  std::vector<uint64_t> words = x.Read();
  const std::vector<uint64_t> others = y.Read();
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = fn(words[i], others[i]);
  return OfWords(domain, sizes, std::move(words));
}

// The arithmetic of tensors, for definitions that are formulas. Operands broadcast; integers and
// numbers meet as numbers. Errors: they do not broadcast.
Result<Tensor> Add(const Tensor& a, const Tensor& b);
Result<Tensor> Sub(const Tensor& a, const Tensor& b);
Result<Tensor> Mul(const Tensor& a, const Tensor& b);
Result<Tensor> Div(const Tensor& a, const Tensor& b);
/// The largest whole number that is not above a/b; of integers 0 where b is.
Result<Tensor> DivFloor(const Tensor& a, const Tensor& b);
/// a/b without its fraction; of integers 0 where b is.
Result<Tensor> DivTrunc(const Tensor& a, const Tensor& b);
Tensor Scale(const Tensor& a, Residue factor);
/// 1/a. REQUIRES: numbers.
Tensor Reciprocal(const Tensor& a);
/// exp, by what is known of the tensor.
Tensor Exp(const Tensor& a);
/// The largest whole number that is not above each element: of a fraction of small terms that
/// number, of others a function of which only equality is known. REQUIRES: numbers.
Tensor Floor(const Tensor& a);
/// Each element without its fraction, as -floor(-a) where it is negative. REQUIRES: numbers.
Tensor Trunc(const Tensor& a);
/// A function of which only equality is known.
Tensor Apply(uint64_t function, const Tensor& a);
/// The key of a function by its name.
uint64_t FunctionKey(std::string_view name);
/// Sum over `dims`. REQUIRES: dims are in range; not negative.
Tensor SumOver(const Tensor& a, const Sizes& dims, bool keep);

}  // namespace strata::prove
