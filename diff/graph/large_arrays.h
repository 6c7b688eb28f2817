#pragma once
#include <cstddef>
#include <vector>

#include "base/id.h"

// Arrays of a large graph are read in any order. In pages of 4 KB nearly every access would miss
// the table of pages too, and each page costs a fault when it is touched first.
namespace strata {

/// Asks for huge pages at `bytes` that nothing was written to yet; only a hint.
void AdviseHugePages(const void* begin, size_t bytes);

/// Reserves as `vector.reserve(size)` does, in huge pages where these are enough for some. For
/// arrays that are going to be filled.
template <class T>
void ReserveLarge(std::vector<T>& vector, size_t size) {
  vector.reserve(size);
  AdviseHugePages(vector.data(), size * sizeof(T));
}
template <class IdType, class T>
void ReserveLarge(IdVector<IdType, T>& vector, size_t size) {
  ReserveLarge(vector.values(), size);
}

/// As `vector.assign(size, value)`. REQUIRES: `vector` is empty.
template <class Vector, class T>
void AssignLarge(Vector& vector, size_t size, const T& value) {
  ReserveLarge(vector, size);
  vector.assign(size, value);
}

/// As `Vector(size)`.
template <class Vector>
Vector MakeLarge(size_t size) {
  Vector vector;
  ReserveLarge(vector, size);
  vector.resize(size);
  return vector;
}

/// Returns to the system what was freed.
void ReturnFreedMemory();

}  // namespace strata
