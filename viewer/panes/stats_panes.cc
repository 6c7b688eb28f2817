#include "viewer/panes/stats_panes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

LaneChart LanesOf(const Comparison& comparison, const std::string& times) {
  if (times == "Measured") return MeasuredLanes(comparison);
  const size_t colon = times.find(": ");
  return colon == std::string::npos ? LanesInOrder(comparison)
                                    : SimulatedLanes(comparison, times.substr(colon + 2));
}

constexpr const char* kMeasuredPipeline = "Pipeline: measured";
constexpr const char* kSimulatedPipeline = "Pipeline: simulated";

/// Of the comparison that is shown; changes when another one is.
std::string KeyOf(const Ui& ui) {
  const GraphModel* graph = ui.model.graph();
  return graph == nullptr ? "" : fmt::format("{}", graph->comparison().id());
}

std::string Signed(int64_t value) {
  if (value == 0) return "·";
  return value > 0 ? "+" + NumberText(value) : NumberText(value);
}

void Sentence(Ui& ui, const Area& area, std::string_view name, const std::string& words) {
  ui.Wrapped({area.x + ui.px(12), area.y + ui.px(12), area.width - ui.px(24), area.height}, words,
             ui.font(Face::kSans, 12), ui.theme->ink_2);
  ui.Register(name, "text", words, {area.x, area.y, area.width, ui.px(40)});
}

struct OperatorColumn {
  const char* title;
  float share;  // of the width
};
constexpr OperatorColumn kOperatorColumns[] = {
    {"operator", 0.30F}, {"before", 0.09F}, {"after", 0.09F}, {"difference", 0.10F},
    {"FLOPs", 0.13F},    {"bytes", 0.13F},  {"time", 0.11F}};

}  // namespace

// --- Operators ---

void OperatorsPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "operators");
  ui.Fill(area, ui.theme->surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const std::vector<OperatorRow>* rows =
      rows_.Get(ui.model.workers(), KeyOf(ui),
                [shared = graph->shared_comparison()] { return OperatorsOf(*shared); });
  const float height = ui.px(24);
  Head(ui, {area.x, area.y, area.width, height});
  const Area content = {area.x, area.y + height, area.width, area.height - height};
  if (rows == nullptr) return;
  if (rows->empty()) return Sentence(ui, content, "empty", "This graph calls no operator.");
  const std::string key = fmt::format("{} {}", KeyOf(ui), sort_);
  if (key != key_) {
    key_ = key;
    shown_ = *rows;
    const auto value = [&](const OperatorRow& row) -> double {
      switch (sort_) {
        case 1:
          return row.before;
        case 2:
          return row.after;
        case 3:
          return std::abs(row.after - row.before);
        case 4:
          return row.flops;
        case 5:
          return row.bytes;
        case 6:
          return row.time_ns;
        default:
          return 0;
      }
    };
    if (sort_ == 0) std::ranges::stable_sort(shown_, {}, &OperatorRow::op);
    if (sort_ > 0)
      std::ranges::stable_sort(
          shown_, [&](const OperatorRow& a, const OperatorRow& b) { return value(a) > value(b); });
  }
  int32_t most = 1;
  for (const OperatorRow& row : shown_)
    most = std::max({most, row.before, row.after});
  UiPanel panel(ui, "rows", content, ui.theme->surface);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(shown_.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      Row(ui, panel.Next(height), shown_[static_cast<size_t>(i)], most);
  }
}

void OperatorsPane::Head(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.bg);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  float x = area.x + ui.px(12);
  const float width = area.width - ui.px(34);
  int index = 0;
  for (const OperatorColumn& column : kOperatorColumns) {
    const Area cell = {x, area.y, width * column.share - ui.px(8), area.height};
    const std::string title = std::string(column.title) + (sort_ == index ? " ↓" : "");
    const Touch touch =
        ui.Press(std::string("sort:") + column.title, "header", title, cell, sort_ == index);
    const Font font = ui.font(Face::kBold, 11);
    const Color color = touch.hovered ? theme.ink : theme.ink_2;
    if (index == 0) {
      ui.TextIn(cell, title, font, color);
    } else {
      ui.TextRight(cell, title, font, color);
    }
    if (touch.clicked) sort_ = sort_ == index ? -1 : index;
    x += width * column.share;
    ++index;
  }
}

