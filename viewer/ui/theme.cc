#include "viewer/ui/theme.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <imgui.h>

namespace strata::viewer {
namespace {

/// From 0xRRGGBB.
constexpr Color Rgb(uint32_t rgb, uint32_t alpha = 255) {
  return (alpha << 24) | ((rgb & 0xFF) << 16) | (rgb & 0xFF00) | (rgb >> 16);
}

constexpr Theme kLight = {
    .dark = false,
    .bg = Rgb(0xF8F7F4),
    .surface = Rgb(0xFFFFFF),
    .well = Rgb(0xF3F1EC),
    .well_2 = Rgb(0xEDEAE3),
    .fold = Rgb(0xE9E5DC),
    .rule = Rgb(0xDEDAD0),
    .rule_2 = Rgb(0xB9B3A5),
    .ink = Rgb(0x1B1A17),
    .ink_2 = Rgb(0x545047),
    .ink_3 = Rgb(0x69645A),
    .ink_4 = Rgb(0x9A9487),
    .edge = Rgb(0x8B8474),
    .tick = Rgb(0xCFC9BC),
    .tick_2 = Rgb(0x8F887A),
    .accent = Rgb(0x5741C4),
    .accent_fill = Rgb(0xEEEBFB),
    .halo = Rgb(0xD5CDF7),
    .badge_ink = Rgb(0xFFFFFF),
    .hatch = Rgb(0xF1D6C4),
    .scrim = Rgb(0x1B1A17, 71),
    .added = {Rgb(0x0072B2), Rgb(0x00639C), Rgb(0xEAF3F9)},
    .removed = {Rgb(0xD55E00), Rgb(0xAD4B00), Rgb(0xFCF0E8)},
    .changed = {Rgb(0xC0689A), Rgb(0x99396F), Rgb(0xFAF0F6)},
    .moved = {Rgb(0x009E73), Rgb(0x006E50), Rgb(0xE8F5F1)},
};

constexpr Theme kDark = {
    .dark = true,
    .bg = Rgb(0x131415),
    .surface = Rgb(0x1E1F21),
    .well = Rgb(0x191A1C),
    .well_2 = Rgb(0x161718),
    .fold = Rgb(0x26282A),
    .rule = Rgb(0x2F3134),
    .rule_2 = Rgb(0x505357),
    .ink = Rgb(0xEDEBE6),
    .ink_2 = Rgb(0xB5B2AB),
    .ink_3 = Rgb(0x96938C),
    .ink_4 = Rgb(0x6D6B66),
    .edge = Rgb(0x6A6D71),
    .tick = Rgb(0x44474B),
    .tick_2 = Rgb(0x7B7E82),
    .accent = Rgb(0xB1A3FF),
    .accent_fill = Rgb(0x2A2640),
    .halo = Rgb(0x463D7A),
    .badge_ink = Rgb(0x131415),
    .hatch = Rgb(0x4A3718),
    .scrim = Rgb(0x000000, 140),
    .added = {Rgb(0x56B4E9), Rgb(0x6CBFEE), Rgb(0x16293A)},
    .removed = {Rgb(0xE69F00), Rgb(0xEFAF2E), Rgb(0x2D2414)},
    .changed = {Rgb(0xE6A6C8), Rgb(0xEBB4D1), Rgb(0x33232D)},
    .moved = {Rgb(0x4CC9A4), Rgb(0x5FD1B0), Rgb(0x152C26)},
};

void ApplyColors(const Theme& theme, ImGuiStyle& style) {
  const auto set = [&](int slot, Color color) {
    style.Colors[slot] = ImGui::ColorConvertU32ToFloat4(color);
  };
  for (const int slot :
       {ImGuiCol_WindowBg, ImGuiCol_TableHeaderBg, ImGuiCol_HeaderHovered, ImGuiCol_ScrollbarBg,
        ImGuiCol_FrameBgHovered, ImGuiCol_ButtonHovered, ImGuiCol_TabHovered, ImGuiCol_TitleBg})
    set(slot, theme.bg);
  for (const int slot : {ImGuiCol_FrameBg, ImGuiCol_ChildBg, ImGuiCol_PopupBg, ImGuiCol_MenuBarBg,
                         ImGuiCol_Button, ImGuiCol_Tab, ImGuiCol_TabActive, ImGuiCol_FrameBgActive})
    set(slot, theme.surface);
  set(ImGuiCol_Text, theme.ink);
  set(ImGuiCol_PlotLines, theme.ink);
  set(ImGuiCol_TextDisabled, theme.ink_3);
  for (const int slot : {ImGuiCol_Border, ImGuiCol_Separator, ImGuiCol_TableBorderLight})
    set(slot, theme.rule);
  set(ImGuiCol_TableBorderStrong, theme.rule_2);
  set(ImGuiCol_SeparatorHovered, theme.rule_2);
  for (const int slot :
       {ImGuiCol_CheckMark, ImGuiCol_NavHighlight, ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive,
        ImGuiCol_PlotHistogramHovered, ImGuiCol_SeparatorActive})
    set(slot, theme.accent);
  for (const int slot : {ImGuiCol_Header, ImGuiCol_HeaderActive, ImGuiCol_ButtonActive})
    set(slot, theme.accent_fill);
  set(ImGuiCol_TextSelectedBg, theme.halo);
  set(ImGuiCol_PlotHistogram, theme.tick_2);
  set(ImGuiCol_ScrollbarGrab, theme.tick);
  set(ImGuiCol_ScrollbarGrabHovered, theme.tick_2);
  set(ImGuiCol_ScrollbarGrabActive, theme.tick_2);
  set(ImGuiCol_ModalWindowDimBg, theme.scrim);
}

}  // namespace

const Theme::StatusColors* Theme::Of(SceneStatus status) const {
  switch (status) {
    case SceneStatus::kAdded:
      return &added;
    case SceneStatus::kRemoved:
      return &removed;
    case SceneStatus::kChanged:
      return &changed;
    case SceneStatus::kMoved:
      return &moved;
    case SceneStatus::kSame:
    case SceneStatus::kDerived:
      break;
  }
  return nullptr;
}

Color Theme::TextOf(SceneStatus status) const {
  const StatusColors* colors = Of(status);
  return colors != nullptr ? colors->text : ink_3;
}

Heat HeatOf(float share) {
  constexpr float kSteps[][3] = {{0, 32, 77},     {31, 58, 110},   {76, 85, 109},  {107, 112, 115},
                                 {139, 139, 119}, {174, 168, 111}, {213, 201, 91}, {255, 234, 70}};
  const float at = std::clamp(share, 0.0F, 1.0F) * static_cast<float>(std::size(kSteps) - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(std::size(kSteps) - 1, low + 1);
  uint32_t rgb = 0;
  for (size_t i = 0; i < 3; ++i) {
    const float value =
        kSteps[low][i] + (kSteps[high][i] - kSteps[low][i]) * (at - static_cast<float>(low));
    rgb = rgb << 8 | static_cast<uint32_t>(std::lround(value));
  }
  return {Rgb(rgb), share > 0.52F ? Rgb(0x1B1A17) : Rgb(0xFFFFFF)};
}

const Theme& LightTheme() {
  return kLight;
}
const Theme& DarkTheme() {
  return kDark;
}

void ApplyTheme(const Theme& theme, float scale) {
  ImGuiStyle style;
  ApplyColors(theme, style);
  style.WindowPadding = {12, 8};
  style.FramePadding = {10, 4};
  style.ItemSpacing = {8, 4};
  style.CellPadding = {6, 2};
  style.IndentSpacing = 14;
  style.ScrollbarSize = style.GrabMinSize = 10;
  style.FrameRounding = style.GrabRounding = 3;
  style.PopupRounding = 6;
  style.WindowRounding = style.ChildRounding = style.TabRounding = 0;
  style.ScaleAllSizes(scale);
  style.WindowBorderSize = 0;
  style.ChildBorderSize = style.FrameBorderSize = style.PopupBorderSize = 1;
  style.AntiAliasedLinesUseTex = true;
  ImGui::GetStyle() = style;
}

}  // namespace strata::viewer
