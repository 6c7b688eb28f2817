#include "viewer/panes/memory_pane.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/ui/chart.h"

namespace strata::viewer {

namespace {

void Words(Ui& ui, const Area& head, const std::string& words) {
  ui.TextIn(head, words, ui.font(Face::kSans, 11), ui.theme->ink_3);
  ui.Register("words", "text", words, head);
}

}  // namespace

void MemoryPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "memory");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const float line = ui.px(32), choice = ui.px(148);
  const float split = std::round(area.width * (view_ == 0 ? 0.62F : 0.5F));
  ui.Choice("view", {area.x + ui.px(12), area.y + ui.px(4), choice, ui.px(24)},
            {"Bytes alive", "Time for memory"}, view_);
  const float words = choice + ui.px(24);
  const Halves halves = {{area.x + words, area.y, split - words - ui.px(12), line},
                         {area.x, area.y + line, split, area.height - line - ui.px(4)},
                         {area.x + split + 1, area.y, area.width - split - 1, area.height}};
  ui.Fill({area.x + split, area.y, 1, area.height}, theme.rule);
  if (view_ == 0) {
    Lines(ui, halves, *graph);
  } else {
    Front(ui, halves, *graph);
  }
}

void MemoryPane::Lines(Ui& ui, const Halves& halves, const GraphModel& graph) {
  const MemoryLines* lines =
      lines_.Get(ui.model.workers(), ui.model.ComparisonKey(),
                 [shared = graph.shared_comparison()] { return MemoryOf(*shared); });
  if (lines == nullptr) return;
  const MemoryProfile& after = lines->after.profile;
  if (after.live.empty() || after.peak == 0)
    return ui.Sentence(halves.picture, "empty", "No sizes are known in this graph.");
  std::string words = fmt::format("Estimated from shapes. Inputs and constants {}.",
                                  BytesText(static_cast<double>(after.inputs)));
  if (after.unknown > 0)
    words += fmt::format(" {} of unknown size counted as nothing.", Plural(after.unknown, "value"));
  if (lines->differ)
    words += fmt::format(" Dashed: before, peak {}.",
                         BytesText(static_cast<double>(lines->before.profile.peak)));
  Words(ui, halves.head, words);
  const auto points = [](const MemoryProfile& profile) {
    Chart::Points list;
    const double last = std::max(1.0, static_cast<double>(profile.live.size()) - 1);
    for (size_t i = 0; i < profile.live.size(); ++i)
      list.emplace_back(static_cast<double>(i) / last, static_cast<double>(profile.live[i]));
    return list;
  };
  const Comparison& comparison = graph.comparison();
  Chart chart;
  chart.points = points(after);
  if (lines->differ) chart.before = points(lines->before.profile);
  chart.label = fmt::format("Bytes alive over the program; peak {}",
                            BytesText(static_cast<double>(after.peak)));
  chart.from_zero = true;
  chart.unit = [](double bytes) { return BytesText(bytes); };
  chart.left = "first node";
  chart.right = "last node";
  if (after.peak_at >= 0)
    chart.marks.push_back({chart.points[static_cast<size_t>(after.peak_at)].first,
                           static_cast<double>(after.peak),
                           "peak " + BytesText(static_cast<double>(after.peak)), false});
  const std::vector<SceneNodeId>& nodes = lines->after.nodes;
  chart.words = [&](size_t i) {
    const std::string bytes = BytesText(static_cast<double>(after.live[i]));
    return nodes[i].valid() ? fmt::format("{}: {}", comparison.NameOf(nodes[i]), bytes) : bytes;
  };
  const int clicked = DrawChart(ui, "chart", halves.picture, chart);
  if (clicked >= 0 && nodes[static_cast<size_t>(clicked)].valid())
    ui.model.Reveal(nodes[static_cast<size_t>(clicked)]);
  Holders(ui, halves.list, *lines);
}