void OperatorsPane::Row(Ui& ui, const Area& area, const OperatorRow& row, int32_t most) const {
  const Theme& theme = *ui.theme;
  const int32_t difference = row.after - row.before;
  const Touch touch = ui.Press("row:" + Visible(row.op), "row",
                               fmt::format("{} → {}", row.before, row.after), area);
  if (touch.hovered) ui.Fill(area, theme.well);
  ui.Fill({area.x, area.bottom() - 1, area.width, 1}, theme.rule);
  const auto known = [](double value, std::string words) {
    return value > 0 ? std::move(words) : std::string("–");
  };
  const std::string cells[] = {Visible(row.op),
                               NumberText(row.before),
                               NumberText(row.after),
                               Signed(difference),
                               known(row.flops, FlopsText(row.flops)),
                               known(row.bytes, BytesText(row.bytes)),
                               TimeText(row.time_ns * 1e-6)};
  float x = area.x + ui.px(12);
  const float width = area.width - ui.px(22);
  for (size_t i = 0; i < std::size(kOperatorColumns); ++i) {
    const Area cell = {x, area.y, width * kOperatorColumns[i].share - ui.px(8), area.height};
    if (i == 0) {
      ui.TextIn(cell, cells[i], ui.font(Face::kMono, 11), theme.ink);
    } else {
      const Color color = i != 3           ? theme.ink_2
                          : difference > 0 ? theme.added.text
                          : difference < 0 ? theme.removed.text
                                           : theme.ink_3;
      ui.TextRight(cell, cells[i], ui.font(Face::kSans, 11), color);
    }
    x += width * kOperatorColumns[i].share;
  }
  // The calls of both sides in grey, and the difference in its colour.
  const float room = area.right() - ui.px(12) - x;
  const float common =
      room * static_cast<float>(std::min(row.before, row.after)) / static_cast<float>(most);
  const float rest = room * static_cast<float>(std::abs(difference)) / static_cast<float>(most);
  const float y = area.y + ui.px(8), height = ui.px(8);
  ui.Fill({x, y, common, height}, theme.tick_2);
  if (difference != 0)
    ui.Fill({x + common, y, std::max(1.0F, rest), height},
            difference > 0 ? theme.added.line : theme.removed.line);
  if (touch.clicked && row.first >= 0) ui.model.Reveal(row.first);
}

// --- Memory ---

void MemoryPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "memory");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  const MemoryLines* lines =
      lines_.Get(ui.model.workers(), KeyOf(ui),
                 [shared = graph->shared_comparison()] { return MemoryOf(*shared); });
  if (lines == nullptr) return;
  const MemoryProfile& after = lines->after.profile;
  if (after.live.empty() || after.peak == 0)
    return Sentence(ui, area, "empty", "No sizes are known in this graph.");
  std::string words = fmt::format("Estimated from shapes. Inputs and constants {}.",
                                  BytesText(static_cast<double>(after.inputs)));
  if (after.unknown > 0)
    words += fmt::format(" {} of unknown size counted as nothing.", Plural(after.unknown, "value"));
  if (lines->differ)
    words += fmt::format(" Dashed: before, peak {}.",
                         BytesText(static_cast<double>(lines->before.profile.peak)));
  const float line = ui.px(26), split = std::round(area.width * 0.62F);
  ui.TextIn({area.x + ui.px(12), area.y, split - ui.px(24), line}, words, ui.font(Face::kSans, 11),
            theme.ink_3);
  ui.Register("words", "text", words, {area.x, area.y, split, line});
  const auto points = [](const MemoryProfile& profile) {
    Chart::Points list;
    const double last = std::max(1.0, static_cast<double>(profile.live.size()) - 1);
    for (size_t i = 0; i < profile.live.size(); ++i)
      list.emplace_back(static_cast<double>(i) / last, static_cast<double>(profile.live[i]));
    return list;
  };
  const Comparison& comparison = graph->comparison();
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
  const std::vector<int32_t>& nodes = lines->after.nodes;
  chart.words = [&](size_t i) {
    const std::string bytes = BytesText(static_cast<double>(after.live[i]));
    return nodes[i] >= 0 ? fmt::format("{}: {}", comparison.NameOf(nodes[i]), bytes) : bytes;
  };
  const int clicked =
      DrawChart(ui, "chart", {area.x, area.y + line, split, area.height - line - ui.px(4)}, chart);
  if (clicked >= 0 && nodes[static_cast<size_t>(clicked)] >= 0)
    ui.model.Reveal(nodes[static_cast<size_t>(clicked)]);
  ui.Fill({area.x + split, area.y, 1, area.height}, theme.rule);
  Holders(ui, {area.x + split + 1, area.y, area.width - split - 1, area.height}, *lines);
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
      const int32_t node = lines.after.holders[k];
      const Area at = panel.Next(height);
      const std::string bytes = BytesText(static_cast<double>(holders[k].bytes));
      const std::string name = node >= 0 ? comparison.NameOf(node) : "–";
      const Touch touch = ui.Press("holder:" + name, "row", bytes, at);
      if (touch.hovered) ui.Fill(at, theme.well);
      const float used = ui.TextRight({at.x, at.y, at.width - ui.px(12), height}, bytes,
                                      ui.font(Face::kSans, 11), theme.ink);
      const float room = at.width - used - ui.px(36);
      ui.TextIn({at.x + ui.px(12), at.y, room * 0.55F, height}, name, ui.font(Face::kMono, 11),
                theme.ink);
      if (node >= 0)
        ui.TextIn({at.x + ui.px(16) + room * 0.55F, at.y, room * 0.45F, height},
                  ShortType(comparison.TypeOf(node)), ui.font(Face::kMono, 11), theme.ink_3);
      if (touch.clicked && node >= 0) ui.model.Reveal(node);
    }
  }
}

