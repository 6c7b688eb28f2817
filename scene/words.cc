#include "scene/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace strata {
namespace {

constexpr std::string_view kMinus = "\u2212";

std::string Scaled(double value, std::span<const std::string_view> units, double step) {
  double size = std::abs(value);
  size_t unit = 0;
  for (; size >= step && unit + 1 < units.size(); ++unit)
    size /= step;
  const int digits = unit == 0 ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}", value < 0 ? kMinus : "", size, digits, units[unit]);
}

bool IsOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// `rest` of a text that begins with `prefix`; false otherwise.
bool Consume(std::string_view text, std::string_view prefix, std::string_view& rest) {
  if (!text.starts_with(prefix)) return false;
  rest = text.substr(prefix.size());
  return true;
}

/// Shortens every operator in `words`.
std::string ShortenOperators(std::string_view words) {
  std::string result;
  for (size_t i = 0; i < words.size();) {
    size_t end = i;
    while (end < words.size() && (IsWordChar(words[end]) || words[end] == '.'))
      ++end;
    if (end == i) {
      result += words[i++];
      continue;
    }
    const std::string_view word = words.substr(i, end - i);
    const bool is_operator = word.starts_with("aten.") || word.starts_with("prims.") ||
                             word.starts_with("_c10d_functional.");
    result += is_operator ? ShortOperator(word) : std::string(word);
    i = end;
  }
  return result;
}

}  // namespace

