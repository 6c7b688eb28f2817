#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace strata::viewer {

/// A visible element of the window: a button, a row, a node of the graph.
struct UiElement {
  std::string name;  ///< unique in its frame: "passes/pass:4", "graph/node:mm_44"
  std::string role;  ///< "button", "row", "tab", "checkbox", "text", "input", "node", "slab", …
  std::string text;  ///< what it shows
  float x = 0, y = 0, width = 0, height = 0;  ///< in pixels of the window
  bool enabled = true;
  bool selected = false;  ///< also: pressed, checked, open
};

/// The elements of a frame, in the order in which they were drawn. Scripts and tests find what is
/// on the screen here. Recorded only in frames in which the caller asks for it.
class UiTree {
 public:
  /// Begins a frame.
  void Begin(bool record) {
    recording_ = record;
    if (record) elements_.clear();
  }
  bool recording() const { return recording_; }
  void Add(UiElement element) {
    if (recording_) elements_.push_back(std::move(element));
  }

  const std::vector<UiElement>& elements() const { return elements_; }
  /// The element of that name, else the first that ends with `/` and it, else the first that fits
  /// it. Null: none was drawn.
  const UiElement* Find(std::string_view name) const;
  /// How many elements fit a pattern.
  size_t Count(std::string_view pattern) const;

 private:
  bool recording_ = false;
  std::vector<UiElement> elements_;
};

/// Whether `text` fits `pattern`, in which `*` stands for any characters.
bool FitsPattern(std::string_view text, std::string_view pattern);
/// Whether an element's name fits `pattern`, whole or without what stands before any of its `/`.
bool FitsElement(std::string_view name, std::string_view pattern);

}  // namespace strata::viewer
