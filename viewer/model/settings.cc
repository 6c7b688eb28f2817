#include "viewer/model/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"

namespace strata::viewer {
namespace {

namespace fs = std::filesystem;

constexpr float kMostPixels = 4000;

struct Size {
  const char* key;
  float Settings::* value;
};
constexpr Size kSizes[] = {{"left", &Settings::left},
                           {"right", &Settings::right},
                           {"bottom", &Settings::bottom},
                           {"modules", &Settings::modules}};
struct Flag {
  const char* key;
  bool Settings::* value;
};
constexpr Flag kFlags[] = {{"dark", &Settings::dark},
                           {"hide_left", &Settings::hide_left},
                           {"hide_right", &Settings::hide_right},
                           {"hide_bottom", &Settings::hide_bottom}};
constexpr std::string_view kBookmark = "bookmark.";

void Take(std::string_view key, std::string_view value, Settings& settings) {
  for (const Size& size : kSizes) {
    float number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (key == size.key && read.ec == std::errc() && number >= 0 && number <= kMostPixels)
      settings.*size.value = number;
  }
  for (const Flag& flag : kFlags) {
    if (key == flag.key) settings.*flag.value = value == "yes";
  }
  if (key == "recent" && settings.recent.size() < Settings::kMostRecent)
    settings.recent.emplace_back(value);
  if (key.starts_with(kBookmark) && key.size() > kBookmark.size())
    settings.bookmarks[std::string(key.substr(kBookmark.size()))] = value;
}

/// A folder of the user's that `variable` names; else one of the home; "": there is no home.
std::string UserFolder(const char* variable, const std::string& in_home) {
  if (const char* folder = std::getenv(variable); folder != nullptr && *folder != '\0')
    return folder;
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/" + in_home : "";
}

}  // namespace

void Settings::AddRecent(const std::string& file) {
  if (file.find('\n') != std::string::npos) return;
  std::erase(recent, file);
  recent.insert(recent.begin(), file);
  if (recent.size() > kMostRecent) recent.resize(kMostRecent);
}

Settings ParseSettings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const size_t equal = line.find(" = ");
    if (equal != std::string_view::npos)
      Take(TrimBlanks(line.substr(0, equal)), line.substr(equal + 3), settings);
  }
  return settings;
}

std::string PrintSettings(const Settings& settings) {
  std::string text;
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format("{} = {}\n", key, value);
  };
  for (const Flag& flag : kFlags) {
    if (settings.*flag.value) add(flag.key, "yes");
  }
  for (const Size& size : kSizes) {
    if (settings.*size.value > 0) add(size.key, fmt::format("{}", settings.*size.value));
  }
  for (const std::string& file : settings.recent)
    add("recent", file);
  for (const auto& [key, link] : settings.bookmarks)
    add(std::string(kBookmark) + key, link);
  return text;
}

std::string SettingsPath() {
  const std::string folder = UserFolder("XDG_CONFIG_HOME", ".config");
  return folder.empty() ? "" : folder + "/strata/viewer.conf";
}

std::string StateFolder() {
  const std::string folder = UserFolder("XDG_STATE_HOME", ".local/state");
  if (!folder.empty()) return folder + "/strata";
  std::error_code failure;
  const fs::path temporary = fs::temp_directory_path(failure);
  return failure ? "." : (temporary / "strata").string();
}

std::string DemoPath() {
  return StateFolder() + "/demo.strata";
}

std::string NewTracePath(const std::string& file, const std::string& folder) {
  std::string stem = fs::path(file).stem().string();
  // Passes on passes: "a-2.strata", not "a-passes-passes.strata".
  constexpr std::string_view kWord = "-passes";
  if (const size_t at = stem.rfind(kWord); at != std::string::npos) stem.resize(at);
  std::error_code ignored;
  for (int i = 1;; ++i) {
    const std::string name = i == 1 ? fmt::format("{}{}.strata", stem, kWord)
                                    : fmt::format("{}{}-{}.strata", stem, kWord, i);
    const fs::path path = fs::path(folder) / name;
    if (!fs::exists(path, ignored)) return path.string();
  }
}

Result<Settings> LoadSettings(const std::string& path) {
  std::error_code failure;
  if (!fs::exists(path, failure)) return Settings();
  STRATA_TRY(const std::string text, ReadFile(path));
  return ParseSettings(text);
}

Status SaveSettings(const std::string& path, const Settings& settings) {
  std::error_code failure;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, failure);
  return WriteFile(path, PrintSettings(settings));
}

}  // namespace strata::viewer
