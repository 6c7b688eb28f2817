#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/panes/node_sheet.h"

namespace strata::viewer {
namespace {

/// The least and the greatest element that is a number; both are NaN: there is none.
std::pair<double, double> BoundsOf(const ControlState::Value::Matrix& matrix) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  double least = kNaN, greatest = kNaN;
  for (const double element : matrix.elements) {
    least = std::fmin(least, element);
    greatest = std::fmax(greatest, element);
  }
  return {least, greatest};
}

}  // namespace

void NodeSheet::Paragraph(std::string_view name, const std::string& words) {
  Area at = Inner(0);
  at.height = ui_.Wrapped(at, words, ui_.font(Face::kSans, 12), theme_.ink_2);
  panel_.Skip(at.height);
  ui_.Register(name, "text", words, at);
}

void NodeSheet::ValueAtStop() {
  const ControlState* control = ui_.model.control();
  if (control == nullptr || control->phase != ControlState::Phase::kStopped || !control->value)
    return;
  const ControlState::Value& value = *control->value;
  if (value.name != c_.listing_of(node_).name(c_.entity_of(node_))) return;
  Title("Value at the stop");
  const UiScope scope(ui_, "value");
  if (!value.error.empty()) return Paragraph("error", Visible(value.error));
  FieldRow("value", "", fmt::format("{} {}", Visible(value.dtype), value.sizes), false, false);
  for (const auto& [name, number] : value.statistics)
    FieldRow(name, "", number, false, false);
  if (!value.counts.empty()) Histogram(value);
  if (value.sizes == "[]") return;
  panel_.Skip(ui_.px(8));
  if (std::exchange(slice_.value, value.name) != value.name) slice_.text.clear();
  ui_.Input("slice", "slice: 0:4, 3, :", Inner(26), slice_.text,
            std::exchange(slice_.focus, false));
  slice_.written = ImGui::IsItemActive();
  panel_.Skip(ui_.px(8));
  if (!value.matrix) return;
  if (!value.matrix->error.empty()) return Paragraph("slice-error", Visible(value.matrix->error));
  Matrix(*value.matrix);
}

void NodeSheet::Histogram(const ControlState::Value& value) {
  panel_.Skip(ui_.px(8));
  const Area at = Inner(48);
  const auto most = static_cast<float>(std::max<int64_t>(1, std::ranges::max(value.counts)));
  const float width = at.width / static_cast<float>(value.counts.size());
  for (size_t i = 0; i < value.counts.size(); ++i) {
    const float height = at.height * static_cast<float>(value.counts[i]) / most;
    ui_.Fill({at.x + static_cast<float>(i) * width, at.bottom() - height, width - 1, height},
             theme_.tick_2);
  }
  ui_.Fill({at.x, at.bottom(), at.width, 1}, theme_.rule_2);
  ui_.Register("histogram", "chart", fmt::format("{} intervals", value.counts.size()), at);
  const Area below = Inner(18);
  ui_.TextIn(below, "elements between least and greatest", ui_.font(Face::kSans, 11), theme_.ink_3);
}

void NodeSheet::Matrix(const ControlState::Value::Matrix& matrix) {
  if (matrix.elements.empty()) return Paragraph("slice-error", "This slice has no elements.");
  const auto columns = static_cast<size_t>(matrix.columns);
  const size_t rows = (matrix.elements.size() + columns - 1) / columns;
  const auto [least, greatest] = BoundsOf(matrix);
  const Font small = ui_.font(Face::kSans, 11);
  const float room = panel_.width() - ui_.px(32), width = room / static_cast<float>(columns);
  const bool has_numbers = width >= ui_.px(44);
  const float height = has_numbers ? ui_.px(20) : std::clamp(width, ui_.px(3), ui_.px(12));
  const Area at = panel_.Next(height * static_cast<float>(rows));
  const float left = at.x + ui_.px(16);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const std::string words =
      fmt::format("{} {} × {}, from {} to {}",
                  matrix.slice.empty() ? "image" : "slice " + Visible(matrix.slice), rows, columns,
                  RealText(least), RealText(greatest));
  const Touch touch = ui_.Press("matrix", "chart", words, {left, at.y, room, at.height});
  for (size_t i = 0; i < matrix.elements.size(); ++i) {
    const float x = left + static_cast<float>(i % columns) * width;
    const float y = at.y + static_cast<float>(i / columns) * height;
    const Area cell = {x, y, width, height};
    const double element = matrix.elements[i];
    const double share = greatest > least ? (element - least) / (greatest - least) : 0.5;
    const Heat heat = HeatOf(static_cast<float>(std::isfinite(share) ? share : 0));
    const bool finite = std::isfinite(element);
    ui_.draw().AddRectFilled(cell.min(), cell.max(), finite ? heat.fill : theme_.removed.line);
    const std::string number = RealText(element, 3);
    if (has_numbers)
      ui_.TextRight({x, y, width - ui_.px(4), height}, number, small,
                    finite ? heat.ink : theme_.surface);
    if (touch.hovered && mouse.x >= x && mouse.x < x + width && mouse.y >= y &&
        mouse.y < y + height)
      ui_.Tip(fmt::format("row {}, column {}: {}", i / columns, i % columns, number));
  }
  Area below = Inner(18);
  ui_.TextIn(below, words, small, theme_.ink_3);
  ui_.Register("matrix-words", "text", words, below);
  const auto broken =
      std::ranges::count_if(matrix.elements, [](double e) { return !std::isfinite(e); });
  if (broken == 0) return;
  below = Inner(18);
  const float side = ui_.px(10);
  ui_.Fill({below.x, below.y + (below.height - side) / 2, side, side}, theme_.removed.line);
  below.x += side + ui_.px(6);
  const std::string count = fmt::format("{} not finite", NumberText(broken));
  ui_.TextIn(below, count, small, theme_.ink_3);
  ui_.Register("not-finite", "text", count, below);
}

}  // namespace strata::viewer
