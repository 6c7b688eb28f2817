#include "viewer/panes/passes_pane.h"

#include <algorithm>
#include <optional>
#include <re2/re2.h>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

/// A line of the list: a heading, or a subject.
struct Entry {
  std::string heading;
  SubjectId subject;
};

std::vector<Entry> EntriesOf(const Contents& contents, const std::string& filter) {
  RE2::Options options;
  options.set_case_sensitive(false);
  options.set_log_errors(false);
  const RE2 wanted(filter, options);
  const auto fits = [&](const Subject& s) {
    if (filter.empty()) return true;
    const std::string text = fmt::format("{} {} {}", s.name, s.graph, s.options);
    return wanted.ok() ? RE2::PartialMatch(text, wanted) : text.find(filter) != std::string::npos;
  };
  std::vector<Entry> entries;
  for (const RunEntry& run : contents.runs) {
    std::string heading = contents.runs.size() > 1
                              ? fmt::format("run {}, {}", static_cast<int64_t>(run.id), run.ranks)
                              : std::string();
    std::string graph;
    const bool several = run.graphs.size() > 1;
    for (SubjectId id : run.subjects) {
      const Subject& s = contents.subjects[id];
      if (!fits(s)) continue;
      if (!heading.empty()) entries.push_back({std::exchange(heading, {}), {}});
      const std::string group = s.kind == Subject::Kind::kGraph ? "other graphs"
                                : several                       ? "graph " + Visible(s.graph)
                                                                : std::string();
      if (group != graph && !group.empty()) entries.push_back({group, {}});
      graph = group;
      entries.push_back({{}, id});
    }
  }
  return entries;
}

float HeightOf(const Subject& subject) {
  return subject.kind == Subject::Kind::kPass && (subject.changed() || subject.failed) ? 44 : 26;
}

}  // namespace

bool PassesPane::Row(Ui& ui, const Area& area, SubjectId id) const {
  const Theme& theme = *ui.theme;
  const Subject& s = ui.model.contents().subjects[id];
  const SceneCounts& counts = ui.model.CountsOf(id);
  const bool current = id == ui.model.subject_id();
  const bool quiet = s.kind == Subject::Kind::kPass && !s.changed() && !s.failed;
  const std::string name = s.kind == Subject::Kind::kPass
                               ? fmt::format("pass:{}", s.index)
                               : fmt::format("graph:{}", Visible(s.graph));
  const Touch touch = ui.Press(
      s.rank > 0 ? fmt::format("{}@{}", name, s.rank) : name, "row",
      fmt::format("{} {}{}", s.Title(), CountsText(counts), s.proof ? " " + s.ProofText() : ""),
      area, current);
  if (current || touch.hovered) ui.Fill(area, current ? theme.accent_fill : theme.well);
  if (current) ui.Fill({area.x, area.y, ui.px(3), area.height}, theme.accent);
  const float top = area.y + ui.px(3), line = ui.px(20);
  if (s.index >= 0) {
    ui.TextRight({area.x + ui.px(8), top, ui.px(22), line}, fmt::format("{}", s.index),
                 ui.font(Face::kSans, 12), theme.ink_3);
  }
  const float left = area.x + ui.px(40), right = area.right() - ui.px(12);
  const float verdict = s.proof ? ui.px(64) : 0;
  if (s.proof) {
    ui.TextRight({right - verdict, top, verdict, line}, Visible(s.proof->verdict),
                 ui.font(Face::kSans, 12),
                 s.proof->verdict == "differs" ? theme.removed.text : theme.ink_3);
  }
  ui.TextIn({left, top, right - left - verdict, line}, Visible(s.name),
            ui.font(quiet ? Face::kSans : Face::kBold, 12), quiet ? theme.ink_2 : theme.ink);
  if (touch.hovered) {
    std::string tip = Visible(s.name);
    if (!s.options.empty()) tip += "{" + Visible(s.options) + "}";
    if (s.ms > 0) tip += ", " + TimeText(s.ms);
    if (s.proof) tip += "\n" + s.ProofText();
    ui.Tip(tip);
  }
  if (s.kind == Subject::Kind::kGraph || quiet) return touch.clicked;
  const float second = top + line + ui.px(8);
  const Font quiet_font = ui.font(Face::kSans, 12);
  float end = left;
  if (s.failed) {
    end += ui.Text(left, second - ui.px(6), "failed", ui.font(Face::kBold, 12), theme.removed.text);
  } else if (counts.differences() == 0) {
    end += ui.Text(left, second - ui.px(6), "metadata only", quiet_font, theme.ink_3);
  } else {
    end = ui.CountsFrom(counts, left, second, 12);
  }
  if (const std::string time = TimeText(s.ms); s.ms > 0 && end + quiet_font.WidthOf(time) <= right)
    ui.TextRight({end, second - ui.px(10), right - end, line}, time, quiet_font, theme.ink_3);
  return touch.clicked;
}

