#include "viewer/ui/ui_tree.h"

#include <algorithm>

namespace strata::viewer {

bool FitsPattern(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

bool FitsElement(std::string_view name, std::string_view pattern) {
  for (size_t begin = 0; true;) {
    if (FitsPattern(name.substr(begin), pattern)) return true;
    const size_t slash = name.find('/', begin);
    if (slash == std::string_view::npos) return false;
    begin = slash + 1;
  }
}

const UiElement* UiTree::Find(std::string_view name) const {
  const auto exact = std::ranges::find(elements_, name, &UiElement::name);
  if (exact != elements_.end()) return &*exact;
  const auto last = std::ranges::find_if(elements_, [&](const UiElement& element) {
    const std::string_view whole = element.name;
    return whole.size() > name.size() && whole.ends_with(name) &&
           whole[whole.size() - name.size() - 1] == '/';
  });
  if (last != elements_.end()) return &*last;
  const auto fits = std::ranges::find_if(
      elements_, [&](const UiElement& element) { return FitsElement(element.name, name); });
  return fits == elements_.end() ? nullptr : &*fits;
}

size_t UiTree::Count(std::string_view pattern) const {
  return static_cast<size_t>(std::ranges::count_if(
      elements_, [&](const UiElement& element) { return FitsElement(element.name, pattern); }));
}

}  // namespace strata::viewer
