#include "prove/ops/square_law.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "prove/ops/elementwise.h"
#include "prove/values/field.h"

namespace strata::prove {
namespace {

const Tensor* SquareOf(const Tensor& x) {
  return x.laws() == nullptr ? nullptr : x.laws()->square.get();
}

}  // namespace

Tensor SquaresOf(const Tensor& x) {
  if (const Tensor* known = SquareOf(x)) return *known;
  std::vector<uint64_t> words = x.Read();
  for (uint64_t& word : words)
    word = Mul(word, word);
  return OfWords(Domain::kFloat, x.sizes(), std::move(words));
}

void KeepSquare(const Tensor& a, const Tensor& b, Tensor& sum) {
  if (SquareOf(a) == nullptr && SquareOf(b) == nullptr) return;
  if (a.sizes() != b.sizes() || a.domain() != Domain::kFloat || b.domain() != Domain::kFloat)
    return;
  const std::vector<uint64_t> of_a = a.Read(), of_b = b.Read();
  std::vector<uint64_t> squares = SquaresOf(a).Read();
  const std::vector<uint64_t> others = SquaresOf(b).Read();
  for (size_t i = 0; i < squares.size(); ++i) {
    if (of_a[i] != 0 && of_b[i] != 0) return;
    if (of_a[i] == 0) squares[i] = others[i];
  }
  Laws laws;
  laws.square =
      std::make_shared<const Tensor>(OfWords(Domain::kFloat, a.sizes(), std::move(squares)));
  sum.SetLaws(std::move(laws));
}

}  // namespace strata::prove
