#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "viewer/compare/workers.h"

namespace strata::viewer {

/// A value that a worker makes from what a key names. Use from the thread that polls the workers;
/// nothing is delivered after that thread has stopped polling.
template <class T>
class AsyncValue {
 public:
  explicit AsyncValue(std::string slot) : slot_(std::move(slot)) {}

  /// The value of `key`, which `make` makes on a worker. Null until it is there; a new key makes
  /// the work for an earlier one outdated.
  template <class Make>
  const T* Get(Workers& workers, const std::string& key, Make make) {
    if (key_ != key) {
      key_ = key;
      value_.reset();
      workers.Post(slot_, [this, make = std::move(make)](const Outdated&) -> Workers::Deliver {
        auto made = std::make_shared<T>(make());
        return [this, made] { value_ = std::move(*made); };
      });
    }
    return value_ ? &*value_ : nullptr;
  }

  /// Forgets the value, so that the next Get makes it anew.
  void Reset() { key_.reset(); }

 private:
  const std::string slot_;
  std::optional<std::string> key_;
  std::optional<T> value_;
};

}  // namespace strata::viewer
