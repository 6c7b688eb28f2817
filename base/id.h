#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

namespace strata {

/// A dense index into one store, with a type of its own: `using SlotId = Id<struct SlotTag>`.
/// Meaningless outside that store: never persisted, never compared with one of another store.
template <class Tag>
struct Id {
  static constexpr int32_t kNone = -1;
  int32_t index = kNone;

  constexpr bool valid() const { return index != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A vector indexed by an Id: `IdVector<SlotId, Slot>`.
template <class IdType, class T>
class IdVector {
 public:
  using value_type = T;
  using Storage = std::vector<T>;

  IdVector() = default;
  explicit IdVector(size_t size) : values_(size) {}
  IdVector(size_t size, const T& value) : values_(size, value) {}
  IdVector(std::initializer_list<T> values) : values_(values) {}

  /// REQUIRES: `id` is valid and below `size()`.
  decltype(auto) operator[](IdType id) { return values_[static_cast<size_t>(id.index)]; }
  decltype(auto) operator[](IdType id) const { return values_[static_cast<size_t>(id.index)]; }

  /// Appends and returns the id of the new element.
  IdType Add(T value) {
    values_.push_back(std::move(value));
    return IdType{static_cast<int32_t>(values_.size()) - 1};
  }

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  /// The id that `Add` would return next.
  IdType end_id() const { return IdType{static_cast<int32_t>(values_.size())}; }
  void reserve(size_t size) { values_.reserve(size); }
  void resize(size_t size) { values_.resize(size); }
  void resize(size_t size, const T& value) { values_.resize(size, value); }
  void assign(size_t size, const T& value) { values_.assign(size, value); }
  void clear() { values_.clear(); }

  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  /// The elements as a plain vector, in order of ids.
  const Storage& values() const { return values_; }
  Storage& values() { return values_; }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  Storage values_;
};

/// Iterates over the ids of a store of `size` elements: `for (SlotId slot :
/// Ids<SlotId>(slots.size()))`.
template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(int32_t index) : index_(index) {}
    constexpr IdType operator*() const { return IdType{index_}; }
    constexpr Iterator& operator++() {
      ++index_;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    int32_t index_;
  };

  constexpr explicit IdRange(size_t size) : end_{static_cast<int32_t>(size)} {}
  /// From `begin` up to, not including, `end`.
  constexpr IdRange(IdType begin, IdType end) : begin_(begin), end_(end) {}
  constexpr Iterator begin() const { return Iterator(begin_.index); }
  constexpr Iterator end() const { return Iterator(end_.index); }
  constexpr size_t size() const { return static_cast<size_t>(end_.index - begin_.index); }
  constexpr IdType begin_id() const { return begin_; }
  constexpr IdType end_id() const { return end_; }
  constexpr bool Contains(IdType id) const { return begin_ <= id && id < end_; }

 private:
  IdType begin_{0}, end_{0};
};

template <class IdType>
constexpr IdRange<IdType> Ids(size_t size) {
  return IdRange<IdType>(size);
}
template <class IdType, class T>
constexpr IdRange<IdType> IdsOf(const IdVector<IdType, T>& values) {
  return IdRange<IdType>(values.size());
}

}  // namespace strata

template <class Tag>
struct std::hash<strata::Id<Tag>> {
  size_t operator()(strata::Id<Tag> id) const noexcept {
    return static_cast<size_t>(static_cast<uint32_t>(id.index)) * 0x9E3779B97F4A7C15ull;
  }
};
