#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "viewer/model/commands.h"
#include "viewer/model/model.h"
#include "viewer/ui/fonts.h"
#include "viewer/ui/theme.h"
#include "viewer/ui/ui_tree.h"

namespace strata::viewer {

/// A rectangle of the window, in its pixels.
struct Area {
  float x = 0, y = 0, width = 0, height = 0;

  float right() const { return x + width; }
  float bottom() const { return y + height; }
  ImVec2 min() const { return {x, y}; }
  ImVec2 max() const { return {x + width, y + height}; }
};

/// What an interactive element got from the pointer in this frame.
struct Touch {
  bool hovered = false, clicked = false, double_clicked = false, held = false;
};

/// What panes draw with. Every element has a name inside of the scope that is open, draws itself in
/// the design language, and adds itself to the UI tree, so that scripts and tests find it.
/// Distances in arguments are pixels before scaling, unless they are those of an Area.
class Ui {
 public:
  Ui(Model& model, CommandTable& commands, Fonts& fonts)
      : model(model), commands(commands), fonts(fonts) {}

  Model& model;
  CommandTable& commands;
  Fonts& fonts;
  const Theme* theme = &LightTheme();
  UiTree tree;
  /// Set by a pane that is not done in one frame: the next frame follows at once.
  bool animating = false;

  float px(float pixels) const { return pixels * fonts.scale(); }
  Font font(Face face, float pixels) const { return fonts.Get(face, pixels); }

  // --- Names ---

  /// "passes/" + name.
  std::string Path(std::string_view name) const { return scope_ + std::string(name); }
  void Register(std::string_view name, std::string_view role, std::string_view text,
                const Area& area, bool selected = false, bool enabled = true);

  // --- Drawing at a place, with the current window's draw list ---

  ImDrawList& draw() const { return *ImGui::GetWindowDrawList(); }
  /// Writes text, cut at `width` (of the screen; 0: not cut). Returns its width.
  float Text(float x, float y, std::string_view text, const Font& font, Color color,
             float width = 0) const;
  /// The same, vertically in the middle of `area`.
  float TextIn(const Area& area, std::string_view text, const Font& font, Color color) const;
  /// The same at its right end.
  float TextRight(const Area& area, std::string_view text, const Font& font, Color color) const;
  /// Writes lines from the top of `area`, broken at its width. Returns their height.
  float Wrapped(const Area& area, std::string_view text, const Font& font, Color color) const;
  /// A sentence in place of a pane's content, in its upper left corner.
  void Sentence(const Area& area, std::string_view name, std::string_view words);
  void Fill(const Area& area, Color color, float radius = 0) const;
  void Frame(const Area& area, Color color, float radius = 0, float line = 1) const;
  /// "+3 −1 ~2" in their colours, from `left` on; returns where the next word may begin.
  float CountsFrom(const SceneCounts& counts, float left, float middle, float pixels) const;
  float CountsWidth(const SceneCounts& counts, float pixels) const;
  /// The same, ending at `right`; returns where a word before them has to end.
  float Counts(const SceneCounts& counts, float right, float middle, float pixels) const;

  // --- Interactive elements at a place ---

  /// A part of the window that takes clicks. The caller draws it.
  Touch Press(std::string_view name, std::string_view role, std::string_view text, const Area& area,
              bool selected = false, bool enabled = true);
  bool Button(std::string_view name, std::string_view label, const Area& area, bool pressed = false,
              std::string_view tip = {}, bool enabled = true);
  bool Tab(std::string_view name, std::string_view label, std::string_view count, const Area& area,
           bool selected);
  bool Checkbox(std::string_view name, std::string_view label, const Area& area, bool checked);
  /// A one-line field. True when its text changed. `completed`: replaces the text while it is
  /// being written, with the cursor behind it; empty once it has.
  bool Input(std::string_view name, std::string_view hint, const Area& area, std::string& text,
             bool focus = false, std::optional<std::string>* completed = nullptr);
  /// A list to choose from; true when another one was chosen.
  bool Choice(std::string_view name, const Area& area, const std::vector<std::string>& choices,
              int& chosen);
  /// A bar of `done` of `all`; its text in the tree is the share in percent.
  void Progress(std::string_view name, const Area& area, int64_t done, int64_t all);
  void Tip(std::string_view text) const;

 private:
  Font CountFont(SceneStatus status, float pixels) const;
  friend class UiScope;
  std::string scope_;
};

/// Names inside begin with `name/` until this is destroyed.
class UiScope {
 public:
  UiScope(Ui& ui, std::string_view name);
  ~UiScope();
  UiScope(const UiScope&) = delete;
  UiScope& operator=(const UiScope&) = delete;

 private:
  Ui& ui_;
  size_t size_;
};

/// A part of the window with a scrollable content of its own. Adds nothing to the names inside.
class UiPanel {
 public:
  /// `color`: behind everything; 0: nothing.
  UiPanel(Ui& ui, std::string_view name, const Area& area, Color color, bool scrolls = true);
  ~UiPanel();
  UiPanel(const UiPanel&) = delete;
  UiPanel& operator=(const UiPanel&) = delete;

  /// The next `height` pixels of the screen, over the whole width.
  Area Next(float height);
  /// Room that is left blank.
  void Skip(float height);
  float width() const { return width_; }
  /// Whether a part of the content is in sight.
  bool Shows(const Area& area) const;
  /// Whether all of it is.
  bool ShowsWhole(const Area& area) const;

 private:
  float width_;
};

}  // namespace strata::viewer
