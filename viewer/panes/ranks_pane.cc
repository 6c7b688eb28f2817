#include "viewer/panes/ranks_pane.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/unicode.h"
#include "scene/words.h"
#include "viewer/compare/rank_findings.h"

namespace strata::viewer {
namespace {

std::string LetterOf(int32_t group) {
  return group < 26 ? std::string(1, static_cast<char>('A' + group)) : fmt::format("{}", group + 1);
}

bool HaveOwnRanks(const Contents& contents) {
  std::set<int32_t> ranks;
  for (const RunEntry& run : contents.runs)
    ranks.insert(run.rank);
  return ranks.size() == contents.runs.size();
}

int32_t NumberOf(const RunEntry& run, bool by_rank) {
  return by_rank ? run.rank : static_cast<int32_t>(run.id);
}

}  // namespace

void RanksPane::Read(const Contents& contents) {
  columns_.clear();
  chosen_ = {};
  std::map<std::string, size_t> index;
  for (size_t r = 0; r < contents.runs.size(); ++r) {
    const RunEntry& run = contents.runs[r];
    for (SubjectId id : run.subjects) {
      const Subject& s = contents.subjects[id];
      const std::string key = fmt::format("{}\n{}\n{}", s.graph, s.index, s.name);
      const auto [at, is_new] = index.try_emplace(key, columns_.size());
      if (is_new) {
        columns_.push_back({.title = s.Title(),
                            .head = s.index >= 0 ? fmt::format("#{}", s.index) : Visible(s.name),
                            .subjects = std::vector<SubjectId>(contents.runs.size()),
                            .groups = std::vector<int32_t>(contents.runs.size(), -1)});
      }
      columns_[at->second].subjects[r] = id;
    }
  }
  const bool by_rank = HaveOwnRanks(contents);
  summary_ = "All ranks have the same graphs after every pass.";
  bool split = false;
  for (Column& column : columns_) {
    std::vector<std::string> kinds;
    std::map<int32_t, std::vector<int32_t>> members;
    for (size_t r = 0; r < column.subjects.size(); ++r) {
      const SubjectId id = column.subjects[r];
      const std::string print = id.valid() ? contents.subjects[id].fingerprint : "";
      auto found = std::ranges::find(kinds, print);
      if (found == kinds.end()) found = kinds.insert(kinds.end(), print);
      const auto group = static_cast<int32_t>(found - kinds.begin());
      members[group].push_back(NumberOf(contents.runs[r], by_rank));
      column.groups[r] = group;
    }
    if (kinds.size() < 2 || split) continue;
    split = column.splits = true;
    std::vector<std::string> words;
    for (auto& [group, numbers] : members) {
      std::ranges::sort(numbers);
      words.push_back(fmt::format("{}{} {}", by_rank ? "rank" : "run",
                                  numbers.size() > 1 ? "s" : "", RangesText(numbers)));
    }
    summary_ = fmt::format("{} diverge at {}: {}.", by_rank ? "Ranks" : "Runs", column.title,
                           fmt::join(words, " | "));
  }
}

void RanksPane::Draw(Ui& ui, const Area& area) {
  const UiScope scope(ui, "ranks");
  const Theme& theme = *ui.theme;
  ui.Fill(area, theme.surface);
  if (!ui.model.has_contents()) return;
  const Contents& contents = ui.model.contents();
  UiPanel panel(ui, "page", area, theme.surface);
  const auto sentence = [&](std::string_view name, const std::string& words, Color color) {
    const Area at = panel.Next(ui.px(28));
    ui.TextIn({at.x + ui.px(12), at.y, at.width - ui.px(24), at.height}, words,
              ui.font(Face::kSans, 12), color);
    ui.Register(name, "text", words, at);
  };
  if (contents.runs.size() == 1 && contents.runs[0].is_of_all_ranks) {
    sentence("empty", fmt::format("All {} ranks run these graphs.", contents.runs[0].world),
             theme.ink_2);
    return;
  }
  if (contents.runs.size() < 2) {
    sentence("empty",
             "One rank in this file. Join the traces of all ranks to compare them:", theme.ink_2);
    const Area at = panel.Next(ui.px(28));
    ui.TextIn({at.x + ui.px(12), at.y, at.width, at.height},
              "strata merge rank0.strata rank1.strata -o all.strata", ui.font(Face::kMono, 12),
              theme.ink);
    return;
  }
  if (read_ != &contents || version_ != ui.model.version()) {
    Read(contents);
    read_ = &contents;
    version_ = ui.model.version();
  }
  sentence("summary", summary_, theme.ink);
  Matrix(ui, panel, contents);
  Mismatches(ui, panel);
}

void RanksPane::Matrix(Ui& ui, UiPanel& panel, const Contents& contents) {
  const Theme& theme = *ui.theme;
  const bool by_rank = HaveOwnRanks(contents);
  const float name_width = ui.px(72), height = ui.px(28), gap = ui.px(3);
  const float least = ui.px(24);
  const Font bold = ui.font(Face::kBold, 11);
  float most = ui.px(59);
  for (const Column& column : columns_)
    most = std::max(most, bold.WidthOf(column.head) + ui.px(8));
  const float width =
      std::clamp((panel.width() - name_width - ui.px(24)) / static_cast<float>(columns_.size()),
                 least + gap, most);
  const Area head = panel.Next(ui.px(22));
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Area at = {head.x + name_width + static_cast<float>(c) * width, head.y, width - gap,
                     head.height};
    ui.TextIn(at, columns_[c].head, columns_[c].splits ? bold : ui.font(Face::kSans, 11),
              columns_[c].splits ? theme.accent : theme.ink_3);
    if (columns_[c].splits)
      ui.Fill({at.x, at.bottom() - ui.px(2), at.width, ui.px(2)}, theme.accent);
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (mouse.x >= at.x && mouse.x < at.right() && mouse.y >= at.y && mouse.y < at.bottom() &&
        ImGui::IsWindowHovered())
      ui.Tip(columns_[c].title);
  }
  for (size_t r = 0; r < contents.runs.size(); ++r) {
    const Area row = panel.Next(height + gap);
    if (!panel.Shows(row)) continue;
    const std::string name =
        fmt::format("{} {}", by_rank ? "rank" : "run", NumberOf(contents.runs[r], by_rank));
    ui.TextIn({row.x + ui.px(12), row.y, name_width - ui.px(16), height}, name,
              ui.font(Face::kSans, 12), theme.ink);
    for (size_t c = 0; c < columns_.size(); ++c) {
      Cell(ui, {row.x + name_width + static_cast<float>(c) * width, row.y, width - gap, height},
           columns_[c], r, name);
    }
  }
  const Area hint = panel.Next(ui.px(26));
  const std::string words = chosen_.valid()
                                ? "Choose a second cell."
                                : "Equal letters: equal graphs. Choose two cells to compare.";
  ui.TextIn({hint.x + ui.px(12), hint.y, hint.width, hint.height}, words, ui.font(Face::kSans, 11),
            theme.ink_3);
  ui.Register("hint", "text", words, hint);
}

