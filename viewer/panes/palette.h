#pragma once
#include <functional>
#include <string>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The command palette: commands, passes and nodes by name. Also the list of keys.
class Palette {
 public:
  enum class Kind : uint8_t { kClosed, kCommands, kKeys };

  void Open(Kind kind);
  bool is_open() const { return kind_ != Kind::kClosed; }
  void Close() { kind_ = Kind::kClosed; }
  /// Moves the chosen row.
  void Move(int rows) { chosen_ += rows; }
  /// Runs the chosen row after this frame.
  void Choose() { choose_ = true; }
  void Draw(Ui& ui, const Area& window);

 private:
  struct Item {
    std::string group, words, key;
    std::function<void()> run;
  };
  std::vector<Item> Items(Ui& ui) const;
  void DrawCommands(Ui& ui, const Area& box);
  void DrawKeys(Ui& ui, const Area& box) const;

  Kind kind_ = Kind::kClosed;
  std::string text_;
  int chosen_ = 0;
  bool focus_ = false, choose_ = false;
};

}  // namespace strata::viewer
