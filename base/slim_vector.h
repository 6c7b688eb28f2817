#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace strata {

/// A vector of the size of a pointer, for lists of which there are millions and most are empty or
/// short: size and capacity, at most 2^32 - 1, stand in front of the elements. Grows as std::vector
/// does; references are valid until it grows. A single small element, an index, needs no memory but
/// the pointer's: references to it are valid until the vector moves.
template <class T>
class SlimVector {
 public:
  SlimVector() = default;
  SlimVector(const SlimVector& other) { Append(other.begin(), other.end()); }
  SlimVector(SlimVector&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SlimVector& operator=(SlimVector other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SlimVector() {
    clear();
    if (!is_inside()) Free(elements());
  }

  size_t size() const {
    if (is_inside()) return 1;
    const T* const elements = this->elements();
    return elements == nullptr ? 0 : HeadOf(elements).size;
  }
  bool empty() const { return size() == 0; }
  T* begin() { return is_inside() ? reinterpret_cast<T*>(&bytes_[kInside]) : elements(); }
  T* end() { return begin() + size(); }
  const T* begin() const { return const_cast<SlimVector*>(this)->begin(); }
  const T* end() const { return begin() + size(); }
  const T* data() const { return begin(); }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  T& front() { return begin()[0]; }
  const T& front() const { return begin()[0]; }
  T& back() { return begin()[size() - 1]; }
  const T& back() const { return begin()[size() - 1]; }

  /// Room for more elements. The first get no more than they need: mostly no others follow.
  void MakeRoom(size_t count) {
    const size_t needed = size() + count;
    if (needed > capacity()) Reserve(std::max(needed, 2 * capacity()));
  }
  void push_back(T element) {
    MakeRoom(1);
    std::construct_at(NewElements(1), std::move(element));
  }
  /// REQUIRES: the elements are none of this vector.
  void Append(const T* first, const T* last) {
    if (first == last) return;
    const auto count = static_cast<size_t>(last - first);
    MakeRoom(count);
    std::uninitialized_copy(first, last, NewElements(count));
  }
  void clear() { erase(begin(), end()); }
  /// Removes a range; what is behind it moves up. Returns where that is now.
  T* erase(T* first, T* last) {
    if (first == last) return first;
    T* const rest = std::move(last, end(), first);
    std::destroy(rest, end());
    if (is_inside()) {
      SetElements(nullptr);
      return begin();
    }
    HeadOf(elements()).size = static_cast<uint32_t>(rest - elements());
    return first;
  }

 private:
  struct Head {
    uint32_t size, capacity;
  };
  static constexpr size_t kOffset = std::max(sizeof(Head), alignof(T));
  /// Where in the vector a single element is.
  static constexpr size_t kInside = sizeof(T*) / 2;
  static constexpr bool kMayBeInside = std::endian::native == std::endian::little &&
                                       std::is_trivially_copyable_v<T> && sizeof(T) <= kInside &&
                                       sizeof(T*) == 8;
  /// Of the lowest byte: addresses of elements are even.
  static constexpr std::byte kIsInside{1};

  bool is_inside() const {
    if constexpr (kMayBeInside) return (bytes_[0] & kIsInside) != std::byte{0};
    return false;
  }
  /// REQUIRES: not is_inside().
  T* elements() const {
    T* elements = nullptr;
    std::memcpy(&elements, bytes_.data(), sizeof elements);
    return elements;
  }
  void SetElements(T* elements) { std::memcpy(bytes_.data(), &elements, sizeof elements); }

  static Head& HeadOf(T* elements) { return reinterpret_cast<Head*>(elements)[-1]; }
  static const Head& HeadOf(const T* elements) {
    return reinterpret_cast<const Head*>(elements)[-1];
  }
  static void Free(T* elements) {
    if (elements == nullptr) return;
    ::operator delete(reinterpret_cast<std::byte*>(elements) - kOffset);
  }
  size_t capacity() const {
    if (is_inside()) return 1;
    const T* const elements = this->elements();
    return elements == nullptr ? (kMayBeInside ? 1 : 0) : HeadOf(elements).capacity;
  }

  /// Counts `count` more elements, which the caller makes. REQUIRES: there is room.
  T* NewElements(size_t count) {
    if (!is_inside() && elements() == nullptr) {
      bytes_[0] = kIsInside;
      return begin();
    }
    T* const first = end();
    HeadOf(elements()).size += static_cast<uint32_t>(count);
    return first;
  }

  /// REQUIRES: `capacity` elements are more than there are.
  void Reserve(size_t capacity) {
    auto* const memory = static_cast<std::byte*>(::operator new(kOffset + capacity * sizeof(T)));
    T* const elements = reinterpret_cast<T*>(memory + kOffset);
    std::uninitialized_move(begin(), end(), elements);
    std::construct_at(&HeadOf(elements),
                      Head{static_cast<uint32_t>(size()), static_cast<uint32_t>(capacity)});
    std::destroy(begin(), end());
    if (!is_inside()) Free(this->elements());
    SetElements(elements);
  }

  alignas(
      T*) std::array<std::byte, sizeof(T*)> bytes_{};  // elements(), or kIsInside and the element
};

/// Removes the elements for which `is_gone`.
template <class T, class IsGone>
void EraseIf(SlimVector<T>& vector, IsGone&& is_gone) {
  vector.erase(std::remove_if(vector.begin(), vector.end(), is_gone), vector.end());
}

}  // namespace strata
