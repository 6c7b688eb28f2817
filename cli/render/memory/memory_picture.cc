#include "cli/render/memory/memory_picture.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"

namespace strata::cli {
namespace {

constexpr double kWidth = 720, kHeight = 260, kLeft = 84, kRight = 16, kTop = 16, kBottom = 40;

std::string Mebibytes(double bytes) {
  return fmt::format("{:.2f} MiB", bytes / (1024.0 * 1024.0));
}
std::string ExtraMilliseconds(double us) {
  return fmt::format("+{:.3f} ms", us / 1e3);
}

class Picture {
 public:
  explicit Picture(const std::vector<BudgetedPlan>& front) : front_(front) {
    if (front.empty()) return;
    low_ = static_cast<double>(front.front().peak_bytes);
    high_ = static_cast<double>(front.back().peak_bytes);
    for (const BudgetedPlan& plan : front)
      most_us_ = std::max(most_us_, plan.us);
  }

  std::string Content() const {
    std::string svg = Grid();
    std::string line;
    for (const BudgetedPlan& plan : front_)
      line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", X(plan), Y(plan.us));
    svg += fmt::format("<polyline class=\"line\" points=\"{}\"/>\n", line);
    for (const BudgetedPlan& plan : front_) {
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}, {}: {} recomputed, {} "
          "offloaded</title></circle>\n",
          X(plan), Y(plan.us), Mebibytes(static_cast<double>(plan.peak_bytes)),
          ExtraMilliseconds(plan.us), plan.num_recomputed, plan.num_offloaded);
    }
    return svg;
  }

 private:
  double X(const BudgetedPlan& plan) const {
    const double share =
        (static_cast<double>(plan.peak_bytes) - low_) / std::max(high_ - low_, 1.0);
    return kLeft + (kWidth - kLeft - kRight) * share;
  }
  double Y(double us) const {
    return kTop + (kHeight - kTop - kBottom) * (1 - us / std::max(most_us_, 1e-9));
  }

  std::string Grid() const {
    std::string svg;
    for (const double share : {0.0, 0.5, 1.0}) {
      const double y = Y(most_us_ * share), x = kLeft + (kWidth - kLeft - kRight) * share;
      svg += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, kWidth - kRight, y, kLeft - 8, y + 4, ExtraMilliseconds(most_us_ * share));
      const std::string_view anchor = share == 0 ? "start" : share == 1 ? "end" : "middle";
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x,
                         kHeight - kBottom + 20, anchor, Mebibytes(low_ + (high_ - low_) * share));
    }
    return svg;
  }

  const std::vector<BudgetedPlan>& front_;
  double low_ = 0, high_ = 0, most_us_ = 0;
};

std::string Opening(std::string_view attributes, const Graph& graph) {
  return fmt::format(
      "<svg {} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Time that plans of less memory add, "
      "over the peak of graph {}\">\n",
      attributes, kWidth, kHeight, EscapeMarkup(graph.name_text()));
}

}  // namespace

std::string FrontPicture(const Graph& graph, const MemoryFront& front) {
  constexpr std::string_view kStyle =
      "<style>text{font:11px sans-serif;fill:#444}.line{fill:none;stroke:#222;stroke-width:1.5}"
      ".grid{stroke:#ccc}circle{fill:#222}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  return Opening("xmlns=\"http://www.w3.org/2000/svg\"", graph) + std::string(kStyle) +
         Picture(front.plans).Content() + "</svg>\n";
}

std::string FrontMarkup(const Graph& graph, const MemoryFront& front) {
  return fmt::format(
      "<h2>Time for memory</h2>\n<div class=\"box pad\">\n{}{}</svg>\n"
      "<p class=\"quiet small\">Plans of the pass budget for graph {}: peaks beside inputs, "
      "added time as {}</p>\n</div>\n",
      Opening("class=\"chart\"", graph), Picture(front.plans).Content(),
      EscapeMarkup(graph.name_text()), front.is_profiled ? "recorded" : "modelled");
}

}  // namespace strata::cli
