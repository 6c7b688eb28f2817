#include "viewer/ui/script.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "base/unicode.h"
#include "viewer/ui/ui_state.h"

namespace strata::viewer {
namespace {

constexpr int32_t kQuietFrames = 3;
constexpr auto kLimit = std::chrono::seconds(60);

Result<double> Number(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0') return Error("'{}' is not a number", OneLine(word));
  return value;
}

std::string Rest(const std::vector<std::string>& words, size_t from) {
  std::string text;
  for (size_t i = from; i < words.size(); ++i)
    text += (i > from ? " " : "") + words[i];
  return text;
}

/// Whether `actual OP wanted` holds; numbers are compared as numbers.
Result<bool> Holds(const std::string& actual, const std::string& op, const std::string& wanted) {
  if (op == "=" || op == "==") return actual == wanted;
  if (op == "!=") return actual != wanted;
  if (op == "contains") return actual.find(wanted) != std::string::npos;
  if (op == "fits") return FitsPattern(actual, wanted);
  STRATA_TRY(const double a, Number(actual));
  STRATA_TRY(const double b, Number(wanted));
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return Error("unknown operator '{}': use = != < <= > >= contains fits", OneLine(op));
}

/// The value of `ELEMENT.text`, `.role`, `.selected` or `.enabled`; none: no such element or
/// property.
std::optional<std::string> PropertyOf(const UiTree& tree, std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const UiElement* element = tree.Find(path.substr(0, dot));
  const std::string_view property = path.substr(dot + 1);
  if (element == nullptr) return std::nullopt;
  if (property == "text") return element->text;
  if (property == "role") return element->role;
  if (property == "selected") return element->selected ? "true" : "false";
  if (property == "enabled") return element->enabled ? "true" : "false";
  return std::nullopt;
}

/// The presses of `word`: a key, with a count before it where `counts`: 5j.
Result<std::vector<InputEvent>> EventsOfKeys(const std::string& word, bool counts) {
  KeyPress press;
  if (ParseKey(word, press)) return EventsOf(press);
  const size_t digits = word.find_first_not_of("0123456789");
  if (!counts || word[0] < '5' || word[0] > '9' || digits == std::string::npos ||
      !ParseKey(word.substr(digits), press))
    return Error("'{}' is not a key", OneLine(word));
  std::vector<InputEvent> events;
  for (size_t i = 0; i < digits; ++i) {
    KeyPress digit;
    ParseKey(word.substr(i, 1), digit);
    std::ranges::copy(EventsOf(digit), std::back_inserter(events));
  }
  std::ranges::copy(EventsOf(press), std::back_inserter(events));
  return events;
}

/// Text as a keyboard would give it, character by character.
void Type(const std::string& text, InputQueue& input) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = std::max<size_t>(1, Utf8Length(text, i));
    uint32_t code = static_cast<unsigned char>(text[i]);
    if (length > 1) {
      code &= 0xFFU >> (length + 1);
      for (size_t k = 1; k < length; ++k)
        code = (code << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    input.Push({.kind = InputEvent::Kind::kText, .character = code});
    i += length;
  }
}

}  // namespace

bool ScriptRunner::NeedsTree(const ScriptLine& line) {
  static constexpr std::string_view kVerbs[] = {"click", "move",   "drag",  "scroll",
                                                "tree",  "assert", "await", "screenshot"};
  return std::ranges::find(kVerbs, line.verb) != std::end(kVerbs);
}

void ScriptRunner::Next() {
  ++next_;
  quiet_frames_ = 0;
  began_ = Clock::now();
}

Status ScriptRunner::At(const ScriptLine& line, const Status& status) const {
  if (status) return Ok();
  return Error("{}:{}: {}", file_, line.number, status.error().message());
}

bool ScriptRunner::Overdue() const {
  return Clock::now() - began_ > kLimit && Clock::now() > resume_ + kLimit;
}

bool ScriptRunner::BeforeFrame(Ui& ui, ScriptHost& host) {
  runs_after_ = false;
  if (done_ || !failed_) return false;
  const bool busy = ui.model.busy() || !host.input().empty() || ui.animating;
  quiet_frames_ = busy ? 0 : quiet_frames_ + 1;
  if (quiet_frames_ <= 1) EndMeasure();
  if (next_ == lines_.size()) {
    const bool now = !lines_.empty() && lines_.back().now;
    done_ = now || (quiet_frames_ >= kQuietFrames && Clock::now() >= resume_);
    if (!done_ && Overdue()) failed_ = Error("{}: still busy 60 s after the last command", file_);
    return false;
  }
  const ScriptLine& line = lines_[next_];
  // What is measured is drawing; nothing is waited for between its frames.
  if ((line.verb == "frames" || line.verb == "random") && moved_ > 0) {
    failed_ = At(line, Act(ui, host, line));
    return false;
  }
  if (!line.now && (quiet_frames_ < kQuietFrames || Clock::now() < resume_)) {
    if (Overdue())
      failed_ = Error("{}:{}: still busy after 60 s: {}", file_, line.number, line.verb);
    return false;
  }
  if (NeedsTree(line)) {
    runs_after_ = true;
    if (line.verb == "screenshot") host.KeepPixels();
    return true;
  }
  BeginMeasure(line);
  const size_t here = next_;
  failed_ = At(line, Act(ui, host, line));
  if (next_ == here && moved_ == 0) Next();
  return false;
}

Status ScriptRunner::AfterFrame(Ui& ui, ScriptHost& host) {
  if (!failed_) return failed_;
  if (!runs_after_) return Ok();
  const ScriptLine line = lines_[next_];
  if (line.verb == "await") return At(line, Await(ui, line));
  BeginMeasure(line);
  Next();
  if (line.verb == "screenshot") return At(line, host.Screenshot(line.words[0]));
  if (line.verb == "tree")
    return At(line, WriteFile(line.words[0], TreeJson(StateOf(ui.model, ui.theme->dark), ui.tree)));
  if (line.verb == "assert") return At(line, Assert(ui, line));
  return At(line, ActOnElement(ui, host, line));
}

Status ScriptRunner::Act(Ui& ui, ScriptHost& host, const ScriptLine& line) {
  if (line.verb == "open") {
    ui.model.Open(line.words[0]);
  } else if (line.verb == "compare") {
    ui.model.OpenPair(line.words[0], line.words[1]);
  } else if (line.verb == "wait") {
    if (line.words.empty()) return Ok();
    STRATA_TRY(const double ms, Number(line.words[0]));
    resume_ =
        Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(std::clamp(ms, 0.0, 6e5)));
  } else if (line.verb == "key" || line.verb == "hold" || line.verb == "release") {
    for (const std::string& word : line.words) {
      STRATA_TRY(std::vector<InputEvent> events, EventsOfKeys(word, line.verb == "key"));
      if (line.verb == "hold") events.pop_back();
      if (line.verb == "release") events.erase(events.begin(), events.end() - 1);
      for (const InputEvent& event : events)
        host.input().Push(event);
    }
  } else if (line.verb == "type") {
    Type(Rest(line.words, 0), host.input());
  } else if (line.verb == "run") {
    const Command* command = ui.commands.Find(line.words[0]);
    if (command == nullptr) return Error("unknown command '{}'", OneLine(line.words[0]));
    double count = 1;
    if (line.words.size() > 1) {
      STRATA_TRY(count, Number(line.words[1]));
    }
    command->run(static_cast<int>(std::clamp(count, -1e6, 1e6)));
  } else if (line.verb == "goto") {
    const Comparison* comparison = ui.model.comparison();
    const SceneNodeId node =
        comparison != nullptr ? comparison->Find(line.words[0]) : SceneNodeId();
    if (!node.valid()) return Error("no node is named '{}'", OneLine(line.words[0]));
    ui.model.Reveal(node);
  } else if (line.verb == "resize") {
    STRATA_TRY(const double width, Number(line.words[0]));
    STRATA_TRY(const double height, Number(line.words[1]));
    host.Resize(static_cast<int>(std::clamp(width, 100.0, 8192.0)),
                static_cast<int>(std::clamp(height, 100.0, 8192.0)));
  } else if (line.verb == "frames") {
    STRATA_TRY(const double frames, Number(line.words[0]));
    if (++moved_ > static_cast<int>(std::clamp(frames, 1.0, 1e6)) || !Move(ui, line)) {
      moved_ = 0;
      Next();
    }
  } else if (line.verb == "random") {
    return ActAtRandom(ui, host, line);
  } else if (line.verb == "drop") {
    for (const std::string& file : line.words)
      host.Drop(file);
  } else if (line.verb == "export") {
    return host.Export(line.words[0]);
  } else if (line.verb == "quit") {
    host.Quit();
  }
  return Ok();
}