void RanksPane::Cell(Ui& ui, const Area& area, const Column& column, size_t run,
                     const std::string& name) {
  const Theme& theme = *ui.theme;
  const SubjectId subject = column.subjects[run];
  const int32_t group = column.groups[run];
  const std::string letter = subject.valid() ? LetterOf(group) : "none";
  const Touch touch = ui.Press(fmt::format("cell:{}@{}", column.head, name), "cell", letter, area,
                               subject.valid() && subject == chosen_, subject.valid());
  const Font font = ui.font(Face::kBold, 11);
  if (!subject.valid()) {
    ui.Frame(area, theme.ink_4, 3);
    ui.TextIn({area.x + ui.px(4), area.y, area.width - ui.px(4), area.height}, "none",
              ui.font(Face::kSans, 10), theme.ink_3);
    return;
  }
  ui.Fill(area, group == 1 ? theme.ink_2 : theme.well_2, 3);
  if (group > 1) {
    ui.draw().PushClipRect(area.min(), area.max(), true);
    for (float x = area.x - area.height; x < area.right(); x += ui.px(6))
      ui.draw().AddLine({x, area.bottom()}, {x + area.height, area.y}, theme.tick, ui.px(1));
    ui.draw().PopClipRect();
  }
  const bool framed = subject == chosen_ || touch.hovered || subject == ui.model.subject_id();
  if (framed || column.splits)
    ui.Frame(area, framed && subject != chosen_ && !column.splits ? theme.rule_2 : theme.accent, 3,
             framed ? 2 : 1);
  ui.Text(area.x + (area.width - font.WidthOf(letter)) / 2, area.y + (area.height - font.size) / 2,
          letter, font, group == 1 ? theme.surface : theme.ink);
  if (touch.hovered) ui.Tip(fmt::format("{}, {}", column.title, name));
  if (!touch.clicked) return;
  if (!chosen_.valid()) {
    chosen_ = subject;
  } else {
    const SubjectId from = std::exchange(chosen_, SubjectId());
    if (from != subject) ui.model.ShowAgainst(subject, from);
  }
}

void RanksPane::Mismatches(Ui& ui, UiPanel& panel) {
  const Theme& theme = *ui.theme;
  const std::vector<std::string>* found = mismatches_.Get(
      ui.model.workers(), fmt::format("{}", ui.model.version()),
      [trace = ui.model.document()->trace_path()] { return FindCollectiveMismatches(trace); });
  if (found == nullptr) return;
  const Area head = panel.Next(ui.px(26));
  const std::string words = found->empty()
                                ? "Collectives of all ranks meet."
                                : Plural(static_cast<int64_t>(found->size()),
                                         "collective does not meet", "collectives do not meet");
  ui.TextIn({head.x + ui.px(12), head.y, head.width, head.height}, words, ui.font(Face::kBold, 12),
            found->empty() ? theme.ink_2 : theme.changed.text);
  ui.Register("collectives", "text", words, head);
  for (const std::string& line : *found) {
    const Area at = panel.Next(ui.px(20));
    ui.TextIn({at.x + ui.px(12), at.y, at.width - ui.px(24), at.height}, Visible(line),
              ui.font(Face::kSans, 11), theme.ink_2);
  }
  panel.Skip(ui.px(12));
}

}  // namespace strata::viewer