std::string NumberText(int64_t value) {
  const std::string digits =
      fmt::format("{}", value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  std::string text(value < 0 ? kMinus : "");
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Plural(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", NumberText(count), one)
                      : fmt::format("{} {}", NumberText(count), many);
}

std::string RealText(double value, int digits) {
  if (!std::isfinite(value)) return "not finite";
  std::string text;
  for (const char c : fmt::format("{:.{}g}", value, digits)) {
    if (c == '-') {
      text += kMinus;
    } else {
      text += c;
    }
  }
  return text;
}

std::string TimeText(double ms) {
  if (!(ms > 0)) return "–";
  if (ms < 1) return fmt::format("{:.{}f} µs", ms * 1000, ms < 0.01 ? 1 : 0);
  if (ms < 1000) return fmt::format("{:.{}f} ms", ms, ms < 10 ? 1 : 0);
  return fmt::format("{:.1f} s", ms / 1000);
}

std::string BytesText(double bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return Scaled(bytes, kUnits, 1024);
}

std::string FlopsText(double flops) {
  static constexpr std::string_view kUnits[] = {"FLOP",  "kFLOP", "MFLOP",
                                                "GFLOP", "TFLOP", "PFLOP"};
  return Scaled(flops, kUnits, 1000);
}

std::string ChangeText(double change, std::string (*unit)(double)) {
  if (change == 0) return "·";
  return fmt::format("{}{}", change < 0 ? kMinus : "+", unit(std::abs(change)));
}

std::string ShortOperator(std::string_view op) {
  static constexpr std::string_view kOverloads[] = {
      "default", "Tensor", "Scalar", "int", "dim", "self", "Tensor_Scalar", "dim_IntList"};
  static constexpr std::string_view kNamespaces[] = {
      "aten",      "prims",        "prim", "_c10d_functional", "torch",
      "_operator", "higher_order", "ops",  "runtime"};
  std::string_view name = op;
  if (const size_t dot = name.rfind('.');
      dot != std::string_view::npos && IsOneOf(name.substr(dot + 1), kOverloads))
    name = name.substr(0, dot);
  if (const size_t dot = name.find('.');
      dot != std::string_view::npos && IsOneOf(name.substr(0, dot), kNamespaces))
    name = name.substr(dot + 1);
  return std::string(name.empty() ? op : name);
}

std::string_view DtypeOf(std::string_view type) {
  // "dtensor(bf16[…" and the like: a word and a bracket around the type.
  size_t begin = 0;
  const size_t bracket = type.find('[');
  if (bracket == std::string_view::npos) return {};
  if (const size_t paren = type.find('('); paren < bracket) begin = paren + 1;
  const std::string_view word = type.substr(begin, bracket - begin);
  if (word.empty() || !std::ranges::all_of(word, [](char c) { return IsWordChar(c); })) return {};
  return word;
}

std::string_view ShapeOf(std::string_view type) {
  if (DtypeOf(type).empty()) return {};
  const size_t begin = type.find('['), end = type.find(']', begin);
  return end == std::string_view::npos ? std::string_view() : type.substr(begin, end + 1 - begin);
}

std::string_view PlacementsOf(std::string_view type) {
  size_t at = type.find('[');
  const size_t paren = type.find('(');
  if (paren > at || at == std::string_view::npos || !type.ends_with(')')) return {};
  while (at < type.size() && type[at] == '[') {  // sizes, strides
    const size_t end = type.find(']', at);
    if (end == std::string_view::npos) return {};
    at = end + 1;
  }
  const size_t device_end = type.find(", ", at);
  if (device_end == std::string_view::npos) return {};
  return type.substr(device_end + 2, type.size() - 1 - (device_end + 2));
}

std::string ShortType(std::string_view type) {
  const std::string_view shape = ShapeOf(type);
  if (shape.empty()) return std::string(type);
  return fmt::format("{} {}", DtypeOf(type), shape);
}

std::string PastTense(std::string_view title) {
  std::string words(title);
  std::string_view rest;
  const auto became = [&](std::string_view verb, std::string_view joint) {
    if (!Consume(title, verb, rest)) return false;
    const size_t at = rest.rfind(joint);
    if (at == std::string_view::npos) return false;
    words = fmt::format("{} became {}", rest.substr(0, at), rest.substr(at + joint.size()));
    return true;
  };
  if (!became("change ", " to ") && !became("replace ", " by ")) {
    if (Consume(title, "insert ", rest)) words = fmt::format("Added {}", rest);
    if (Consume(title, "delete ", rest)) words = fmt::format("Removed {}", rest);
    if (Consume(title, "change ", rest)) words = fmt::format("Changed {}", rest);
  }
  return Visible(ShortenOperators(words));
}

std::string_view SignOf(SceneStatus status) {
  switch (status) {
    case SceneStatus::kAdded:
      return "+";
    case SceneStatus::kRemoved:
      return kMinus;
    case SceneStatus::kMoved:
      return "\u21b7";
    case SceneStatus::kChanged:
    case SceneStatus::kDerived:
      return "~";
    case SceneStatus::kSame:
      break;
  }
  return "";
}

std::string_view WordOf(SceneStatus status) {
  return status == SceneStatus::kSame ? "unchanged" : ToString(status);
}

std::string CountsText(const SceneCounts& counts) {
  const std::pair<SceneStatus, int32_t> parts[] = {{SceneStatus::kAdded, counts.added},
                                                   {SceneStatus::kRemoved, counts.removed},
                                                   {SceneStatus::kChanged, counts.changed},
                                                   {SceneStatus::kMoved, counts.moved},
                                                   {SceneStatus::kDerived, counts.derived}};
  std::string text;
  for (const auto& [status, count] : parts) {
    if (count == 0) continue;
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", SignOf(status), NumberText(count),
                        status == SceneStatus::kDerived ? " derived" : "");
  }
  return text;
}

std::string WhatChanged(const Pair& pair) {
  constexpr size_t kMost = 3;
  const bool has_cause =
      std::ranges::any_of(pair.fields, [](const FieldDiff& field) { return !field.derived; });
  std::string text;
  size_t count = 0;
  for (const FieldDiff& field : pair.fields) {
    if (field.derived && has_cause) continue;
    if (++count > kMost) continue;
    text += fmt::format("{}{}: {} → {}", text.empty() ? "" : "; ", Visible(field.path),
                        Visible(field.before.value_or("–")), Visible(field.after.value_or("–")));
  }
  if (count > kMost) text += fmt::format("; and {} more", count - kMost);
  return text;
}

std::string_view SentenceOf(Via via) {
  switch (via) {
    case Via::kPin:
      return "Pinned by hand";
    case Via::kId:
      return "The same identity on both sides";
    case Via::kInput:
      return "An input at the same place";
    case Via::kCone:
      return "The whole computation above is the same";
    case Via::kRadius:
      return "The neighbourhood is the same and unique";
    case Via::kLocal:
      return "Next to matched nodes";
    case Via::kOrder:
      return "Between matched nodes in order";
  }
  return "";
}

std::string_view PastOf(RelationKind kind) {
  switch (kind) {
    case RelationKind::kReplace:
      return "replaced";
    case RelationKind::kClone:
      return "copied";
    case RelationKind::kMerge:
      return "merged";
    case RelationKind::kBecameInput:
      return "became an input";
    case RelationKind::kBecameCompute:
      return "became a computation";
  }
  return "";
}

}  // namespace strata