// --- Lanes ---

void LanesPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "lanes");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  const GraphModel* graph = ui.model.graph();
  if (graph == nullptr) return;
  std::vector<std::string> choices = {"Program order"};
  for (const std::string_view topology : kTopologies)
    choices.push_back(fmt::format("Simulated: {}", topology));
  const PipelineCharts* pipeline = Pipeline(ui);
  if (pipeline != nullptr) choices.insert(choices.end(), {kMeasuredPipeline, kSimulatedPipeline});
  if (graph->comparison().has_measures()) choices.emplace_back("Measured");
  const auto found = std::ranges::find(choices, times_);
  int chosen = found == choices.end() ? 0 : static_cast<int>(found - choices.begin());
  const float head = ui.px(32), name = ui.px(96), height = ui.px(24);
  if (ui.Choice("times", {area.x + ui.px(12), area.y + ui.px(4), ui.px(148), ui.px(24)}, choices,
                chosen)) {
    times_ = choices[static_cast<size_t>(chosen)];
    zoom_ = 1;
    begin_ = 0;
  }
  const std::string& times = choices[static_cast<size_t>(chosen)];
  const bool is_pipeline = times == kMeasuredPipeline || times == kSimulatedPipeline;
  const LaneChart* chart =
      is_pipeline ? (times == kMeasuredPipeline ? &pipeline->measured : &pipeline->simulated)
                  : chart_.Get(ui.model.workers(), KeyOf(ui) + " " + times,
                               [shared = graph->shared_comparison(), times] {
                                 return LanesOf(*shared, times);
                               });
  if (chart == nullptr) return;
  std::string words = chart->words;
  if (chart->length > 0) words += " The wheel zooms, a drag moves.";
  const Area beside = {area.x + ui.px(172), area.y, area.width - ui.px(184), head};
  ui.TextIn(beside, words, ui.font(Face::kSans, 11), theme.ink_3);
  ui.Register("words", "text", words, beside);
  if (chart->length <= 0) return;
  UiPanel panel(ui, "rows", {area.x, area.y + head, area.width, area.height - head}, theme.surface);
  const Area plot = {area.x + name, area.y + head, area.width - name - ui.px(22), 0};
  for (const Lane& lane : chart->lanes) {
    const Area at = panel.Next(height);
    if (!panel.Shows(at)) continue;
    ui.TextRight({at.x + ui.px(8), at.y, name - ui.px(16), height}, lane.name,
                 ui.font(Face::kSans, 11), theme.ink_2);
    Spans(ui, {plot.x, at.y, plot.width, height}, lane, *chart);
  }
}

const PipelineCharts* LanesPane::Pipeline(Ui& ui) {
  const Subject* subject = ui.model.subject();
  if (ui.model.document() == nullptr || subject == nullptr) return nullptr;
  const std::string path = ui.model.document()->trace_path();
  const RunId run = subject->run;
  const std::string key =
      fmt::format("{} {} {}", path, static_cast<int64_t>(run), ui.model.version());
  const std::optional<PipelineCharts>* charts =
      pipeline_.Get(ui.model.workers(), key, [path, run] { return PipelineLanes(path, run); });
  return charts != nullptr && *charts ? &**charts : nullptr;
}

void LanesPane::ShowGraph(Ui& ui, const std::string& graph) {
  const Subject* subject = ui.model.subject();
  if (graph.empty() || subject == nullptr) return;
  // The last pass over the graph: what ran.
  int32_t found = -1;
  const std::vector<Subject>& subjects = ui.model.contents().subjects;
  for (size_t i = 0; i < subjects.size(); ++i)
    if (subjects[i].run == subject->run && subjects[i].graph == graph)
      found = static_cast<int32_t>(i);
  if (found >= 0) ui.model.Show(found);
}

