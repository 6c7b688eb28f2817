#pragma once
#include <functional>
#include <string>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The command palette: commands, passes and nodes by name. Also the list of keys, files to open
/// and formats to export.
class Palette {
 public:
  enum class Kind : uint8_t { kClosed, kCommands, kKeys, kOpen, kExport };

  /// `text`: what the field holds at first.
  void Open(Kind kind, const std::string& text = {});
  bool is_open() const { return kind_ != Kind::kClosed; }
  void Close() { kind_ = Kind::kClosed; }
  /// Moves the chosen row.
  void Move(int rows) { chosen_ += rows; }
  /// Runs the chosen row after this frame.
  void Choose() { choose_ = true; }
  /// `recent`: files, newest first; `export_to` writes a file in the format of its ending.
  void Draw(Ui& ui, const Area& window, const std::vector<std::string>& recent,
            const std::function<void(const std::string& path)>& export_to);

 private:
  struct Item {
    std::string group, words, key;
    std::function<void()> run;
  };
  std::vector<Item> Items(Ui& ui) const;
  std::vector<Item> Files(Ui& ui, const std::vector<std::string>& recent) const;
  std::vector<Item> Formats(const std::function<void(const std::string& path)>& export_to) const;
  void DrawItems(Ui& ui, const Area& box, const std::vector<Item>& items);
  void DrawField(Ui& ui, const Area& box);
  void DrawKeys(Ui& ui, const Area& box) const;

  Kind kind_ = Kind::kClosed;
  std::string text_;
  int chosen_ = 0;
  bool focus_ = false, choose_ = false;
};

}  // namespace strata::viewer