Status ScriptRunner::ActAtRandom(Ui& ui, ScriptHost& host, const ScriptLine& line) {
  STRATA_TRY(const double events, Number(line.words[0]));
  STRATA_TRY(const double seed, Number(line.words[1]));
  if (moved_ == 0) random_.seed(static_cast<uint32_t>(std::clamp(seed, 0.0, 4e9)));
  ui.model.writes_files = ++moved_ > static_cast<int>(std::clamp(events, 1.0, 1e6));
  if (ui.model.writes_files) {
    moved_ = 0;
    Next();
  } else if (host.input().empty()) {
    PushRandom(ui, host.input());
  } else {
    --moved_;
  }
  return Ok();
}

Status ScriptRunner::ActOnElement(Ui& ui, ScriptHost& host, const ScriptLine& line) {
  const UiElement* element = ui.tree.Find(line.words[0]);
  if (element == nullptr) return Error("no element '{}' is on the screen", OneLine(line.words[0]));
  if (!element->enabled) return Error("'{}' is disabled", element->name);
  const float x = element->x + element->width / 2, y = element->y + element->height / 2;
  InputQueue& input = host.input();
  const auto move = [&](float to_x, float to_y) {
    input.Push({.kind = InputEvent::Kind::kMove, .x = to_x, .y = to_y});
  };
  const std::string modifier = line.words.size() > 1 ? line.words.back() : "";
  const uint8_t mods = modifier == "shift" ? kShift : modifier == "ctrl" ? kCtrl : kNoMods;
  const auto button = [&](int which, bool down) {
    input.Push({.kind = InputEvent::Kind::kButton, .key = which, .down = down, .mods = mods});
  };
  move(x, y);
  if (line.verb == "click") {
    const int which = modifier == "right" ? 1 : 0;
    for (int i = 0; i < (modifier == "double" ? 2 : 1); ++i) {
      button(which, true);
      button(which, false);
    }
  } else if (line.verb == "drag") {
    STRATA_TRY(const double dx, Number(line.words[1]));
    STRATA_TRY(const double dy, Number(line.words[2]));
    button(0, true);
    for (int step = 1; step <= 4; ++step)
      move(x + static_cast<float>(dx) * static_cast<float>(step) / 4,
           y + static_cast<float>(dy) * static_cast<float>(step) / 4);
    button(0, false);
  } else if (line.verb == "scroll") {
    STRATA_TRY(const double notches, Number(line.words[1]));
    input.Push(
        {.kind = InputEvent::Kind::kWheel, .mods = mods, .x = 0, .y = static_cast<float>(notches)});
  }
  return Ok();
}