void LanesPane::DrawAction(Ui& ui, const Area& bar, const LaneAction& action, float from,
                           float to) const {
  const Heat heat = HeatOf(action.share);
  const bool is_communication = action.share < 0;
  const float height = action.is_short ? ui.px(3) : bar.height;
  const Area area = {from, bar.y + bar.height - height, to - from, height};
  ui.Fill(area, is_communication ? ui.theme->edge : heat.fill);
  if (!action.is_short && to - from > ui.px(24))
    ui.TextIn({from + ui.px(2), bar.y, to - from - ui.px(4), bar.height}, action.name,
              ui.font(Face::kSans, 10), is_communication ? ui.theme->badge_ink : heat.ink);
  ui.Register("action:" + action.name, "span", action.words,
              {std::max(from, bar.x), bar.y, std::min(to, bar.right()) - std::max(from, bar.x),
               bar.height});
}

void LanesPane::Spans(Ui& ui, const Area& area, const Lane& lane, const LaneChart& chart) {
  const Theme& theme = *ui.theme;
  const Comparison& comparison = *ui.model.comparison();
  const Touch touch = ui.Press("lane:" + lane.name, "lane",
                               Plural(static_cast<int64_t>(lane.spans.size()), "call"), area);
  const float mouse = ImGui::GetIO().MousePos.x;
  if (touch.hovered && ImGui::GetIO().MouseWheel != 0) {
    const double at = begin_ + (mouse - area.x) / area.width / zoom_;
    zoom_ = std::clamp(zoom_ * std::exp(ImGui::GetIO().MouseWheel * 0.2), 1.0,
                       std::max(1.0, static_cast<double>(lane.spans.size())));
    begin_ = at - (mouse - area.x) / area.width / zoom_;
  }
  if (touch.held) begin_ -= ImGui::GetIO().MouseDelta.x / area.width / zoom_;
  begin_ = std::clamp(begin_, 0.0, 1 - 1 / zoom_);
  const auto x_of = [&](double position) {
    return area.x + static_cast<float>((position / chart.length - begin_) * zoom_ * area.width);
  };
  const Area bar = {area.x, area.y + ui.px(4), area.width, area.height - ui.px(8)};
  ui.Fill(bar, theme.well);
  ui.draw().PushClipRect(bar.min(), bar.max(), true);
  int32_t hovered = -1;
  const LaneAction* hovered_action = nullptr;
  float drawn = -1e9F;  // what is on one pixel is drawn once, a change above the rest
  for (const LaneSpan& span : lane.spans) {
    const float from = x_of(span.begin), to = std::max(from + 1, x_of(span.end) - 0.5F);
    if (to < area.x || from > area.right()) continue;
    const bool is_hovered = touch.hovered && mouse >= from && mouse < std::max(to, from + 2);
    if (span.node < 0) {
      const LaneAction& action = chart.actions[span.action];
      if (is_hovered) hovered_action = &action;
      DrawAction(ui, bar, action, from, to);
      continue;
    }
    if (is_hovered) hovered = span.node;
    const SceneStatus status = comparison.StatusOf(span.node);
    const Theme::StatusColors* colors = theme.Of(status);
    const bool here = span.node == ui.model.selected();
    if (colors == nullptr && !here && to < drawn + 0.5F) continue;
    drawn = to;
    const Color color = here                ? theme.accent
                        : colors != nullptr ? colors->line
                        : lane.collectives  ? theme.edge
                                            : theme.tick_2;
    ui.Fill({from, bar.y, to - from, bar.height}, color);
    ui.Register("span:" + comparison.NameOf(span.node), "span", lane.name,
                {std::max(from, bar.x), bar.y, std::min(to, bar.right()) - std::max(from, bar.x),
                 bar.height});
    if (lane.collectives && to - from > ui.px(40))
      ui.TextIn({from + ui.px(4), bar.y, to - from - ui.px(8), bar.height},
                comparison.LabelOf(span.node), ui.font(Face::kSans, 10), theme.badge_ink);
  }
  ui.draw().PopClipRect();
  if (hovered_action != nullptr) {
    ui.Tip(hovered_action->words);
    if (touch.clicked) ShowGraph(ui, hovered_action->graph);
  }
  if (hovered < 0) return;
  ui.Tip(fmt::format("{}\n{}", comparison.OperatorOf(hovered), comparison.NameOf(hovered)));
  if (touch.clicked) ui.model.Reveal(hovered);
}

}  // namespace strata::viewer
