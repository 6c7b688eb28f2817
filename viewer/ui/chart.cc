#include "viewer/ui/chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace strata::viewer {
namespace {

constexpr float kRight = 12, kTop = 16, kBottom = 20;

/// The room for labels left of the plot.
float LeftOf(const Ui& ui, const Area& area) {
  return area.width < ui.px(200) ? ui.px(52) : ui.px(76);
}

/// Where values stand on the screen.
class Scales {
 public:
  Scales(const Ui& ui, const Area& area, const Chart& chart)
      : plot_{area.x + LeftOf(ui, area), area.y + ui.px(kTop),
              std::max(1.0F, area.width - LeftOf(ui, area) - ui.px(kRight)),
              std::max(1.0F, area.height - ui.px(kTop + kBottom))} {
    bool first = true;
    for (const Chart::Points* points : {&chart.points, &chart.before}) {
      for (const auto& [x, y] : *points) {
        if (!std::isfinite(y)) continue;
        left_ = first ? x : std::min(left_, x);
        right_ = first ? x : std::max(right_, x);
        low_ = first ? y : std::min(low_, y);
        high_ = first ? y : std::max(high_, y);
        first = false;
      }
    }
    if (chart.from_zero) low_ = std::min(0.0, low_);
    if (high_ <= low_) high_ = low_ + 1;
  }

  const Area& plot() const { return plot_; }
  double low() const { return low_; }
  double high() const { return high_; }
  float X(double x) const {
    const double share = right_ > left_ ? (x - left_) / (right_ - left_) : 0.5;
    return plot_.x + static_cast<float>(share) * plot_.width;
  }
  float Y(double y) const {
    return plot_.y + static_cast<float>((high_ - y) / (high_ - low_)) * plot_.height;
  }

 private:
  const Area plot_;
  double left_ = 0, right_ = 1, low_ = 0, high_ = 0;
};

/// The points of a line, at most two of each column of pixels: its least and its greatest.
std::vector<ImVec2> Outline(const Scales& scales, const Chart::Points& points) {
  std::vector<ImVec2> line;
  float column = -1e9F;
  size_t least = 0, most = 0;
  for (const auto& [x, y] : points) {
    if (!std::isfinite(y)) continue;
    const ImVec2 at = {scales.X(x), scales.Y(y)};
    if (std::floor(at.x) != column) {
      column = std::floor(at.x);
      least = most = line.size();
      line.push_back(at);
      continue;
    }
    if (at.y < line[least].y || at.y > line[most].y) {
      if (least == most) {
        (at.y < line[least].y ? least : most) = line.size();
        line.push_back(at);
      } else {
        ImVec2& old = line[at.y < line[least].y ? least : most];
        old.y = at.y;
      }
    }
  }
  return line;
}

void Grid(Ui& ui, const Area& area, const Chart& chart, const Scales& scales) {
  const Theme& theme = *ui.theme;
  const Font font = ui.font(Face::kSans, 11);
  const Area& plot = scales.plot();
  std::string last;  // lines that read the same, or whose labels would touch, have one label
  float last_y = -1e9F;
  for (const double value : {scales.high(), scales.low(), (scales.high() + scales.low()) / 2}) {
    const float y = std::round(scales.Y(value));
    ui.Fill({plot.x, y, plot.width, 1}, theme.rule);
    std::string words = chart.unit(value);
    if (words == last || std::abs(y - last_y) < ui.px(14)) continue;
    ui.TextRight({area.x, y - ui.px(8), plot.x - area.x - ui.px(8), ui.px(16)}, words, font,
                 theme.ink_3);
    last = std::move(words);
    last_y = y;
  }
  const Area foot = {plot.x, plot.bottom() + ui.px(3), plot.width, ui.px(kBottom - 3)};
  if (font.WidthOf(chart.left) <= plot.width) ui.TextIn(foot, chart.left, font, theme.ink_3);
  const bool has_room =
      font.WidthOf(chart.left) + font.WidthOf(chart.right) + ui.px(12) < plot.width;
  if (chart.right != chart.left && has_room) ui.TextRight(foot, chart.right, font, theme.ink_3);
}

void Dashed(Ui& ui, const std::vector<ImVec2>& line, Color color) {
  const float dash = ui.px(4);
  float walked = 0;
  for (size_t i = 1; i < line.size(); ++i) {
    ImVec2 from = line[i - 1];
    const ImVec2 to = line[i];
    float left = std::hypot(to.x - from.x, to.y - from.y);
    while (left > 0.01F) {
      const float room = dash - std::fmod(walked, dash), step = std::min(left, room);
      const ImVec2 next = {from.x + (to.x - from.x) * step / left,
                           from.y + (to.y - from.y) * step / left};
      if (std::fmod(walked, 2 * dash) < dash) ui.draw().AddLine(from, next, color, ui.px(1));
      walked += step;
      left -= step;
      from = next;
    }
  }
}

void Marks(Ui& ui, const Chart& chart, const Scales& scales) {
  const Theme& theme = *ui.theme;
  const Font font = ui.font(Face::kBold, 11);
  for (const Chart::Mark& mark : chart.marks) {
    const ImVec2 at = {scales.X(mark.x), scales.Y(mark.y)};
    ui.draw().AddCircleFilled(at, ui.px(3), mark.quiet ? theme.edge : theme.accent);
    const float width = font.WidthOf(mark.words);
    if (mark.words.empty() || width + ui.px(8) > scales.plot().width) continue;
    const bool before = at.x + width + ui.px(8) > scales.plot().right();
    const float y = std::max(scales.plot().y - font.size, at.y - font.size - ui.px(3));
    const float x = before ? at.x - width - ui.px(6) : at.x + ui.px(6);
    ui.Fill({x - ui.px(2), y, width + ui.px(4), font.size}, theme.surface);
    ui.Text(x, y, mark.words, font, mark.quiet ? theme.ink_3 : theme.accent);
  }
}

/// The point nearest to the pointer.
size_t Nearest(const Chart& chart, const Scales& scales, float x) {
  const auto after = std::ranges::lower_bound(
      chart.points, x, {}, [&](const auto& point) { return scales.X(point.first); });
  if (after == chart.points.begin()) return 0;
  const auto before = after - 1;
  const bool is_after =
      after != chart.points.end() && scales.X(after->first) - x < x - scales.X(before->first);
  return static_cast<size_t>((is_after ? after : before) - chart.points.begin());
}

}  // namespace

