#include "prove/values/tensor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata::prove {
namespace {

Sizes ContiguousStrides(const Sizes& sizes, int64_t words) {
  Sizes strides(sizes.size());
  int64_t stride = words;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  return strides;
}

/// Strides under which a tensor has other sizes, without a copy; none: there are no such.
/// Source: aten/src/ATen/TensorUtils.cpp, computeStride.
std::optional<Sizes> ViewStrides(const Tensor& tensor, const Sizes& sizes) {
  if (tensor.numel() == 0) return ContiguousStrides(sizes, tensor.words_per_element());
  Sizes strides(sizes.size(), tensor.words_per_element());
  auto dim = static_cast<int64_t>(sizes.size()) - 1;
  int64_t chunk = 1, chunk_view = 1;
  int64_t base = tensor.dim() == 0 ? tensor.words_per_element() : tensor.strides().back();
  for (int64_t from = tensor.dim() - 1; from >= 0; --from) {
    chunk *= tensor.size(from);
    const bool ends_chunk =
        from == 0 || (tensor.size(from - 1) != 1 &&
                      tensor.strides()[static_cast<size_t>(from - 1)] != chunk * base);
    if (!ends_chunk) continue;
    while (dim >= 0 && (chunk_view < chunk || sizes[static_cast<size_t>(dim)] == 1)) {
      strides[static_cast<size_t>(dim)] = chunk_view * base;
      chunk_view *= sizes[static_cast<size_t>(dim)];
      --dim;
    }
    if (chunk_view != chunk) return std::nullopt;
    if (from > 0) {
      base = tensor.strides()[static_cast<size_t>(from - 1)];
      chunk = chunk_view = 1;
    }
  }
  return dim == -1 ? std::optional(strides) : std::nullopt;
}

}  // namespace

int64_t Product(std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes)
    product *= size;
  return product;
}

Tensor::Tensor(Domain domain, Sizes sizes, uint64_t word)
    : domain_(domain), sizes_(std::move(sizes)), storage_(std::make_shared<Storage>()) {
  strides_ = ContiguousStrides(sizes_, words_per_element());
  storage_->words.assign(static_cast<size_t>(numel() * words_per_element()), word);
}

Tensor::Tensor(Domain domain, std::shared_ptr<Storage> storage, Sizes sizes, Sizes strides,
               int64_t offset)
    : domain_(domain),
      sizes_(std::move(sizes)),
      strides_(std::move(strides)),
      offset_(offset),
      storage_(std::move(storage)) {}

int64_t Tensor::numel() const {
  return Product(sizes_);
}

bool Tensor::IsContiguous() const {
  int64_t stride = words_per_element();
  for (size_t dim = sizes_.size(); dim-- > 0;) {
    if (sizes_[dim] != 1 && strides_[dim] != stride) return false;
    stride *= sizes_[dim];
  }
  return true;
}

std::vector<uint64_t> Tensor::Read() const {
  const auto count = static_cast<size_t>(numel() * words_per_element());
  const uint64_t* data = storage_->words.data();
  if (IsContiguous()) return {data + offset_, data + offset_ + count};
  std::vector<uint64_t> words(count);
  if (domain_ == Domain::kComplex) {
    size_t next = 0;
    ForEachOffset(*this, [&](int64_t at) {
      words[next++] = data[at];
      words[next++] = data[at + 1];
    });
    return words;
  }
  // Row by row: most of the time of a large proof is in copies of transposed matrices.
  const int64_t columns = sizes_.back(), stride = strides_.back();
  const Tensor rows(domain_, storage_, Sizes(sizes_.begin(), sizes_.end() - 1),
                    Sizes(strides_.begin(), strides_.end() - 1), offset_);
  uint64_t* next = words.data();
  if (columns > 0) {
    ForEachOffset(rows, [&](int64_t at) {
      for (int64_t i = 0; i < columns; ++i)
        *next++ = data[at + i * stride];
    });
  }
  return words;
}

void Tensor::Write(std::span<const uint64_t> words) const {
  uint64_t* data = storage_->words.data();
  size_t next = 0;
  ForEachOffset(*this, [&](int64_t at) {
    data[at] = words[next++];
    if (domain_ == Domain::kComplex) data[at + 1] = words[next++];
  });
  ++storage_->version;
}

Tensor Tensor::Copy() const {
  Tensor copy;
  copy.domain_ = domain_;
  copy.sizes_ = sizes_;
  copy.strides_ = ContiguousStrides(sizes_, words_per_element());
  copy.storage_ = std::make_shared<Storage>();
  copy.storage_->words = Read();
  if (const Laws* known = laws()) copy.SetLaws(*known);
  return copy;
}

Tensor Tensor::Reshape(Sizes sizes) const {
  if (std::optional<Sizes> strides = ViewStrides(*this, sizes))
    return {domain_, storage_, std::move(sizes), *std::move(strides), offset_};
  Tensor copy = Copy();
  copy.laws_ = nullptr;
  copy.strides_ = ContiguousStrides(sizes, words_per_element());
  copy.sizes_ = std::move(sizes);
  return copy;
}

Result<Tensor> Tensor::Expand(const Sizes& sizes) const {
  if (sizes.size() < sizes_.size())
    return Error(ErrorCode::kInvalid, "[{}] does not broadcast to [{}]", fmt::join(sizes_, ", "),
                 fmt::join(sizes, ", "));
  const size_t more = sizes.size() - sizes_.size();
  Sizes strides(sizes.size(), 0), expanded = sizes;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    const int64_t from = dim < more ? 1 : sizes_[dim - more];
    if (expanded[dim] < 0) expanded[dim] = from;
    if (from == expanded[dim]) {
      if (dim >= more) strides[dim] = strides_[dim - more];
    } else if (from != 1) {
      return Error(ErrorCode::kInvalid, "[{}] does not broadcast to [{}]", fmt::join(sizes_, ", "),
                   fmt::join(sizes, ", "));
    }
  }
  return Tensor(domain_, storage_, std::move(expanded), std::move(strides), offset_);
}

const Laws* Tensor::laws() const {
  return laws_ != nullptr && storage_->version == laws_version_ ? laws_.get() : nullptr;
}

void Tensor::SetLaws(Laws laws) {
  laws_ = std::make_shared<const Laws>(std::move(laws));
  laws_version_ = storage_->version;
}

Result<Sizes> BroadcastSizes(const Sizes& a, const Sizes& b) {
  const Sizes& longer = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  Sizes sizes = longer;
  const size_t more = longer.size() - shorter.size();
  for (size_t dim = 0; dim < shorter.size(); ++dim) {
    int64_t& size = sizes[more + dim];
    if (size == shorter[dim] || shorter[dim] == 1) continue;
    if (size != 1)
      return Error(ErrorCode::kInvalid, "[{}] and [{}] do not broadcast", fmt::join(a, ", "),
                   fmt::join(b, ", "));
    size = shorter[dim];
  }
  return sizes;
}

bool SameElements(const Tensor& expected, const Tensor& actual) {
  if (expected.domain() != actual.domain() || expected.sizes() != actual.sizes()) return false;
  if (expected.storage() == actual.storage() && expected.strides() == actual.strides() &&
      expected.offset() == actual.offset())
    return true;
  const std::vector<uint64_t> a = expected.Read(), b = actual.Read();
  if (expected.domain() == Domain::kInteger) return a == b;
  return std::ranges::equal(a, b, [](Residue x, Residue y) { return x == y || x == kUndefined; });
}

}  // namespace strata::prove
