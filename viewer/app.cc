#include "viewer/app.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <imgui.h>

#include "base/file.h"
#include "base/unicode.h"

namespace strata::viewer {
namespace {

constexpr float kTop = 36, kStatus = 24, kLeft = 284, kRight = 372, kPassBar = 40;

}  // namespace

App::App() : model_([] { Window::Wake(); }), ui_(model_, commands_, fonts_) {}

Result<std::unique_ptr<App>> App::Make(const AppOptions& options) {
  std::unique_ptr<App> app(new App());
  app->options_ = options;
  if (options.script) {
    STRATA_TRY(const std::string text, ReadFile(*options.script));
    STRATA_TRY(std::vector<ScriptLine> lines, ParseScript(text, *options.script));
    app->script_.emplace(std::move(lines), *options.script);
  }
  app->AddCommands();
  app->AddGraphCommands();
  if (!options.keys.empty()) {
    STRATA_TRY(const std::string text, ReadFile(options.keys));
    STRATA_RETURN_IF_ERROR(app->commands_.ReadBindings(text, options.keys));
  }
  STRATA_TRY(app->window_, Window::Open("Strata", options.width, options.height));
  STRATA_RETURN_IF_ERROR(app->FollowScale());
  app->SetTheme(options.dark);
  if (!options.compare.empty()) {
    app->model_.OpenPair(options.open, options.compare);
  } else if (!options.open.empty()) {
    app->model_.Open(options.open);
  }
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
}

Status App::Run() {
  int frames_left = 3;
  while (!window_->should_close() && !quit_) {
    const bool waits = frames_left == 0 && !script_;
    window_->WaitEvents(waits ? 0.5 : script_ && model_.busy() ? 0.002 : 0);
    const bool delivered = model_.Poll();
    for (const std::string& file : window_->TakeDropped())
      model_.Open(file);
    // Dear ImGui needs frames after an event: a popup is measured in its first one.
    if (delivered || !input().empty() || ui_.animating) frames_left = 3;
    if (!script_ && frames_left == 0) continue;
    frames_left = std::max(0, frames_left - 1);
    STRATA_RETURN_IF_ERROR(Frame());
    if (script_ && script_->done()) break;
  }
  return Ok();
}

Status App::Frame() {
  STRATA_RETURN_IF_ERROR(FollowScale());
  if (!window_->BeginFrame()) return Ok();
  const bool record = script_ && script_->BeforeFrame(ui_, *this);
  ui_.tree.Begin(record);
  ui_.animating = false;
  const std::vector<KeyPress> presses = input().Feed();
  ImGui::NewFrame();
  OnKeys(presses);
  Draw();
  ImGui::Render();
  window_->EndFrame(ui_.theme->bg);
  return script_ ? script_->AfterFrame(ui_, *this) : Ok();
}

void App::OnKeys(const std::vector<KeyPress>& presses) {
  const bool typing = ImGui::GetIO().WantTextInput;
  for (const KeyPress& press : presses) {
    const std::string name = KeyName(press);
    if (name.empty()) continue;
    if (!press.down) {
      if (name == "B") model_.show_before = false;
      continue;
    }
    if (typing && (press.mods & (kCtrl | kAlt)) == 0 && name[0] != 'F') continue;
    // Counts begin with 5 to 9, since 1 to 4 are modes.
    if (name.size() == 1 && name[0] >= (count_.empty() ? '5' : '0') && name[0] <= '9') {
      count_ += name;
      model_.Say(count_);
      continue;
    }
    const int count = count_.empty() ? 1 : std::clamp(std::atoi(count_.c_str()), 1, 999);
    count_.clear();
    if (const Command* command = commands_.OfKey(name)) command->run(count);
  }
}

void App::Draw() {
  const ImGuiIO& io = ImGui::GetIO();
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(io.DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("##strata", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar();
  const float top = ui_.px(kTop), status = ui_.px(kStatus);
  const Area whole = {0, 0, io.DisplaySize.x, io.DisplaySize.y};
  top_bar_.Draw(ui_, {0, 0, whole.width, top});
  status_bar_.Draw(ui_, {0, whole.height - status, whole.width, status});
  const Area middle = {0, top, whole.width, whole.height - top - status};
  if (model_.has_contents() || model_.comparison() != nullptr) {
    DrawDocument(middle);
  } else {
    start_pane_.Draw(ui_, middle);
  }
  ImGui::End();
}

void App::DrawDocument(const Area& area) {
  const bool lists = model_.has_contents();
  const float left = lists ? ui_.px(kLeft) : 0;
  const float right = area.width > ui_.px(1000) ? ui_.px(kRight) : ui_.px(280);
  if (lists) {
    const float modules = std::round(area.height * 0.45F);
    passes_pane_.Draw(ui_, {area.x, area.y, left, area.height - modules});
    modules_pane_.Draw(ui_, {area.x, area.bottom() - modules, left, modules});
    ui_.Fill({left - 1, area.y, 1, area.height}, ui_.theme->rule);
  }
  const Area center = {area.x + left, area.y, area.width - left - right, area.height};
  const float bar = ui_.px(kPassBar);
  pass_bar_.Draw(ui_, {center.x, center.y, center.width, bar});
  graph_pane_.Draw(ui_, {center.x, center.y + bar, center.width, center.height - bar});
  node_pane_.Draw(ui_, {area.right() - right, area.y, right, area.height});
  ui_.Fill({area.right() - right, area.y, 1, area.height}, ui_.theme->rule);
}

}  // namespace strata::viewer
