#include "viewer/ui/fonts.h"

#include <cmath>
#include <filesystem>

#include <imgui.h>
#include <imgui_freetype.h>

#include "base/unicode.h"

namespace strata::viewer {
namespace {

struct FaceFile {
  const char* file;
  std::vector<float> sizes;
};

const FaceFile& FileOf(Face face) {
  static const FaceFile kFiles[] = {
      {"DejaVuSans.ttf", {9, 10, 11, 12, 13, 15, 18, 20, 24, 30, 36}},
      {"DejaVuSans-Bold.ttf", {9, 10, 11, 12, 13, 15, 18, 20, 24, 30, 36}},
      {"DejaVuSansMono.ttf", {9, 10, 11, 12, 13, 15, 18, 22, 30}}};
  return kFiles[static_cast<size_t>(face)];
}

/// What names and the viewer's own words need: Latin, Greek, Cyrillic, punctuation, arrows.
constexpr ImWchar kSmallRanges[] = {0x20,   0x17F,  0x370,  0x45F,  0x2010, 0x2027, 0x2030,
                                    0x203A, 0x2070, 0x208E, 0x2190, 0x21BC, 0x2200, 0x2265,
                                    0x2318, 0x2318, 0x23CE, 0x23CE, 0x25A0, 0x25E6, 0x2713,
                                    0x2717, 0xFFFD, 0xFFFD, 0};
/// Of large sizes, which are drawn when one zooms in.
constexpr ImWchar kLargeRanges[] = {0x20,   0xFF,   0x2010, 0x2027, 0x2190, 0x21B7,
                                    0x2212, 0x2212, 0xFFFD, 0xFFFD, 0};

/// Bytes of the character that begins at a place, or ends there.
size_t LengthAt(std::string_view text, size_t begin) {
  return std::max<size_t>(1, Utf8Length(text, begin));
}
size_t LengthBefore(std::string_view text, size_t end) {
  size_t length = 1;
  while (length < end && (static_cast<unsigned char>(text[end - length]) & 0xC0) == 0x80)
    ++length;
  return length;
}

}  // namespace

float Font::WidthOf(std::string_view text) const {
  return font->CalcTextSizeA(size, FLT_MAX, 0, text.data(), text.data() + text.size()).x;
}

std::string Font::Cut(std::string_view text, float width) const {
  if (text.find(' ') == std::string_view::npos) return CutName(text, width);
  if (WidthOf(text) <= width) return std::string(text);
  float rest = width - WidthOf("…");
  size_t head = 0;
  for (; head < text.size(); head += LengthAt(text, head)) {
    rest -= WidthOf(text.substr(head, LengthAt(text, head)));
    if (rest < 0) break;
  }
  while (head > 0 && (text[head - 1] == ' ' || text[head - 1] == ','))
    --head;
  return head == 0 ? "" : fmt::format("{}…", text.substr(0, head));
}

std::string Font::CutName(std::string_view text, float width) const {
  if (WidthOf(text) <= width) return std::string(text);
  float rest = width - WidthOf("…");
  if (rest < size / 2) return "";
  size_t head = 0, tail = text.size();
  for (bool at_end = false; head < tail; at_end = !at_end) {
    const size_t length = at_end ? LengthBefore(text, tail) : LengthAt(text, head);
    rest -= WidthOf(text.substr(at_end ? tail - length : head, length));
    if (rest < 0) break;
    if (at_end) {
      tail -= length;
    } else {
      head += length;
    }
  }
  return head == 0 ? "" : fmt::format("{}…{}", text.substr(0, head), text.substr(tail));
}

Status Fonts::Load(float scale) {
  scale_ = scale;
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  atlas.Clear();
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
  atlas.TexDesiredWidth = scale > 1.5F ? 4096 : 2048;
  for (const Face face : {Face::kSans, Face::kBold, Face::kMono}) {
    const FaceFile& file = FileOf(face);
    const std::string path = std::string(STRATA_FONT_FOLDER "/") + file.file;
    if (!std::filesystem::exists(path))
      return Error(ErrorCode::kNotFound, "no font: {}: install fonts-dejavu-core", path);
    std::vector<Baked>& baked = faces_[static_cast<size_t>(face)];
    baked.clear();
    for (const float size : file.sizes) {
      ImFontConfig config;
      config.OversampleH = config.OversampleV = 1;
      config.PixelSnapH = true;
      config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
      const ImWchar* ranges = size <= 15 ? kSmallRanges : kLargeRanges;
      // ImGui measures a font by its line; DejaVu's line is 1.164 of its em.
      const float line = std::round(size * scale) * 1.164F;
      ImFont* font = atlas.AddFontFromFileTTF(path.c_str(), line, &config, ranges);
      if (font == nullptr)
        return Error(ErrorCode::kCorrupt, "not a font: {}: install fonts-dejavu-core", path);
      baked.push_back({size, font});
    }
  }
  ImGui::GetIO().FontDefault = Get(Face::kSans, 13).font;
  return Ok();
}

Font Fonts::Get(Face face, float pixels) const {
  const std::vector<Baked>& baked = faces_[static_cast<size_t>(face)];
  const Baked* best = &baked.front();
  for (const Baked& b : baked) {
    if (b.pixels <= pixels + 0.5F) best = &b;
  }
  return {best->font, best->font->FontSize};
}

}  // namespace strata::viewer
