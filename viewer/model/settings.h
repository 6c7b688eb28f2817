#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata::viewer {

/// What the viewer remembers from one start to the next.
struct Settings {
  static constexpr size_t kMostRecent = 9;

  bool dark = false;
  /// Widths of the panes beside the graph, height of the tabs below it, and the share of the module
  /// tree in the left pane; in pixels before scaling. 0: as wide as the window suggests.
  float left = 0, right = 0, bottom = 0, modules = 0;
  bool hide_left = false, hide_right = false, hide_bottom = false;
  std::vector<std::string> recent;               ///< files, newest first
  std::map<std::string, std::string> bookmarks;  ///< `FILE#LINK` by key

  /// Puts a file first.
  void AddRecent(const std::string& file);

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// Lines `key = value`. Unknown keys and values out of range are ignored: another version wrote
/// them.
Settings ParseSettings(std::string_view text);
std::string PrintSettings(const Settings& settings);

/// `$XDG_CONFIG_HOME/strata/viewer.conf`, or below `~/.config`; "" without a home.
std::string SettingsPath();
/// Where the viewer writes traces that it makes: `$XDG_STATE_HOME/strata`, or below
/// `~/.local/state`; without a home, a folder for temporary files.
std::string StateFolder();
/// Where a demo goes, unless the user says otherwise.
std::string DemoPath();
/// A file of `folder` that does not exist, named after `file`: "demo-passes.strata".
std::string NewTracePath(const std::string& file, const std::string& folder);
/// No settings when there is no such file. Errors: a file that cannot be read.
Result<Settings> LoadSettings(const std::string& path);
/// Makes the folder if it is missing.
Status SaveSettings(const std::string& path, const Settings& settings);

}  // namespace strata::viewer
