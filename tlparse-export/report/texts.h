#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"

namespace strata {

/// The texts of a report, each once however many graphs hold it; the page refers to them by number.
class Texts {
 public:
  /// Longer texts are cut, with an ellipsis: the end of a name of megabytes is of no use.
  static constexpr size_t kMaxLength = 2000;

  /// The number of a text; -1 of the empty one.
  int64_t Add(std::string_view text) {
    if (text.empty()) return -1;
    return text.size() <= kMaxLength ? Intern(text) : Intern(Cut(text));
  }
  /// The same of a text that people read to its end.
  int64_t AddWhole(std::string_view text) { return text.empty() ? -1 : Intern(text); }
  static std::string Cut(std::string_view text) {
    if (text.size() <= kMaxLength) return std::string(text);
    return std::string(text.substr(0, kMaxLength)) + "…";
  }

  size_t size() const { return texts_.size(); }

  /// All texts from `begin` to before `end`, as a JSON list. A text cut inside a character is
  /// mended by the writer.
  std::string Json(size_t begin, size_t end) const {
    std::string out;
    JsonWriter json(out);
    json.BeginArray();
    for (size_t i = begin; i < end; ++i)
      json.String(texts_[i]);
    json.EndArray();
    return out;
  }

 private:
  int64_t Intern(std::string_view text) {
    const auto known = index_.find(text);
    if (known != index_.end()) return known->second;
    const auto number = static_cast<int64_t>(texts_.size());
    texts_.emplace_back(text);
    index_.emplace(texts_.back(), number);
    return number;
  }

  std::deque<std::string> texts_;  // whose elements do not move
  std::unordered_map<std::string_view, int64_t> index_;
};

}  // namespace strata
