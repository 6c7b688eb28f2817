#include "runtime/train/data/normalize.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <utf8proc.h>

namespace strata {
namespace {

struct Range {
  utf8proc_int32_t first, last;
};

// Characters newer than Unicode 9 (to Unicode 15) that have a combining class or a composition.
// And U+11A7, which utf8proc 2.8 drops after a Hangul syllable; it composes with no character.
constexpr auto kKept = std::to_array<Range>(
    {{0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x11A7, 0x11A7},
     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
     {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
     {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
     {0x11839, 0x1183A}, {0x11930, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
     {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D45}, {0x11D97, 0x11D97},
     {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
     {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}});

bool IsKept(utf8proc_int32_t code) {
  const auto* const range = std::ranges::lower_bound(kKept, code, {}, &Range::last);
  return range != kKept.end() && range->first <= code;
}

const utf8proc_uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

/// REQUIRES: valid UTF-8.
void AppendNormalized(std::string_view text, std::string& out) {
  if (text.empty()) return;
  constexpr auto kForm = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  utf8proc_uint8_t* normal = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(Bytes(text), std::ssize(text), &normal, kForm);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(normal, &std::free);
  if (size < 0) throw std::bad_alloc();  // valid text has no other error
  out.append(reinterpret_cast<const char*>(normal), static_cast<size_t>(size));
}

}  // namespace

std::string NormalizeNfc(std::string_view text) {
  // The characters below U+0300 are normalized.
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
  if (is_plain) return std::string(text);
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;  // of the text that is not appended yet
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    const std::string_view rest = text.substr(i);
    const utf8proc_ssize_t size = utf8proc_iterate(Bytes(rest), std::ssize(rest), &code);
    const size_t length = size < 0 ? 1 : static_cast<size_t>(size);
    if (size < 0 || IsKept(code)) {
      AppendNormalized(text.substr(begin, i - begin), out);
      out += rest.substr(0, length);
      begin = i + length;
    }
    i += length;
  }
  AppendNormalized(text.substr(begin), out);
  return out;
}

}  // namespace strata
