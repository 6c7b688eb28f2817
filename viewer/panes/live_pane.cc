#include "viewer/panes/live_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
void LivePane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "live");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const RunEntry* run = nullptr;
  if (ui.model.has_contents() && !ui.model.contents().runs.empty()) {
    const Subject* subject = ui.model.subject();
    if (subject != nullptr) run = ui.model.contents().RunOf(*subject);
    if (run == nullptr) run = &ui.model.contents().runs.back();
  }
  const float state = run != nullptr ? std::min(ui.px(280), area.width * 0.28F) : 0;
  const float control = std::min(ui.px(400), area.width * 0.38F);
  if (run != nullptr) {
    State(ui, {area.x, area.y, state, area.height}, *run);
    ui.Fill({area.x + state, area.y, 1, area.height}, theme.rule);
  }
  control_.Draw(ui, {area.x + state + 1, area.y, control, area.height}, run);
  const float left = area.x + state + 1 + control;
  ui.Fill({left, area.y, 1, area.height}, theme.rule);
  if (run != nullptr) Charts(ui, {left + 1, area.y, area.right() - left - 1, area.height}, *run);
}

void LivePane::State(Ui& ui, const Area& area, const RunEntry& run) const {
  const Theme& theme = *ui.theme;
  UiPanel panel(ui, "state", area, theme.surface);
  panel.Skip(ui.px(8));
  const auto row = [&](std::string_view name, std::string_view label, const std::string& words) {
    const Area at = panel.Next(ui.px(20));
    ui.TextIn({at.x + ui.px(12), at.y, ui.px(92), at.height}, label, ui.font(Face::kSans, 12),
              theme.ink_2);
    ui.TextIn({at.x + ui.px(104), at.y, at.width - ui.px(116), at.height}, words,
              ui.font(Face::kMono, 11), theme.ink);
    ui.Register(name, "text", words, at);
  };
  const std::vector<StepRecord>& steps = *run.steps;
  row("run", "run", fmt::format("{}: {}, {}", static_cast<int64_t>(run.id), run.kind, run.ranks));
  row("status", "status",
      run.status == "running" && !ui.model.following ? "running, following paused" : run.status);
  row("passes", "passes", NumberText(static_cast<int64_t>(run.subjects.size())));
  if (steps.empty()) return;
  const StepRecord& last = steps.back();
  const bool planned = run.planned_steps > 0;
  row("step", "step",
      planned ? fmt::format("{} of {}", NumberText(last.step), NumberText(run.planned_steps))
              : NumberText(last.step));
  if (planned && run.running()) {
    const Area at = panel.Next(ui.px(10));
    ui.Progress("progress", {at.x + ui.px(12), at.y, at.width - ui.px(24), ui.px(6)}, last.step,
                run.planned_steps);
  }
  row("loss", "loss", RealText(last.loss));
  row("grad-norm", "gradient norm", RealText(last.grad_norm));
  row("time", "time", TimeText(static_cast<double>(last.wall_ns) * 1e-6));
  int64_t total = 0;
  for (const StepRecord& step : steps)
    total += step.wall_ns;
  const double mean = static_cast<double>(total) * 1e-6 / static_cast<double>(steps.size());
  row("mean-time", "mean time", TimeText(mean));
  const int64_t left = run.planned_steps - last.step;
  if (left > 0 && run.running())
    row("time-left", "time left", "about " + TimeText(mean * static_cast<double>(left)));
  if (!run.running()) return;
  panel.Skip(ui.px(8));
  const Area at = panel.Next(ui.px(28));
  if (ui.Button("follow", ui.model.following ? "Pause following" : "Follow",
                {at.x + ui.px(12), at.y, ui.px(132), at.height}, ui.model.following))
    ui.model.following = !ui.model.following;
}

void LivePane::Charts(Ui& ui, const Area& area, const RunEntry& run) const {
  const Theme& theme = *ui.theme;
  const std::vector<StepRecord>& steps = *run.steps;
  if (steps.empty()) {
    const std::string words = run.kind == "train" ? "No step has ended yet."
                                                  : "This run trains nothing: it has no steps.";
    ui.TextIn({area.x + ui.px(12), area.y + ui.px(8), area.width - ui.px(24), ui.px(28)}, words,
              ui.font(Face::kSans, 12), theme.ink_2);
    ui.Register("empty", "text", words, area);
    return;
  }
  const auto chart_of = [&](std::string_view name, std::string_view title, const Area& at,
                            double (*value)(const StepRecord&), std::string (*unit)(double)) {
    ui.TextIn({at.x + ui.px(12), at.y, at.width, ui.px(22)}, title, ui.font(Face::kBold, 11),
              theme.ink_2);
    Chart chart;
    chart.label = std::string(title);
    for (const StepRecord& step : steps)
      chart.points.emplace_back(static_cast<double>(step.step), value(step));
    chart.unit = unit;
    chart.left = fmt::format("step {}", NumberText(steps.front().step));
    chart.right = fmt::format("step {}", NumberText(steps.back().step));
    const double last = value(steps.back());
    if (std::isfinite(last))
      chart.marks.push_back({static_cast<double>(steps.back().step), last, unit(last), false});
    chart.words = [&](size_t i) {
      return fmt::format("step {}: {}", NumberText(steps[i].step), unit(value(steps[i])));
    };
    DrawChart(ui, name, {at.x, at.y + ui.px(22), at.width, at.height - ui.px(24)}, chart);
  };
  const auto short_text = [](double number) { return RealText(number); };
  const float wide = std::round(area.width * 0.52F), half = std::round(area.height / 2);
  chart_of(
      "loss-chart", "Loss", {area.x, area.y, wide, area.height},
      [](const StepRecord& s) { return s.loss; }, short_text);
  const Area right = {area.x + wide, area.y, area.width - wide, half};
  chart_of(
      "grad-norm-chart", "Gradient norm", right, [](const StepRecord& s) { return s.grad_norm; },
      short_text);
  chart_of(
      "time-chart", "Time of a step", {right.x, area.y + half, right.width, area.height - half},
      [](const StepRecord& s) { return static_cast<double>(s.wall_ns); },
      [](double ns) { return TimeText(ns * 1e-6); });
}

}  // namespace strata::viewer
