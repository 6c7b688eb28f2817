#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <imgui.h>

#include "base/text.h"
#include "viewer/ui/script.h"

namespace strata::viewer {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

/// Processor time of all threads of this process.
double UsedMs() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) * 1e-6;
}

}  // namespace

void ScriptRunner::BeginMeasure(const ScriptLine& line) {
  acted_ = Clock::now();
  acted_cpu_ms_ = UsedMs();
  std::string words = line.verb;
  for (const std::string& word : line.words)
    words += " " + word;
  measured_.push_back({.line = line.number, .words = OneLine(words, 60)});
}

void ScriptRunner::EndMeasure() {
  if (measured_.empty()) return;
  measured_.back().ms = std::chrono::duration<double, std::milli>(Clock::now() - acted_).count();
  measured_.back().cpu_ms = UsedMs() - acted_cpu_ms_;
}

void ScriptRunner::OnBuilt(double ms) {
  if (measured_.empty()) return;
  Measured& m = measured_.back();
  m.most_build_ms = std::max(m.most_build_ms, ms);
  m.mean_build_ms = (m.mean_build_ms * m.frames + ms) / (m.frames + 1);
  ++m.frames;
}

std::string ScriptRunner::Measures() const {
  std::string text = fmt::format("{:>4}  {:<40}{:>11}{:>11}{:>8}{:>13}{:>13}\n", "line", "command",
                                 "ms", "cpu ms", "frames", "build mean", "build most");
  for (const Measured& m : measured_) {
    text += fmt::format("{:>4}  {:<40}{:>11.1f}{:>11.1f}{:>8}{:>13.2f}{:>13.2f}\n", m.line, m.words,
                        m.ms, m.cpu_ms, m.frames, m.mean_build_ms, m.most_build_ms);
  }
  return text;
}

bool ScriptRunner::Move(Ui& ui, const ScriptLine& line) {
  GraphModel* graph = ui.model.graph();
  if (graph == nullptr || graph->geometry() == nullptr) return false;
  const std::string motion = line.words.size() > 1 ? line.words[1] : "still";
  // There and back again, so that the graph stays in sight.
  const bool back = moved_ / 30 % 2 == 1;
  if (motion == "pan") graph->Pan(back ? 23 : -23, back ? 37 : -37);
  if (motion == "zoom") graph->Zoom(back ? 1 / 0.93 : 0.93);
  return true;
}

void ScriptRunner::PushRandom(const Ui& ui, InputQueue& input) {
  const auto draw = [&](uint32_t below) {
    return static_cast<uint32_t>(random_() % std::max<uint32_t>(1, below));
  };
  static constexpr std::string_view kLeftOut[] = {"quit",    "export",     "open", "palette",
                                                  "refresh", "run-passes", "demo", "compare"};
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float top = 36 * ui.fonts.scale();  // the palette opens there
  const auto move = [&] {
    input.Push({.kind = InputEvent::Kind::kMove,
                .x = static_cast<float>(draw(static_cast<uint32_t>(size.x))),
                .y = top + static_cast<float>(draw(static_cast<uint32_t>(size.y - top)))});
  };
  const auto button = [&](bool down, uint8_t mods) {
    input.Push({.kind = InputEvent::Kind::kButton, .key = 0, .down = down, .mods = mods});
  };
  switch (draw(8)) {
    case 0:
    case 1: {
      move();
      const uint8_t mods = draw(5) == 0 ? kShift : kNoMods;
      button(true, mods);
      if (draw(3) == 0) move();
      button(false, mods);
      break;
    }
    case 2:
      move();
      input.Push({.kind = InputEvent::Kind::kWheel,
                  .mods = draw(2) == 0 ? kCtrl : kNoMods,
                  .y = static_cast<float>(draw(9)) - 4});
      break;
    case 3:
      input.Push({.kind = InputEvent::Kind::kText, .character = U'a' + draw(26)});
      break;
    default: {
      const Command& command =
          ui.commands.all()[draw(static_cast<uint32_t>(ui.commands.all().size()))];
      const bool left_out = std::ranges::find(kLeftOut, command.id) != std::end(kLeftOut) ||
                            command.id.starts_with("recent-");
      KeyPress press;
      if (left_out || command.keys.empty() || !ParseKey(command.keys.front(), press)) break;
      for (const InputEvent& event : EventsOf(press))
        input.Push(event);
      break;
    }
  }
}

Status ScriptRunner::Await(const Ui& ui, const ScriptLine& line) {
  const Status holds = Assert(ui, line);
  if (holds) {
    BeginMeasure(line);
    Next();
    return Ok();
  }
  if (Clock::now() - began_ > kPatience) return holds;
  return Ok();
}

}  // namespace strata::viewer
