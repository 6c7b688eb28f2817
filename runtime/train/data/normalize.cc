#include "runtime/train/data/normalize.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace strata {
namespace {

struct Decomposition {
  char32_t code, first, second;  // second 0: another spelling of `first`
  bool composes;
};
struct CombiningRange {
  char32_t first, last;
  uint8_t combining_class;
};

#include "runtime/train/data/nfc_tables.inc"

// Hangul syllables are made by counting (Unicode, section 3.12).
constexpr char32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11a7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

/// What is no UTF-8 is kept as single bytes beyond Unicode.
constexpr char32_t kRawByte = 0x200000;

uint8_t CombiningClass(char32_t code) {
  const auto range = std::ranges::lower_bound(kCombining, code, {}, &CombiningRange::last);
  return range != std::end(kCombining) && range->first <= code ? range->combining_class : 0;
}

void Decompose(char32_t code, std::vector<char32_t>& out) {
  if (code >= kSyllables && code < kSyllables + kSyllableCount) {
    const char32_t index = code - kSyllables;
    out.push_back(kLeads + index / (kVowelCount * kTrailCount));
    out.push_back(kVowels + index / kTrailCount % kVowelCount);
    if (index % kTrailCount != 0) out.push_back(kTrails + index % kTrailCount);
    return;
  }
  const auto found = std::ranges::lower_bound(kDecompositions, code, {}, &Decomposition::code);
  if (found == std::end(kDecompositions) || found->code != code) {
    out.push_back(code);
    return;
  }
  Decompose(found->first, out);
  if (found->second != 0) Decompose(found->second, out);
}

/// The one character of both, or 0.
char32_t Compose(char32_t first, char32_t second) {
  static const std::map<std::pair<char32_t, char32_t>, char32_t> pairs = [] {
    std::map<std::pair<char32_t, char32_t>, char32_t> map;
    for (const Decomposition& entry : kDecompositions) {
      if (entry.composes) map.emplace(std::pair(entry.first, entry.second), entry.code);
    }
    return map;
  }();
  const char32_t lead = first - kLeads, vowel = second - kVowels;
  if (lead < kLeadCount && vowel < kVowelCount) {
    return kSyllables + (lead * kVowelCount + vowel) * kTrailCount;
  }
  const char32_t syllable = first - kSyllables, trail = second - kTrails;
  if (syllable < kSyllableCount && syllable % kTrailCount == 0 && trail > 0 &&
      trail < kTrailCount) {
    return first + trail;
  }
  const auto found = pairs.find({first, second});
  return found == pairs.end() ? 0 : found->second;
}

/// Takes a character off the front.
char32_t TakeCharacter(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80    ? 1
                        : lead >= 0xf0 ? 4
                        : lead >= 0xe0 ? 3
                        : lead >= 0xc2 ? 2
                                       : 0;
  char32_t code = length <= 1 ? lead : lead & (0x7fU >> length);
  bool is_valid = length > 0 && length <= text.size();
  for (size_t i = 1; is_valid && i < length; ++i) {
    is_valid = (byte(i) & 0xc0U) == 0x80U;
    code = code << 6U | (byte(i) & 0x3fU);
  }
  text.remove_prefix(is_valid ? length : 1);
  return is_valid ? code : kRawByte + lead;
}

void AppendCharacter(char32_t code, std::string& out) {
  const auto add = [&out](char32_t bits) { out += static_cast<char>(bits); };
  if (code >= kRawByte) {
    add(code - kRawByte);
  } else if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0U | code >> 6U);
    add(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    add(0xe0U | code >> 12U);
    add(0x80U | (code >> 6U & 0x3fU));
    add(0x80U | (code & 0x3fU));
  } else {
    add(0xf0U | code >> 18U);
    add(0x80U | (code >> 12U & 0x3fU));
    add(0x80U | (code >> 6U & 0x3fU));
    add(0x80U | (code & 0x3fU));
  }
}

void ComposeAll(std::vector<char32_t>& codes) {
  size_t starter = codes.size();  // of the characters kept; none yet
  size_t kept = 0;
  uint8_t last_class = 0;
  for (const char32_t code : std::vector<char32_t>(codes)) {
    const uint8_t combining = CombiningClass(code);
    const bool is_blocked = kept > 0 && starter + 1 < kept && last_class >= combining;
    const char32_t composed =
        starter < kept && !is_blocked ? Compose(codes[starter], code) : char32_t{0};
    if (composed != 0) {
      codes[starter] = composed;
      continue;
    }
    if (combining == 0) starter = kept;
    last_class = combining;
    codes[kept++] = code;
  }
  codes.resize(kept);
}

}  // namespace

std::string NormalizeNfc(std::string_view text) {
  // Below U+0300 nothing combines and nothing is spelled in two ways.
  const bool is_plain =
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
  if (is_plain) return std::string(text);
  std::vector<char32_t> codes;
  while (!text.empty())
    Decompose(TakeCharacter(text), codes);
  for (auto first = codes.begin(); first != codes.end();) {
    const auto is_mark = [](char32_t code) { return CombiningClass(code) != 0; };
    first = std::find_if(first, codes.end(), is_mark);
    const auto last = std::find_if_not(first, codes.end(), is_mark);
    std::stable_sort(first, last,
                     [](char32_t a, char32_t b) { return CombiningClass(a) < CombiningClass(b); });
    first = last;
  }
  ComposeAll(codes);
  std::string out;
  for (const char32_t code : codes)
    AppendCharacter(code, out);
  return out;
}

}  // namespace strata
