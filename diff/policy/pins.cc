#include "diff/policy/pins.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/toml.h"
#include "diff/graph/listing.h"

namespace strata {
namespace {

Result<std::optional<Fingerprint>> ReadFingerprint(const TomlFile& file, TomlTable& table,
                                                   std::string_view key) {
  const std::vector<TomlText> texts = table.Texts(key);
  if (texts.size() != 1) return std::optional<Fingerprint>();
  const std::optional<Fingerprint> fingerprint = FingerprintFromString(texts[0].text);
  if (!fingerprint) {
    return file.At(texts[0].at, fmt::format("'{}' is a fingerprint: 32 digits of 0-9a-f", key));
  }
  return fingerprint;
}

std::unordered_set<std::string> NamesOf(const Graph& graph) {
  const Listing listing(graph);
  std::unordered_set<std::string> names;
  for (EntityId id : listing.ids())
    names.insert(listing.name(id));
  return names;
}

}  // namespace

Result<Pins> ParsePins(std::string_view text, std::string_view file) {
  STRATA_TRY(const TomlFile toml, ParseToml(text, file));
  TomlTable table(toml, toml.root, "a file of pins");
  Pins pins;
  pins.file = file;
  STRATA_TRY(pins.before, ReadFingerprint(toml, table, "before"));
  STRATA_TRY(pins.after, ReadFingerprint(toml, table, "after"));
  for (auto& [before, after] : table.Pairs("same"))
    pins.same.emplace_back(std::move(before.text), std::move(after.text));
  for (auto& [before, after] : table.Pairs("never"))
    pins.never.emplace_back(std::move(before.text), std::move(after.text));
  STRATA_RETURN_IF_ERROR(table.Finish());
  return pins;
}

std::string PrintPins(const Pins& pins) {
  std::string text;
  const auto fingerprint = [&](std::string_view key, const std::optional<Fingerprint>& value) {
    if (value) text += fmt::format("{} = \"{}\"\n", key, ToString(*value));
  };
  // A JSON string is a string of TOML, too.
  const auto pairs = [&](std::string_view key, const auto& list) {
    text += fmt::format("{} = [", key);
    for (const auto& [before, after] : list) {
      text += "\n  [";
      AppendJsonString(before, text);
      text += ", ";
      AppendJsonString(after, text);
      text += "],";
    }
    text += list.empty() ? "]\n" : "\n]\n";
  };
  fingerprint("before", pins.before);
  fingerprint("after", pins.after);
  pairs("same", pins.same);
  pairs("never", pins.never);
  return text;
}

void PinSame(Pins& pins, const std::string& before, const std::string& after) {
  Unpin(pins, before, after);
  pins.same.emplace_back(before, after);
}

void PinNever(Pins& pins, const std::string& before, const std::string& after) {
  const std::pair pair(before, after);
  std::erase(pins.same, pair);
  if (std::ranges::find(pins.never, pair) == pins.never.end()) pins.never.push_back(pair);
}

void Unpin(Pins& pins, const std::string& before, const std::string& after) {
  const auto names_it = [&](const std::pair<std::string, std::string>& pair) {
    return (!before.empty() && pair.first == before) || (!after.empty() && pair.second == after);
  };
  std::erase_if(pins.same, names_it);
  std::erase_if(pins.never, names_it);
}

std::vector<std::string> UsePins(const Pins& pins, const Graph& before, const Graph& after,
                                 DiffOptions& options) {
  std::vector<std::string> warnings;
  const Fingerprint is_before = FingerprintOf(before), is_after = FingerprintOf(after);
  if (!pins.before || !pins.after) {
    warnings.push_back(
        fmt::format("the pins do not say for which graphs they are: {}: add before = \"{}\" and "
                    "after = \"{}\"",
                    pins.file, ToString(is_before), ToString(is_after)));
  }
  const bool is_stale =
      (pins.before && *pins.before != is_before) || (pins.after && *pins.after != is_after);
  if (!is_stale) {
    options.pins.insert(options.pins.end(), pins.same.begin(), pins.same.end());
    options.vetoes.insert(options.vetoes.end(), pins.never.begin(), pins.never.end());
    return warnings;
  }
  warnings.push_back(fmt::format(
      "the pins are for other graphs: {}: before {}, after {}, here are {} and {}: check them, and "
      "write these fingerprints",
      pins.file, pins.before ? ToString(*pins.before) : "unsaid",
      pins.after ? ToString(*pins.after) : "unsaid", ToString(is_before), ToString(is_after)));
  const std::unordered_set<std::string> befores = NamesOf(before), afters = NamesOf(after);
  std::vector<std::string> left_out;
  const auto use = [&](const auto& from, auto& to) {
    for (const auto& [name_before, name_after] : from) {
      const bool exists = (name_before.empty() || befores.contains(name_before)) &&
                          (name_after.empty() || afters.contains(name_after));
      if (exists) {
        to.emplace_back(name_before, name_after);
      } else {
        left_out.push_back(fmt::format("{} = {}", name_before, name_after));
      }
    }
  };
  use(pins.same, options.pins);
  use(pins.never, options.vetoes);
  if (!left_out.empty()) {
    warnings.push_back(fmt::format("pins of nodes that are not there: {}: left out: {}", pins.file,
                                   Enumerate(left_out)));
  }
  return warnings;
}

}  // namespace strata
