#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "viewer/model/commands.h"
#include "viewer/model/model.h"
#include "viewer/panes/bars.h"
#include "viewer/panes/graph_pane.h"
#include "viewer/panes/modules_pane.h"
#include "viewer/panes/node_pane.h"
#include "viewer/panes/passes_pane.h"
#include "viewer/panes/start_pane.h"
#include "viewer/ui/elements.h"
#include "viewer/ui/script.h"
#include "viewer/ui/window.h"

namespace strata::viewer {

/// What the command line chose.
struct AppOptions {
  std::string open;                   ///< `FILE[#LINK]`; "": the start page
  std::string compare;                ///< a second REF: `open` is compared with it
  std::optional<std::string> script;  ///< a file, or `-`
  std::string keys;                   ///< a file of key bindings; "": none
  bool dark = false;
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

 private:
  App();
  void AddCommands();
  void AddGraphCommands();
  void SetTheme(bool dark);
  /// Follows a change of the screen's scale.
  Status FollowScale();
  void OnKeys(const std::vector<KeyPress>& presses);
  Status Frame();
  void Draw();
  void DrawDocument(const Area& area);

  AppOptions options_;
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
  std::string count_;  // digits before a key
  bool quit_ = false;
};

}  // namespace strata::viewer