int DrawChart(Ui& ui, std::string_view name, const Area& area, const Chart& chart) {
  const Theme& theme = *ui.theme;
  const Touch touch = ui.Press(name, "chart", chart.label, area);
  if (chart.points.empty()) return -1;
  const Scales scales(ui, area, chart);
  Grid(ui, area, chart, scales);
  const std::vector<ImVec2> line = Outline(scales, chart.points);
  if (chart.from_zero) {
    const float bottom = scales.Y(0);
    // Neighbours share an edge, which smooth edges would draw twice.
    const ImDrawListFlags flags =
        std::exchange(ui.draw().Flags, ui.draw().Flags & ~ImDrawListFlags_AntiAliasedFill);
    for (size_t i = 1; i < line.size(); ++i)
      ui.draw().AddQuadFilled(line[i - 1], line[i], {line[i].x, bottom}, {line[i - 1].x, bottom},
                              theme.well_2);
    ui.draw().Flags = flags;
  }
  Dashed(ui, Outline(scales, chart.before), theme.ink_3);
  ui.draw().AddPolyline(line.data(), static_cast<int>(line.size()), theme.ink, 0, ui.px(1.5F));
  Marks(ui, chart, scales);
  if (!touch.hovered) return -1;
  const size_t here = Nearest(chart, scales, ImGui::GetIO().MousePos.x);
  const auto& [x, y] = chart.points[here];
  ui.Fill({std::round(scales.X(x)), scales.plot().y, 1, scales.plot().height}, theme.rule_2);
  ui.draw().AddCircleFilled({scales.X(x), scales.Y(y)}, ui.px(4), theme.accent);
  const std::string words = chart.words ? chart.words(here) : chart.unit(y);
  const Font font = ui.font(Face::kBold, 11);
  ui.Text(scales.plot().x + (scales.plot().width - font.WidthOf(words)) / 2,
          scales.plot().bottom() + ui.px(4), words, font, theme.ink);
  return touch.clicked ? static_cast<int>(here) : -1;
}

}  // namespace strata::viewer
