#include "viewer/ui/input_queue.h"

#include <GLFW/glfw3.h>
#include <algorithm>
#include <cctype>
#include <map>

#include <imgui.h>

#include "base/unicode.h"

namespace strata::viewer {
namespace {

void ApplyMods(uint8_t mods, ImGuiIO& io) {
  io.KeyShift = (mods & kShift) != 0;
  io.KeyCtrl = (mods & kCtrl) != 0;
  io.KeyAlt = (mods & kAlt) != 0;
}

const std::map<std::string, int>& NamedKeys() {
  static const std::map<std::string, int> kKeys = {{"enter", GLFW_KEY_ENTER},
                                                   {"return", GLFW_KEY_ENTER},
                                                   {"escape", GLFW_KEY_ESCAPE},
                                                   {"esc", GLFW_KEY_ESCAPE},
                                                   {"tab", GLFW_KEY_TAB},
                                                   {"space", GLFW_KEY_SPACE},
                                                   {"left", GLFW_KEY_LEFT},
                                                   {"right", GLFW_KEY_RIGHT},
                                                   {"up", GLFW_KEY_UP},
                                                   {"down", GLFW_KEY_DOWN},
                                                   {"backspace", GLFW_KEY_BACKSPACE},
                                                   {"delete", GLFW_KEY_DELETE},
                                                   {"home", GLFW_KEY_HOME},
                                                   {"end", GLFW_KEY_END},
                                                   {"pageup", GLFW_KEY_PAGE_UP},
                                                   {"pagedown", GLFW_KEY_PAGE_DOWN}};
  return kKeys;
}

/// Characters that an American keyboard writes with Shift, and without.
constexpr std::string_view kShifted = "~!@#$%^&*()_+{}|:\"<>?";
constexpr std::string_view kUnshifted = "`1234567890-=[]\\;',./";

}  // namespace

std::vector<KeyPress> InputQueue::Feed() {
  ImGuiIO& io = ImGui::GetIO();
  std::vector<KeyPress> pressed;
  std::set<int> changed;  // keys, and buttons as negative numbers
  bool moved = false;
  while (!events_.empty()) {
    const InputEvent& event = events_.front();
    const int id = event.kind == InputEvent::Kind::kButton ? -1 - event.key : event.key;
    const bool is_switch =
        event.kind == InputEvent::Kind::kKey || event.kind == InputEvent::Kind::kButton;
    if (is_switch && changed.contains(id)) break;
    // A click is where the pointer was, and a pointer that moves on has clicked before.
    if (event.kind == InputEvent::Kind::kMove && !changed.empty()) break;
    if (event.kind == InputEvent::Kind::kButton && moved) break;
    switch (event.kind) {
      case InputEvent::Kind::kKey:
        if (event.key >= 0 && event.key < 512) io.KeysDown[event.key] = event.down;
        ApplyMods(event.mods, io);
        pressed.push_back({event.key, event.mods, event.character, event.down});
        break;
      case InputEvent::Kind::kText:
        io.AddInputCharacter(event.character);
        if (!pressed.empty() && pressed.back().down && pressed.back().character == 0)
          pressed.back().character = event.character;
        break;
      case InputEvent::Kind::kMove:
        io.MousePos = {event.x, event.y};
        moved = true;
        break;
      case InputEvent::Kind::kButton:
        if (event.key >= 0 && event.key < 5) io.MouseDown[event.key] = event.down;
        ApplyMods(event.mods, io);
        break;
      case InputEvent::Kind::kWheel:
        io.MouseWheelH += event.x;
        io.MouseWheel += event.y;
        ApplyMods(event.mods, io);
        break;
    }
    if (is_switch) changed.insert(id);
    events_.pop_front();
  }
  return pressed;
}

bool ParseKey(const std::string& name, KeyPress& press) {
  press = {};
  std::string rest = name;
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  const std::pair<std::string, uint8_t> mods[] = {
      {"ctrl+", kCtrl}, {"shift+", kShift}, {"alt+", kAlt}};
  for (bool found = true; found;) {
    found = false;
    for (const auto& [prefix, bit] : mods) {
      // `Ctrl-P` is Ctrl+P.
      const bool starts = lower(rest.substr(0, prefix.size() - 1)) + '+' == prefix;
      if (starts && rest.size() > prefix.size() &&
          (rest[prefix.size() - 1] == '+' || rest[prefix.size() - 1] == '-')) {
        press.mods |= bit;
        rest.erase(0, prefix.size());
        found = true;
      }
    }
  }
  if (const auto named = NamedKeys().find(lower(rest)); named != NamedKeys().end()) {
    press.key = named->second;
    press.character = press.key == GLFW_KEY_SPACE ? ' ' : 0;
    return true;
  }
  if (rest.size() >= 2 && (rest[0] == 'F' || rest[0] == 'f')) {
    const int number = std::atoi(rest.c_str() + 1);
    press.key = GLFW_KEY_F1 + number - 1;
    return number >= 1 && number <= 12;
  }
  if (rest.size() != 1) return false;
  const char c = rest[0];
  press.character = static_cast<unsigned char>(c);
  if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
    press.key = std::toupper(static_cast<unsigned char>(c));
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && (press.mods & kCtrl) == 0)
      press.mods |= kShift;
    if ((press.mods & kShift) != 0)
      press.character = static_cast<unsigned char>(std::toupper(static_cast<unsigned char>(c)));
  } else if (const size_t at = kShifted.find(c); at != std::string_view::npos) {
    press.key = kUnshifted[at];
    press.mods |= kShift;
  } else {
    press.key = c;
  }
  if ((press.mods & (kCtrl | kAlt)) != 0) press.character = 0;
  return true;
}

std::string KeyName(const KeyPress& press) {
  if (press.character > ' ' && (press.mods & (kCtrl | kAlt)) == 0) {
    std::string name;
    AppendUtf8(press.character, name);
    return name;
  }
  std::string name = (press.mods & kCtrl) != 0 ? "Ctrl+" : "";
  if ((press.mods & kAlt) != 0) name += "Alt+";
  if ((press.mods & kShift) != 0) name += "Shift+";
  for (const auto& [word, key] : NamedKeys()) {
    if (key != press.key || word == "esc" || word == "return") continue;
    return name + static_cast<char>(std::toupper(static_cast<unsigned char>(word[0]))) +
           word.substr(1);
  }
  if (press.key >= GLFW_KEY_F1 && press.key <= GLFW_KEY_F12)
    return name + "F" + std::to_string(press.key - GLFW_KEY_F1 + 1);
  if (press.key > ' ' && press.key < 127) return name + static_cast<char>(press.key);
  return "";
}

std::vector<InputEvent> EventsOf(const KeyPress& press) {
  std::vector<InputEvent> events;
  InputEvent key{
      .kind = InputEvent::Kind::kKey, .key = press.key, .down = true, .mods = press.mods};
  events.push_back(key);
  if (press.character != 0)
    events.push_back({.kind = InputEvent::Kind::kText, .character = press.character});
  key.down = false;
  key.mods = 0;
  events.push_back(key);
  return events;
}

}  // namespace strata::viewer
