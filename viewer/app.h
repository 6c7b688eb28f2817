#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "viewer/model/commands.h"
#include "viewer/model/model.h"
#include "viewer/model/settings.h"
#include "viewer/panes/bars.h"
#include "viewer/panes/costs_pane.h"
#include "viewer/panes/graph_pane.h"
#include "viewer/panes/lanes_pane.h"
#include "viewer/panes/live_pane.h"
#include "viewer/panes/log_pane.h"
#include "viewer/panes/memory_pane.h"
#include "viewer/panes/modules_pane.h"
#include "viewer/panes/node_pane.h"
#include "viewer/panes/operators_pane.h"
#include "viewer/panes/palette.h"
#include "viewer/panes/passes_pane.h"
#include "viewer/panes/patterns_pane.h"
#include "viewer/panes/ranks_pane.h"
#include "viewer/panes/search_pane.h"
#include "viewer/panes/start_pane.h"
#include "viewer/panes/table_pane.h"
#include "viewer/panes/text_pane.h"
#include "viewer/ui/elements.h"
#include "viewer/ui/script.h"
#include "viewer/ui/window.h"

namespace strata::viewer {

/// What the command line chose.
struct AppOptions {
  std::string open;                   ///< `FILE[#LINK]`; "": the start page
  std::string compare;                ///< a second REF: `open` is compared with it
  std::optional<std::string> script;  ///< a file, or `-`
  std::string screenshot;             ///< a file, written at the end of the script; "": none
  std::string attach;                 ///< the socket of a training; "": none
  std::string keys;                   ///< a file of key bindings; "": none
  bool demo = false;                  ///< makes a demo and opens it
  bool bench = false;                 ///< prints what each line of the script took
  std::string theme;                  ///< "light", "dark"; "": as it was last time
  std::optional<std::string> config;  ///< a file of settings; none: the user's, but for scripts
  int width = 1600, height = 1000;
  float scale = 0;  ///< of fonts and distances; 0: as the screen says
};

/// The program: window, model and panes, frame by frame.
class App final : public ScriptHost {
 public:
  /// Errors: no display, no OpenGL 3, no fonts, a bad script or key file.
  static Result<std::unique_ptr<App>> Make(const AppOptions& options);

  /// Until the window is closed or the script ends. Errors: of the script.
  Status Run();

  InputQueue& input() override { return window_->input(); }
  void KeepPixels() override { window_->KeepPixels(); }
  Status Screenshot(const std::string& path) override { return window_->Screenshot(path); }
  void Resize(int width, int height) override { window_->Resize(width, height); }
  void Quit() override { quit_ = true; }
  void Drop(const std::string& path) override { window_->Drop(path); }
  Status Export(const std::string& path) override;

 private:
  App();
  void AddCommands();
  void AddPassCommands();
  void AddTabCommands();
  void AddLookCommands();
  void AddPaneCommands();
  void AddSearchCommands();
  void AddFileCommands();
  void AddOfGraph(std::string id, std::string words, std::vector<std::string> keys,
                  std::function<void(GraphModel&, int)> run);
  void AddWalkCommands();
  void AddGraphCommands();
  void AddControlCommands();
  void SetTheme(bool dark);
  /// Writes the report in the background, and says when it is there.
  void ExportHtml(const std::string& path);
  /// Follows a change of the screen's scale.
  Status FollowScale();
  void OnKeys(const std::vector<KeyPress>& presses);
  Status Frame();
  /// Reads what a live run added, and notices files that were opened.
  void FollowFiles();
  Status SaveChanges();
  void SetBookmark(const std::string& key);
  void GoToBookmark(const std::string& key);
  void Draw();
  void DrawDocument(const Area& area);
  void DrawLeft(const Area& area);
  void DrawLists(const Area& area);
  void DrawBookmarks(const Area& area);
  std::string BookmarkText(const std::string& full) const;
  void DrawCenter(const Area& area);
  /// A line without width or height that a drag moves. Returns by how many pixels, before scaling.
  float Splitter(std::string_view name, const Area& line);
  float TabWidth(std::string_view label, std::string_view count) const;
  void DrawTabs(const Area& area);
  void DrawBottom(const Area& area);
  /// A key while the palette is open; true: it was for the palette.
  bool OnPaletteKey(const std::string& name);
  /// Digits before a key, and the key that a bookmark has; true: it was one of them.
  bool OnPrefixKey(const std::string& name);

  AppOptions options_;
  std::atomic<bool> has_window_ = false;  // workers wake it
  std::unique_ptr<Window> window_;
  Model model_;
  CommandTable commands_;
  Fonts fonts_;
  Ui ui_;
  std::optional<ScriptRunner> script_;
  TopBar top_bar_;
  PassBar pass_bar_;
  StatusBar status_bar_;
  PassesPane passes_pane_;
  ModulesPane modules_pane_;
  GraphPane graph_pane_;
  NodePane node_pane_;
  StartPane start_pane_;
  SearchPane search_pane_;
  TablePane table_pane_;
  TextPane text_pane_;
  PatternsPane patterns_pane_;
  OperatorsPane operators_pane_;
  CostsPane costs_pane_;
  MemoryPane memory_pane_;
  LanesPane lanes_pane_;
  RanksPane ranks_pane_;
  LivePane live_pane_;
  LogPane log_pane_;
  Palette palette_;
  enum class LeftTab : uint8_t { kPasses, kSearch, kBookmarks };
  LeftTab left_tab_ = LeftTab::kPasses;
  std::string count_;  // digits before a key
  /// What the next key names.
  enum class Waiting : uint8_t { kNothing, kSetBookmark, kGoToBookmark };
  Waiting waiting_ = Waiting::kNothing;
  int show_before_key_ = -1;  // that is held
  std::string config_;        // a file; "": nothing is remembered
  Settings settings_, saved_;
  const Document* noticed_ = nullptr;  // is among the recent files
  std::chrono::steady_clock::time_point next_refresh_;
  std::string picture_;     // a file that the picture of the next frame goes to
  double shown_share_ = 0;  // of an import
  bool quit_ = false;
};

}  // namespace strata::viewer
