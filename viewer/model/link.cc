#include "viewer/model/link.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace strata::viewer {
namespace {

std::string Decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// As encodeURIComponent, but for `= , : / { }`, which selectors and paths have.
std::string Encode(std::string_view text) {
  constexpr std::string_view kPlain = "-_.!~*'()=,:/{}";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (IsWordChar(c) || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string Join(const std::vector<std::string>& parts, char separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

template <size_t N>
void Restrict(std::string& value, const std::array<std::string_view, N>& known) {
  if (std::ranges::find(known, value) == known.end()) value = known.front();
}

/// Calls `fn(key, text)` for the choices that are texts, in the order of links.
template <class LinkType, class Fn>
void ForEachText(LinkType& link, Fn&& fn) {
  fn("from", link.from);
  fn("tab", link.tab);
  fn("mode", link.mode);
  fn("node", link.node);
  fn("hops", link.hops);
  fn("overlay", link.overlay);
  fn("labels", link.labels);
  fn("sort", link.sort);
  fn("spelling", link.spelling);
}

}  // namespace

Link ParseLink(std::string_view fragment) {
  if (fragment.starts_with('#')) fragment.remove_prefix(1);
  Link link;
  const size_t head = std::min(fragment.find('&'), fragment.size());
  link.ref = Decode(fragment.substr(0, head));
  if (link.ref.find('=') == std::string::npos) link.ref.clear();  // a view of the page
  for (const std::string& word : Split(fragment.substr(head), '&')) {
    const size_t at = std::min(word.find('='), word.size());
    const std::string_view key = std::string_view(word).substr(0, at);
    const std::string value = Decode(std::string_view(word).substr(std::min(at + 1, word.size())));
    ForEachText(link, [&](std::string_view known, std::string& text) {
      if (known == key) text = value;
    });
    if (key == "open") link.open = Split(value, ';');
    if (key == "filter") link.filter = value;
    if (key == "cam") link.cam = value;
  }
  Restrict(link.tab, std::array<std::string_view, 4>{"graph", "table", "text", "patterns"});
  Restrict(link.mode, std::array<std::string_view, 3>{"unified", "side", "blink"});
  Restrict(link.hops, std::array<std::string_view, 5>{"1", "0", "2", "3", "all"});
  Restrict(link.labels, kLineLabels);
  Restrict(link.spelling, std::array<std::string_view, 2>{"native", "fx"});
  return link;
}

std::pair<std::string, Link> SplitLink(std::string_view full) {
  const size_t hash = std::min(full.rfind('#'), full.size());
  return {std::string(full.substr(0, hash)), ParseLink(full.substr(hash))};
}

std::string PrintLink(const Link& link) {
  std::string text = Encode(link.ref);
  const Link defaults;
  std::vector<std::string> usual;
  ForEachText(defaults,
              [&](std::string_view, const std::string& value) { usual.push_back(value); });
  size_t k = 0;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += '&';
    text += key;
    text += '=';
    text += Encode(value);
  };
  ForEachText(link, [&](std::string_view key, const std::string& value) {
    if (value != usual[k++]) add(key, value);
  });
  if (!link.open.empty()) add("open", Join(link.open, ';'));
  if (!link.filter.empty()) add("filter", link.filter);
  if (!link.cam.empty()) add("cam", link.cam);
  return text;
}

}  // namespace strata::viewer
