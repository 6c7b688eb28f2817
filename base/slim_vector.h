#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace strata {

/// A vector of the size of a pointer, for lists of which there are millions and most are empty or
/// short: size and capacity, at most 2^32 - 1, stand in front of the elements. Grows as std::vector
/// does; references are valid until it grows.
template <class T>
class SlimVector {
 public:
  SlimVector() = default;
  SlimVector(const SlimVector& other) { Append(other.begin(), other.end()); }
  SlimVector(SlimVector&& other) noexcept : elements_(std::exchange(other.elements_, nullptr)) {}
  SlimVector& operator=(SlimVector other) noexcept {
    std::swap(elements_, other.elements_);
    return *this;
  }
  ~SlimVector() {
    clear();
    Free(elements_);
  }

  size_t size() const { return elements_ == nullptr ? 0 : HeadOf(elements_).size; }
  bool empty() const { return size() == 0; }
  T* begin() { return elements_; }
  T* end() { return elements_ + size(); }
  const T* begin() const { return elements_; }
  const T* end() const { return elements_ + size(); }
  const T* data() const { return elements_; }
  T& operator[](size_t i) { return elements_[i]; }
  const T& operator[](size_t i) const { return elements_[i]; }
  T& front() { return elements_[0]; }
  const T& front() const { return elements_[0]; }
  T& back() { return elements_[size() - 1]; }
  const T& back() const { return elements_[size() - 1]; }

  /// Room for more elements. The first get no more than they need: mostly no others follow.
  void MakeRoom(size_t count) {
    const size_t needed = size() + count;
    if (needed > capacity()) Reserve(std::max(needed, 2 * capacity()));
  }
  void push_back(T element) {
    MakeRoom(1);
    std::construct_at(end(), std::move(element));
    ++HeadOf(elements_).size;
  }
  /// REQUIRES: the elements are none of this vector.
  void Append(const T* first, const T* last) {
    if (first == last) return;
    MakeRoom(static_cast<size_t>(last - first));
    std::uninitialized_copy(first, last, end());
    HeadOf(elements_).size += static_cast<uint32_t>(last - first);
  }
  void clear() { erase(begin(), end()); }
  /// Removes a range; what is behind it moves up. Returns where that is now.
  T* erase(T* first, T* last) {
    if (first == last) return first;
    T* const rest = std::move(last, end(), first);
    std::destroy(rest, end());
    HeadOf(elements_).size = static_cast<uint32_t>(rest - elements_);
    return first;
  }

 private:
  struct Head {
    uint32_t size, capacity;
  };
  static constexpr size_t kOffset = std::max(sizeof(Head), alignof(T));

  static Head& HeadOf(T* elements) { return reinterpret_cast<Head*>(elements)[-1]; }
  static const Head& HeadOf(const T* elements) {
    return reinterpret_cast<const Head*>(elements)[-1];
  }
  static void Free(T* elements) {
    if (elements == nullptr) return;
    ::operator delete(reinterpret_cast<std::byte*>(elements) - kOffset);
  }
  size_t capacity() const { return elements_ == nullptr ? 0 : HeadOf(elements_).capacity; }

  /// REQUIRES: `capacity` elements are more than there are.
  void Reserve(size_t capacity) {
    auto* const memory = static_cast<std::byte*>(::operator new(kOffset + capacity * sizeof(T)));
    T* const elements = reinterpret_cast<T*>(memory + kOffset);
    std::uninitialized_move(begin(), end(), elements);
    std::construct_at(&HeadOf(elements),
                      Head{static_cast<uint32_t>(size()), static_cast<uint32_t>(capacity)});
    std::destroy(begin(), end());
    Free(elements_);
    elements_ = elements;
  }

  T* elements_ = nullptr;
};

/// Removes the elements for which `is_gone`.
template <class T, class IsGone>
void EraseIf(SlimVector<T>& vector, IsGone&& is_gone) {
  vector.erase(std::remove_if(vector.begin(), vector.end(), is_gone), vector.end());
}

}  // namespace strata
