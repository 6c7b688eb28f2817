#pragma once
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace strata::viewer {

/// Bits of a key press.
enum KeyMods : uint8_t { kNoMods = 0, kShift = 1, kCtrl = 2, kAlt = 4 };

/// Something that the user did. Comes from the window system or from a script; both are treated
/// alike.
struct InputEvent {
  enum class Kind : uint8_t { kKey, kText, kMove, kButton, kWheel };
  Kind kind = Kind::kKey;
  int key = 0;        ///< kKey: as GLFW numbers keys; kButton: 0 left, 1 right, 2 middle
  bool down = false;  ///< kKey, kButton
  uint8_t mods = 0;
  uint32_t character = 0;  ///< kText
  float x = 0, y = 0;      ///< kMove: position in the window; kWheel: notches
};

/// A key that was pressed, for commands.
struct KeyPress {
  int key = 0;
  uint8_t mods = 0;
  uint32_t character = 0;  ///< what it writes; 0: nothing
  bool down = true;
};

/// Feeds events to Dear ImGui, which samples the state of keys and buttons once a frame: a press
/// and a release between two frames would be lost. So the second change of the same key or button
/// waits for the next frame.
class InputQueue {
 public:
  void Push(const InputEvent& event) { events_.push_back(event); }
  bool empty() const { return events_.empty(); }

  /// Applies events to `ImGui::GetIO()` as far as one frame may have them. Returns the keys that
  /// were pressed and released.
  std::vector<KeyPress> Feed();

 private:
  std::deque<InputEvent> events_;
};

/// The key of a name: "j", "J", "Ctrl+P", "Enter", "Alt+Left", "F5", "?". False: not a key.
bool ParseKey(const std::string& name, KeyPress& press);
/// The name under which commands are bound to it: "J", "?", "Ctrl+Shift+Z", "Shift+Enter".
std::string KeyName(const KeyPress& press);
/// The events that press and release a key.
std::vector<InputEvent> EventsOf(const KeyPress& press);

}  // namespace strata::viewer