Status ScriptRunner::AssertState(const Ui& ui, const ScriptLine& line) const {
  if (line.words.size() < 3) return Error("write assert state KEY OP VALUE");
  for (const auto& [key, value] : StateOf(ui.model, ui.theme->dark, line.words[1])) {
    if (key != line.words[1]) continue;
    const std::string wanted = Rest(line.words, 3);
    STRATA_TRY(const bool holds, Holds(value, line.words[2], wanted));
    if (!holds)
      return Error("state {} is '{}', not {} '{}'", key, OneLine(value, 200), line.words[2],
                   OneLine(wanted, 200));
    return Ok();
  }
  return Error("the state has no '{}'", OneLine(line.words[1]));
}

Status ScriptRunner::Assert(const Ui& ui, const ScriptLine& line) const {
  const std::vector<std::string>& words = line.words;
  if (words[0] == "state") return AssertState(ui, line);
  if (words[0] == "count") {
    if (words.size() != 4) return Error("write assert count PATTERN OP N");
    const std::string count = fmt::format("{}", ui.tree.Count(words[1]));
    STRATA_TRY(const bool holds, Holds(count, words[2], words[3]));
    if (!holds)
      return Error("{} elements fit '{}', not {} {}", count, words[1], words[2], words[3]);
    return Ok();
  }
  const UiElement* element = ui.tree.Find(words[0]);
  const std::string& what = words[1];
  if (element == nullptr) {
    if (const std::optional<std::string> property = PropertyOf(ui.tree, words[0])) {
      const std::string wanted = Rest(words, 2);
      STRATA_TRY(const bool holds, Holds(*property, what, wanted));
      if (holds) return Ok();
      return Error("{} is '{}', not {} '{}'", OneLine(words[0]), OneLine(*property, 200), what,
                   OneLine(wanted, 200));
    }
  }
  if (what == "absent") {
    if (element != nullptr) return Error("'{}' is on the screen", element->name);
    return Ok();
  }
  if (element == nullptr) return Error("no element '{}' is on the screen", OneLine(words[0]));
  const std::pair<std::string_view, bool> flags[] = {{"exists", true},
                                                     {"selected", element->selected},
                                                     {"unselected", !element->selected},
                                                     {"enabled", element->enabled},
                                                     {"disabled", !element->enabled}};
  for (const auto& [flag, holds] : flags) {
    if (what != flag) continue;
    if (!holds) return Error("'{}' is not {}", element->name, what);
    return Ok();
  }
  const std::string wanted = Rest(words, 2);
  STRATA_TRY(const bool holds, Holds(element->text, what == "text" ? "=" : what, wanted));
  if (!holds)
    return Error("the text of '{}' is '{}', not {} '{}'", element->name,
                 OneLine(element->text, 200), what, OneLine(wanted, 200));
  return Ok();
}

}  // namespace strata::viewer
