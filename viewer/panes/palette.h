#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/pipeline_text.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// "Ctrl+P  g"
std::string KeysOf(const Command& command);

/// The command palette: commands, passes and nodes by name. Also the list of keys, files to open,
/// formats to export, passes to run, where a demo goes, and a graph to compare with.
class Palette {
 public:
  enum class Kind : uint8_t { kClosed, kCommands, kKeys, kOpen, kExport, kPasses, kDemo, kCompare };

  /// `text`: what the field holds at first.
  void Open(Kind kind, const std::string& text = {});
  bool is_open() const { return kind_ != Kind::kClosed; }
  void Close() { kind_ = Kind::kClosed; }
  /// Moves the chosen row.
  void Move(int rows) { chosen_ += rows; }
  /// Runs the chosen row after this frame.
  void Choose() { choose_ = true; }
  /// Writes what the chosen row, or the first that can, makes of the field into it.
  void Complete() { complete_ = true; }
  /// `recent`: files, newest first; `export_to` writes a file in the format of its ending.
  void Draw(Ui& ui, const Area& window, const std::vector<std::string>& recent,
            const std::function<void(const std::string& path)>& export_to);

 private:
  struct Item {
    std::string group, words, key;
    std::function<void()> run;
    std::optional<std::string> completes = {};  ///< what the field holds then; nothing is run
  };
  std::vector<Item> Items(Ui& ui) const;
  /// Files that `open` takes.
  std::vector<Item> Files(const std::vector<std::string>& recent,
                          const std::function<void(const std::string& file)>& open) const;
  std::vector<Item> Formats(const std::function<void(const std::string& path)>& export_to) const;
  std::vector<Item> Passes(Ui& ui);
  std::vector<Item> ItemsOf(Ui& ui, const std::vector<std::string>& recent,
                            const std::function<void(const std::string& path)>& export_to);
  void DrawItems(Ui& ui, const Area& box, const std::vector<Item>& items);
  void DrawItem(Ui& ui, const Area& at, const Item& item, bool lit) const;
  /// Completes the field as a row says, or closes and runs it.
  void Take(const Item& item);
  /// In place of rows: that there are none, and why.
  void DrawNothing(Ui& ui, const Area& at) const;
  void DrawField(Ui& ui, const Area& box);
  void DrawKeys(Ui& ui, const Area& box) const;

  Kind kind_ = Kind::kClosed;
  std::string text_;
  int chosen_ = 0;
  size_t rows_ = 0;  // that were shown last
  bool focus_ = false, choose_ = false, complete_ = false;
  std::optional<std::string> completed_;  // goes into the field
  std::vector<PassWords> passes_;         // all that there are, once they are needed
  std::string refused_;                   // why the text is not a pipeline; "": it is one, or empty
};

}  // namespace strata::viewer
