#include "viewer/panes/lanes_pane.h"

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

constexpr float kChoice = 196;
constexpr const char* kMeasuredPipeline = "Pipeline: measured";
constexpr const char* kSimulatedPipeline = "Pipeline: simulated";

}  // namespace

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
  if (ui.Choice("times", {area.x + ui.px(12), area.y + ui.px(4), ui.px(kChoice), ui.px(24)},
                choices, chosen)) {
    times_ = choices[static_cast<size_t>(chosen)];
    zoom_ = 1;
    begin_ = 0;
  }
  const std::string& times = choices[static_cast<size_t>(chosen)];
  const bool is_pipeline = times == kMeasuredPipeline || times == kSimulatedPipeline;
  const LaneChart* chart =
      is_pipeline ? (times == kMeasuredPipeline ? &pipeline->measured : &pipeline->simulated)
                  : chart_.Get(ui.model.workers(), ui.model.ComparisonKey() + " " + times,
                               [shared = graph->shared_comparison(), times] {
                                 return LanesOf(*shared, times);
                               });
  if (chart == nullptr) return;
  std::string words = chart->words;
  if (chart->length > 0) words += " The wheel zooms, a drag moves.";
  const Area beside = {area.x + ui.px(kChoice + 24), area.y, area.width - ui.px(kChoice + 36),
                       head};
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
  SubjectId found;
  const IdVector<SubjectId, Subject>& subjects = ui.model.contents().subjects;
  for (SubjectId id : IdsOf(subjects))
    if (subjects[id].run == subject->run && subjects[id].graph == graph) found = id;
  if (found.valid()) ui.model.Show(found);
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
  SceneNodeId hovered;
  const LaneAction* hovered_action = nullptr;
  float drawn = -1e9F;  // what is on one pixel is drawn once, a change above the rest
  for (const LaneSpan& span : lane.spans) {
    const float from = x_of(span.begin), to = std::max(from + 1, x_of(span.end) - 0.5F);
    if (to < area.x || from > area.right()) continue;
    const bool is_hovered = touch.hovered && mouse >= from && mouse < std::max(to, from + 2);
    if (!span.node.valid()) {
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
  if (!hovered.valid()) return;
  ui.Tip(fmt::format("{}\n{}", comparison.OperatorOf(hovered), comparison.NameOf(hovered)));
  if (touch.clicked) ui.model.Reveal(hovered);
}

}  // namespace strata::viewer
