#include "viewer/app.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include <imgui.h>

#include "base/file.h"
#include "base/text.h"
#include "base/unicode.h"
#include "viewer/compare/export.h"
#include "viewer/compare/export_html.h"

namespace strata::viewer {
namespace {

/// Processor time of this thread.
double ProcessorMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// A key as commands have it: ctrl+k is Ctrl+K.
Result<std::string> NameOfKey(const std::string& word) {
  KeyPress press;
  if (!ParseKey(word, press)) return Error("'{}' is not a key", OneLine(word));
  return KeyName(press);
}

}  // namespace

App::App()
    : model_([this] {
        if (has_window_) Window::Wake();
      }),
      ui_(model_, commands_, fonts_) {}

Result<std::unique_ptr<App>> App::Make(const AppOptions& options) {
  std::unique_ptr<App> app(new App());
  app->options_ = options;
  if (options.script || !options.screenshot.empty()) {
    const std::string file = options.script.value_or("--screenshot");
    std::vector<ScriptLine> lines;
    if (options.script) {
      STRATA_TRY(const std::string text, ReadFile(file));
      STRATA_TRY(lines, ParseScript(text, file));
    }
    if (!options.screenshot.empty()) {
      const bool quits = !lines.empty() && lines.back().verb == "quit";
      const int32_t number = lines.empty() ? 1 : lines.back().number;
      lines.insert(lines.end() - (quits ? 1 : 0),
                   {.number = number, .verb = "screenshot", .words = {options.screenshot}});
    }
    app->script_.emplace(std::move(lines), file);
  }
  app->AddCommands();
  if (!options.keys.empty()) {
    STRATA_TRY(const std::string text, ReadFile(options.keys));
    STRATA_RETURN_IF_ERROR(app->commands_.ReadBindings(text, options.keys, NameOfKey));
  }
  if (options.demo) app->model_.MakeDemo(DemoPath());
  // A file is read, and its first graph compared, while the window opens.
  if (!options.compare.empty()) {
    app->model_.OpenPair(options.open, options.compare);
  } else if (!options.open.empty()) {
    app->model_.Open(options.open);
    app->model_.PollUntilOpened(std::chrono::milliseconds(20));
  }
  STRATA_TRY(app->window_, Window::Open("Strata", options.width, options.height));
  app->has_window_ = true;
  if (!options.attach.empty()) app->model_.Attach(options.attach);
  // What is measured is the program, not software that draws pixels in place of a graphics card.
  if (options.bench) app->window_->DrawOnlyKeptPixels();
  STRATA_RETURN_IF_ERROR(app->FollowScale());
  if (options.config) {
    app->config_ = *options.config;
  } else if (!app->script_) {
    app->config_ = SettingsPath();
  }
  if (!app->config_.empty()) {
    // Without its settings the program works as well; what is there stays for who mends it.
    if (Result<Settings> settings = LoadSettings(app->config_)) {
      app->settings_ = *std::move(settings);
    } else {
      app->config_.clear();
      app->model_.Warn(settings.error());
    }
  }
  app->saved_ = app->settings_;
  app->SetTheme(options.theme.empty() ? app->settings_.dark : options.theme == "dark");
  return app;
}

Status App::FollowScale() {
  const float scale = options_.scale > 0 ? options_.scale : window_->scale();
  if (scale == fonts_.scale() && ImGui::GetIO().Fonts->IsBuilt()) return Ok();
  STRATA_RETURN_IF_ERROR(fonts_.Load(scale));
  window_->RebuildFonts();
  ApplyTheme(*ui_.theme, scale);
  return Ok();
}

void App::SetTheme(bool dark) {
  ui_.theme = dark ? &DarkTheme() : &LightTheme();
  ApplyTheme(*ui_.theme, fonts_.scale());
  settings_.dark = dark;
}

Status App::Export(const std::string& path) {
  const Comparison* comparison = model_.comparison();
  if (path.ends_with(".png")) {
    picture_ = path;
    return Ok();
  }
  if (comparison == nullptr || model_.graph()->geometry() == nullptr)
    return Error("no graph: {}: open one first", OneLine(path));
  if (path.ends_with(".html")) {
    ExportHtml(path);
    return Ok();
  }
  std::string text;
  if (path.ends_with(".svg")) {
    text = SvgOf(*comparison, *model_.graph()->geometry());
  } else if (path.ends_with(".dot")) {
    text = DotOf(*comparison);
  } else if (path.ends_with(".json")) {
    text = JsonOf(*comparison);
  } else {
    return Error("unknown format: {}: end the name with .png, .svg, .html, .dot or .json",
                 OneLine(path));
  }
  STRATA_RETURN_IF_ERROR(WriteFile(path, text));
  model_.Say("Written: " + Visible(path));
  return Ok();
}

void App::ExportHtml(const std::string& path) {
  model_.Say("Writing " + Visible(path));
  model_.workers().Post(
      "html",
      [this, path, comparison = model_.graph()->shared_comparison(),
       trace = model_.document() != nullptr ? model_.document()->trace_path() : "",
       file = model_.document() != nullptr ? model_.document()->file()
                                           : ""](const Outdated&) -> Workers::Deliver {
        const Status written = WriteHtml(trace, file, *comparison, path);
        return [this, written, path] {
          model_.Say(written ? "Written: " + Visible(path)
                             : VisibleLines(written.error().message()));
        };
      });
}

Status App::SaveChanges() {
  if (config_.empty() || settings_ == saved_) return Ok();
  saved_ = settings_;
  return SaveSettings(config_, settings_);
}

void App::SetBookmark(const std::string& key) {
  if (model_.document() == nullptr) return model_.Say("Open a file first");
  settings_.bookmarks[key] = model_.FullLink();
  model_.Say("Bookmark " + key + " set");
}

void App::GoToBookmark(const std::string& key) {
  const auto found = settings_.bookmarks.find(key);
  if (found == settings_.bookmarks.end()) return model_.Say("No bookmark " + key);
  const auto [file, link] = SplitLink(found->second);
  if (model_.document() != nullptr && file == model_.document()->file()) {
    model_.Remember();
    model_.Follow(link);
  } else {
    model_.Open(found->second);
  }
  model_.Say("Bookmark " + key);
}

void App::FollowFiles() {
  using Clock = std::chrono::steady_clock;
  if (model_.document() != nullptr && noticed_ != model_.document()) {
    noticed_ = model_.document();
    std::error_code failure;
    const std::string& file = model_.document()->file();
    const std::filesystem::path whole = std::filesystem::absolute(file, failure);
    settings_.AddRecent(failure ? file : whole.string());
  }
  if (!model_.follows() || Clock::now() < next_refresh_) return;
  next_refresh_ = Clock::now() + std::chrono::milliseconds(400);
  model_.Refresh();
}

Status App::Run() {
  int frames_left = 3;
  while (!window_->should_close() && !quit_) {
    const bool waits = frames_left == 0 && !script_;
    window_->WaitEvents(waits ? 0.5 : script_ && model_.busy() ? 0.02 : 0);
    const bool delivered = model_.Poll();
    FollowFiles();
    for (const std::string& file : window_->TakeDropped())
      model_.Open(file);
    // Dear ImGui needs frames after an event: a popup is measured in its first one.
    if (delivered || !input().empty() || ui_.animating) frames_left = 3;
    const double share = model_.opening_share();
    if (std::exchange(shown_share_, share) != share) frames_left = std::max(frames_left, 1);
    const bool script_waits = !script_ || (model_.busy() && !script_->acts_now());
    if (frames_left == 0 && script_waits) continue;
    frames_left = std::max(0, frames_left - 1);
    STRATA_RETURN_IF_ERROR(Frame());
    if (script_ && script_->done()) break;
  }
  if (script_ && options_.bench) STRATA_RETURN_IF_ERROR(WriteFile("-", script_->Measures()));
  return SaveChanges();
}

Status App::Frame() {
  STRATA_RETURN_IF_ERROR(FollowScale());
  if (!window_->BeginFrame()) return Ok();
  const bool record = script_ && script_->BeforeFrame(ui_, *this);
  ui_.tree.Begin(record);
  ui_.animating = false;
  const std::vector<KeyPress> presses = input().Feed();
  const double began = ProcessorMs();
  ImGui::NewFrame();
  OnKeys(presses);
  Draw();
  ImGui::Render();
  if (script_) script_->OnBuilt(ProcessorMs() - began);
  const std::string picture = std::exchange(picture_, "");
  if (!picture.empty()) KeepPixels();
  window_->EndFrame(ui_.theme->bg);
  if (!picture.empty()) {
    const Status written = Screenshot(picture);
    model_.Say(written ? "Written: " + Visible(picture) : VisibleLines(written.error().message()));
    ui_.animating = true;  // shows the message
  }
  return script_ ? script_->AfterFrame(ui_, *this) : Ok();
}

void App::OnKeys(const std::vector<KeyPress>& presses) {
  const bool typing = ImGui::GetIO().WantTextInput;
  for (const KeyPress& press : presses) {
    const std::string name = KeyName(press);
    if (name.empty()) continue;
    if (!press.down) {
      if (press.key == show_before_key_) model_.show_before = false;
      continue;
    }
    if (palette_.is_open() && OnPaletteKey(name)) continue;
    const bool plain = (press.mods & (kCtrl | kAlt)) == 0 && (name[0] != 'F' || name.size() == 1);
    if (typing && plain) {
      if (name == "Escape") ImGui::SetWindowFocus(nullptr);
      if (name == "Enter" && node_pane_.Enter(model_)) continue;
      if (name == "Enter" && model_.tab == Tab::kLive && live_pane_.Enter(model_)) continue;
      if (name == "Tab" && model_.tab == Tab::kLive && live_pane_.Complete(model_)) continue;
      if (name == "Enter" && left_tab_ == LeftTab::kSearch) model_.StepHit(1);
      if (name == "Shift+Enter" && left_tab_ == LeftTab::kSearch) model_.StepHit(-1);
      continue;
    }
    if (OnPrefixKey(name)) continue;
    const int count = count_.empty() ? 1 : std::clamp(std::atoi(count_.c_str()), 1, 999);
    count_.clear();
    if (const Command* command = commands_.OfKey(name)) {
      if (command->id == "show-before") show_before_key_ = press.key;
      command->run(count);
    }
  }
}

bool App::OnPaletteKey(const std::string& name) {
  if (name == "Escape" || name == "Ctrl+P") {
    palette_.Close();
  } else if (name == "Enter") {
    palette_.Choose();
  } else if (name == "Down") {
    palette_.Move(1);
  } else if (name == "Up") {
    palette_.Move(-1);
  } else if (name == "Tab") {
    palette_.Complete();
  }
  return true;
}

bool App::OnPrefixKey(const std::string& name) {
  if (const Waiting waiting = std::exchange(waiting_, Waiting::kNothing);
      waiting != Waiting::kNothing) {
    if (name == "Escape") return true;
    if (waiting == Waiting::kSetBookmark) {
      SetBookmark(name);
    } else {
      GoToBookmark(name);
    }
    return true;
  }
  // Counts begin with digits without a command: 5 to 9, since 1 to 4 are modes.
  const bool digit = name.size() == 1 && name[0] >= (count_.empty() ? '1' : '0') && name[0] <= '9';
  if (digit && (!count_.empty() || commands_.OfKey(name) == nullptr)) {
    count_ += name;
    model_.Say(count_);
    return true;
  }
  return false;
}

}  // namespace strata::viewer
