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

void KeepSquare(const Tensor& a, const Tensor& b, Tensor& sum) {
  if (SquareOf(a) == nullptr && SquareOf(b) == nullptr) return;
  if (a.sizes() != b.sizes() || a.domain() != Domain::kFloat || b.domain() != Domain::kFloat)
    return;
  const std::vector<uint64_t> of_a = a.Read(), of_b = b.Read();
  const auto squares_of = [](const Tensor& x, const std::vector<uint64_t>& words) {
    if (const Tensor* known = SquareOf(x)) return known->Read();
    std::vector<uint64_t> squares;
    for (const Residue word : words)
      squares.push_back(Mul(word, word));
    return squares;
  };
  std::vector<uint64_t> squares = squares_of(a, of_a);
  const std::vector<uint64_t> others = squares_of(b, of_b);
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