void PassesPane::Draw(Ui& ui, const Area& area) {
  const Theme& theme = *ui.theme;
  const Contents& contents = ui.model.contents();
  const UiScope scope(ui, "passes");
  ui.Fill(area, theme.surface);
  const float top = ui.px(44), foot = ui.px(28);
  ui.Input("filter", "Filter passes",
           {area.x + ui.px(12), area.y + ui.px(8), area.width - ui.px(24), ui.px(28)}, filter_,
           std::exchange(focus_, false));
  const std::vector<Entry> entries = EntriesOf(contents, filter_);
  {
    UiPanel panel(ui, "list", {area.x, area.y + top, area.width, area.height - top - foot},
                  theme.surface);
    for (const Entry& entry : entries) {
      if (!entry.subject.valid()) {
        const Area at = panel.Next(ui.px(26));
        if (panel.Shows(at))
          ui.TextIn({at.x + ui.px(12), at.y, at.width - ui.px(24), at.height}, entry.heading,
                    ui.font(Face::kSans, 11), theme.ink_3);
        continue;
      }
      const Subject& s = contents.subjects[entry.subject];
      const Area at = panel.Next(ui.px(HeightOf(s)));
      if (entry.subject == ui.model.subject_id() && shown_ != entry.subject) {
        shown_ = entry.subject;
        if (!panel.ShowsWhole(at)) ImGui::SetScrollHereY(0.5F);
      }
      if (!panel.Shows(at) || !Row(ui, at, entry.subject)) continue;
      const SubjectId from = ui.model.subject_id();
      if (ImGui::GetIO().KeyShift && from.valid() && from != entry.subject) {
        ui.model.ShowAgainst(entry.subject, from);
      } else {
        ui.model.Show(entry.subject);
      }
    }
    if (entries.empty()) {
      const Area at = panel.Next(ui.px(40));
      ui.TextIn({at.x + ui.px(12), at.y, at.width - ui.px(24), at.height},
                filter_.empty() ? "No passes in this file" : "Nothing matches “" + filter_ + "”",
                ui.font(Face::kSans, 12), theme.ink_2);
    }
  }
  double total = 0;
  int32_t quiet = 0;
  for (const Subject& s : contents.subjects) {
    total += s.ms;
    quiet += s.kind == Subject::Kind::kPass && !s.changed() && !s.failed ? 1 : 0;
  }
  const Area bottom = {area.x + ui.px(12), area.bottom() - foot, area.width - ui.px(24), foot};
  ui.Fill({area.x, area.bottom() - foot, area.width, ui.px(1)}, theme.rule);
  ui.TextIn(bottom, fmt::format("{} without change", quiet), ui.font(Face::kSans, 12), theme.ink_3);
  if (total > 0)
    ui.TextRight(bottom, TimeText(total) + " in all", ui.font(Face::kSans, 12), theme.ink_3);
}

}  // namespace strata::viewer
