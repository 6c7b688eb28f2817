#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "prove/values/field.h"

namespace strata::prove {

/// What the words of an element are.
enum class Domain : uint8_t {
  kFloat,    ///< one Residue
  kComplex,  ///< two: real and imaginary part
  kInteger,  ///< an int64; truth values are 0 and 1
};

using Sizes = std::vector<int64_t>;

/// Memory of a tensor and of its views. `version` counts the operators that wrote to it.
struct Storage {
  std::vector<uint64_t> words;
  uint64_t version = 0;
};

class Tensor;

/// Equations that hold for a tensor beside its values, as far as they are known. They make proofs
/// of programs that spell a function in another way: a softmax with and without a shift.
struct Laws {
  std::shared_ptr<const Tensor> exponential;          ///< exp of the tensor
  std::shared_ptr<const Tensor> square;               ///< its square
  std::shared_ptr<const Tensor> minuend, subtrahend;  ///< it is their difference
  std::shared_ptr<const Tensor> scaled, shift;        ///< it is scaled / exp(shift)
};

/// All of them, for what treats each alike.
using Law = std::shared_ptr<const Tensor> Laws::*;
inline constexpr std::array<Law, 6> kLaws = {&Laws::exponential, &Laws::square, &Laws::minuend,
                                             &Laws::subtrahend,  &Laws::scaled, &Laws::shift};

/// A tensor in a proof: a view of shared memory, as in PyTorch.
class Tensor {
 public:
  Tensor() = default;
  /// A contiguous tensor of its own memory, filled with `word`.
  Tensor(Domain domain, Sizes sizes, uint64_t word = 0);
  /// A view. Strides and offset in words.
  Tensor(Domain domain, std::shared_ptr<Storage> storage, Sizes sizes, Sizes strides,
         int64_t offset);

  Domain domain() const { return domain_; }
  const Sizes& sizes() const { return sizes_; }
  const Sizes& strides() const { return strides_; }  ///< in words
  int64_t offset() const { return offset_; }         ///< in words
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t size(int64_t dim) const { return sizes_[static_cast<size_t>(dim)]; }
  int64_t numel() const;
  int64_t words_per_element() const { return domain_ == Domain::kComplex ? 2 : 1; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  bool IsContiguous() const;

  /// The words of all elements, in row-major order.
  std::vector<uint64_t> Read() const;
  /// Overwrites all elements. REQUIRES: as many words as `Read` returns.
  void Write(std::span<const uint64_t> words) const;
  /// A contiguous copy in memory of its own.
  Tensor Copy() const;
  /// The same elements under other sizes: a view where strides allow it, else a copy.
  /// REQUIRES: as many elements.
  Tensor Reshape(Sizes sizes) const;
  /// A view that repeats dimensions of size 1. Errors: the sizes do not broadcast.
  Result<Tensor> Expand(const Sizes& sizes) const;

  /// Null, or what is known of the present content.
  const Laws* laws() const;
  void SetLaws(Laws laws);

 private:
  Domain domain_ = Domain::kFloat;
  Sizes sizes_, strides_;
  int64_t offset_ = 0;
  std::shared_ptr<Storage> storage_;
  std::shared_ptr<const Laws> laws_;
  uint64_t laws_version_ = 0;
};

int64_t Product(std::span<const int64_t> sizes);

/// Calls `fn(offset)` with the place of every element in its storage, in row-major order.
template <class Fn>
void ForEachOffset(const Tensor& tensor, Fn&& fn) {
  const int64_t count = tensor.numel();
  if (count == 0) return;
  const size_t rank = tensor.sizes().size();
  Sizes index(rank, 0);
  int64_t offset = tensor.offset();
  for (int64_t i = 0; i < count; ++i) {
    fn(offset);
    for (size_t dim = rank; dim-- > 0;) {
      offset += tensor.strides()[dim];
      if (++index[dim] < tensor.sizes()[dim]) break;
      offset -= index[dim] * tensor.strides()[dim];
      index[dim] = 0;
    }
  }
}

/// The sizes to which both broadcast. Errors: they do not.
Result<Sizes> BroadcastSizes(const Sizes& a, const Sizes& b);

/// Whether the tensors have equal sizes and elements. An element that is undefined in `expected`
/// equals any other.
bool SameElements(const Tensor& expected, const Tensor& actual);

}  // namespace strata::prove