void MemoryPane::Holders(Ui& ui, const Area& area, const MemoryLines& lines) const {
  const Theme& theme = *ui.theme;
  const Comparison& comparison = *ui.model.comparison();
  const float line = ui.px(26), height = ui.px(22);
  ui.TextIn({area.x + ui.px(12), area.y, area.width - ui.px(24), line}, "Largest at the peak",
            ui.font(Face::kBold, 11), theme.ink_2);
  UiPanel panel(ui, "holders", {area.x, area.y + line, area.width, area.height - line},
                theme.surface);
  const std::vector<MemoryProfile::Holder>& holders = lines.after.profile.holders;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(holders.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto k = static_cast<size_t>(i);
      const SceneNodeId node = lines.after.holders[k];
      const Area at = panel.Next(height);
      const std::string bytes = BytesText(static_cast<double>(holders[k].bytes));
      const std::string name = node.valid() ? comparison.NameOf(node) : "–";
      const Touch touch = ui.Press("holder:" + name, "row", bytes, at);
      if (touch.hovered) ui.Fill(at, theme.well);
      const float used = ui.TextRight({at.x, at.y, at.width - ui.px(12), height}, bytes,
                                      ui.font(Face::kSans, 11), theme.ink);
      const float room = at.width - used - ui.px(36);
      ui.TextIn({at.x + ui.px(12), at.y, room * 0.55F, height}, name, ui.font(Face::kMono, 11),
                theme.ink);
      if (node.valid())
        ui.TextIn({at.x + ui.px(16) + room * 0.55F, at.y, room * 0.45F, height},
                  ShortType(comparison.TypeOf(node)), ui.font(Face::kMono, 11), theme.ink_3);
      if (touch.clicked && node.valid()) ui.model.Reveal(node);
    }
  }
}

void MemoryPane::Front(Ui& ui, const Halves& halves, const GraphModel& graph) {
  const MemoryPlans* plans =
      plans_.Get(ui.model.workers(), ui.model.ComparisonKey(),
                 [shared = graph.shared_comparison()] { return MemoryPlansOf(*shared); });
  if (plans == nullptr) return Words(ui, halves.head, "Searching for plans");
  if (plans->plans.empty()) return ui.Sentence(halves.picture, "empty", plans->words);
  Words(ui, halves.head, plans->words);
  const auto bytes = [&](size_t i) { return BytesText(plans->plans[i].peak_bytes); };
  Chart chart;
  for (const MemoryPlan& plan : plans->plans) {
    chart.points.emplace_back(plan.peak_bytes, plan.added_us / 1e3);
    chart.marks.push_back({plan.peak_bytes, plan.added_us / 1e3, "", true});
  }
  chart.label = fmt::format("Time that plans of less memory add, over the peak; {}",
                            Plural(static_cast<int64_t>(plans->plans.size()), "plan"));
  chart.unit = [](double ms) { return ms == 0 ? "0" : "+" + TimeText(ms); };
  chart.left = bytes(0);
  chart.right = bytes(plans->plans.size() - 1);
  chart.words = [&](size_t i) {
    return fmt::format("{}, {}", bytes(i), chart.unit(plans->plans[i].added_us / 1e3));
  };
  DrawChart(ui, "front", halves.picture, chart);
  Plans(ui, halves.list, *plans);
}

void MemoryPane::Plans(Ui& ui, const Area& area, const MemoryPlans& plans) const {
  const Theme& theme = *ui.theme;
  const float line = ui.px(26), height = ui.px(22);
  const Font small = ui.font(Face::kSans, 11);
  ui.TextIn({area.x + ui.px(12), area.y, area.width - ui.px(24), line},
            "Peak, added time; a click runs the passes of a plan", ui.font(Face::kBold, 11),
            theme.ink_2);
  UiPanel panel(ui, "plans", {area.x, area.y + line, area.width, area.height - line},
                theme.surface);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(plans.plans.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const MemoryPlan& plan = plans.plans[static_cast<size_t>(i)];
      const Area at = panel.Next(height);
      const std::string peak = BytesText(plan.peak_bytes);
      const Touch touch = ui.Press(fmt::format("plan:{}", i), "row", peak, at);
      if (touch.hovered) {
        ui.Fill(at, theme.well);
        ui.Tip(plan.passes);
      }
      const float column = ui.px(60);
      ui.TextRight({at.x + ui.px(12), at.y, column, height}, peak, small, theme.ink);
      const std::string added = plan.added_us == 0 ? "0" : "+" + TimeText(plan.added_us / 1e3);
      ui.TextRight({at.x + ui.px(20) + column, at.y, column, height}, added, small, theme.ink);
      const float used = ui.px(36) + 2 * column;
      ui.TextIn({at.x + used, at.y, at.width - used - ui.px(12), height},
                fmt::format("{} recomputed, {} offloaded", NumberText(plan.recomputed),
                            NumberText(plan.offloaded)),
                small, theme.ink_3);
      if (touch.clicked) ui.model.RunPasses(plan.passes);
    }
  }
}

}  // namespace strata::viewer
