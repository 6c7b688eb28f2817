#include "viewer/model/script_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/suggest.h"
#include "base/text.h"

namespace strata::viewer {
namespace {

/// What may stand for a word of a command.
enum class Kind : uint8_t { kText, kCount, kSeed, kNumber, kPixels, kMotion, kClick, kWheel, kPng };

struct Verb {
  size_t least, most;  // words
  const char* usage;
  std::vector<Kind> kinds;  // of the first words; all others are texts
};

/// What a word of a kind is, for people.
const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "a text";
    case Kind::kCount:
      return "a number from 1 to 1000000";
    case Kind::kSeed:
      return "a number from 0 to 4000000000";
    case Kind::kNumber:
      return "a number";
    case Kind::kPixels:
      return "a number of pixels from 100 to 8192";
    case Kind::kMotion:
      return "still, pan or zoom";
    case Kind::kClick:
      return "right, double, shift or ctrl";
    case Kind::kWheel:
      return "ctrl or shift";
    case Kind::kPng:
      return "the name of a PNG file";
  }
  return "";
}

bool IsNumber(const std::string& word, double least, double most, bool whole) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  return !word.empty() && *end == '\0' && value >= least && value <= most &&
         (!whole || value == std::floor(value));
}

bool IsOf(Kind kind, const std::string& word) {
  const auto one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
  };
  switch (kind) {
    case Kind::kText:
      return true;
    case Kind::kCount:
      return IsNumber(word, 1, 1e6, true);
    case Kind::kSeed:
      return IsNumber(word, 0, 4e9, true);
    case Kind::kNumber:
      return IsNumber(word, -1e6, 1e6, false);
    case Kind::kPixels:
      return IsNumber(word, 100, 8192, true);
    case Kind::kMotion:
      return one_of({"still", "pan", "zoom"});
    case Kind::kClick:
      return one_of({"right", "double", "shift", "ctrl"});
    case Kind::kWheel:
      return one_of({"ctrl", "shift"});
    case Kind::kPng:
      return word.ends_with(".png");
  }
  return false;
}

const std::map<std::string, Verb, std::less<>>& Verbs() {
  static const std::map<std::string, Verb, std::less<>> kVerbs = {
      {"open", {1, 1, "open FILE[#LINK]", {}}},
      {"compare", {2, 2, "compare REF REF", {}}},
      {"wait", {0, 1, "wait [MILLISECONDS|CONDITION]", {Kind::kSeed}}},
      {"await",
       {2, 99, "await ELEMENT WHAT… | await state KEY OP VALUE | await count PATTERN OP N", {}}},
      {"frames", {1, 2, "frames N [still|pan|zoom]", {Kind::kCount, Kind::kMotion}}},
      {"random", {2, 2, "random EVENTS SEED", {Kind::kCount, Kind::kSeed}}},
      {"export", {1, 1, "export FILE.png|svg|dot|json|html", {}}},
      {"key", {1, 99, "key KEY…", {}}},
      {"hold", {1, 1, "hold KEY", {}}},
      {"release", {1, 1, "release KEY", {}}},
      {"type", {1, 99, "type TEXT", {}}},
      {"click", {1, 2, "click ELEMENT [right|double|shift|ctrl]", {Kind::kText, Kind::kClick}}},
      {"move", {1, 1, "move ELEMENT", {}}},
      {"drag", {3, 3, "drag ELEMENT DX DY", {Kind::kText, Kind::kNumber, Kind::kNumber}}},
      {"scroll",
       {2, 3, "scroll ELEMENT NOTCHES [ctrl|shift]", {Kind::kText, Kind::kNumber, Kind::kWheel}}},
      {"run", {1, 2, "run COMMAND [COUNT]", {Kind::kText, Kind::kCount}}},
      {"goto", {1, 1, "goto NODE", {}}},
      {"resize", {2, 2, "resize WIDTH HEIGHT", {Kind::kPixels, Kind::kPixels}}},
      {"drop", {1, 99, "drop FILE…", {}}},
      {"screenshot", {1, 1, "screenshot FILE.png", {Kind::kPng}}},
      {"tree", {1, 1, "tree FILE.json", {}}},
      {"assert",
       {2, 99, "assert ELEMENT WHAT… | assert state KEY OP VALUE | assert count PATTERN OP N", {}}},
      {"quit", {0, 0, "quit", {}}},
      {"now", {1, 99, "now COMMAND…", {}}}};
  return kVerbs;
}

/// Other names of verbs, and shorter assertions: `wait CONDITION`, `dump FILE`, `assert state.KEY
/// …`.
void Normalize(ScriptLine& line) {
  if (line.verb == "dump") line.verb = "tree";
  const bool waits = line.verb == "wait" && !line.words.empty();
  if (waits && line.words.size() == 1 && line.words[0] == "idle") line.words.clear();
  if (waits &&
      (line.words.size() > 1 || (line.words.size() == 1 && !IsOf(Kind::kSeed, line.words[0]) &&
                                 !IsNumber(line.words[0], -1e300, 1e300, false)))) {
    line.verb = "await";
    if (line.words.size() == 1) line.words.emplace_back("exists");
  }
  constexpr std::string_view kState = "state.";
  if ((line.verb == "assert" || line.verb == "await") && !line.words.empty() &&
      line.words[0].starts_with(kState)) {
    line.words.insert(line.words.begin() + 1, line.words[0].substr(kState.size()));
    line.words[0] = "state";
  }
}

/// Splits a line into words; "…" holds blanks, with \" and \\ inside.
Result<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  size_t i = 0;
  while (true) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
      ++i;
    if (i == line.size() || (line[i] == '#' && words.empty())) return words;
    std::string word;
    if (line[i] == '"') {
      for (++i; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) ++i;
        word += line[i];
      }
      if (i == line.size()) return Error("no closing quote");
      ++i;
    } else {
      while (i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
        word += line[i++];
    }
    words.push_back(std::move(word));
  }
}

}  // namespace

Result<std::vector<ScriptLine>> ParseScript(std::string_view text, const std::string& file) {
  std::vector<ScriptLine> lines;
  int32_t number = 0;
  while (!text.empty()) {
    Result<std::vector<std::string>> words = SplitWords(TakeLine(text));
    ++number;
    if (!words) return std::move(words).error().In(fmt::format("{}:{}", file, number));
    if (words->empty()) continue;
    const bool now = words->front() == "now" && words->size() > 1;
    if (now) words->erase(words->begin());
    ScriptLine line{.number = number, .now = now, .verb = words->front(), .words = {}};
    line.words.assign(words->begin() + 1, words->end());
    Normalize(line);
    const auto verb = Verbs().find(line.verb);
    if (verb == Verbs().end()) {
      std::vector<std::string> names;
      for (const auto& [name, known] : Verbs())
        names.push_back(name);
      names.emplace_back("dump");
      return Error("{}:{}: unknown verb '{}'{}: see docs/viewer.md", file, number,
                   OneLine(line.verb), DidYouMean(line.verb, names));
    }
    if (line.words.size() < verb->second.least || line.words.size() > verb->second.most)
      return Error("{}:{}: wrong number of words: write {}", file, number, verb->second.usage);
    const std::vector<Kind>& kinds = verb->second.kinds;
    for (size_t i = 0; i < std::min(kinds.size(), line.words.size()); ++i) {
      if (!IsOf(kinds[i], line.words[i]))
        return Error("{}:{}: '{}' is not {}: write {}", file, number, OneLine(line.words[i]),
                     NameOf(kinds[i]), verb->second.usage);
    }
    // Each key of a line waits for the effect of the one before.
    if (line.verb == "key" && !now) {
      for (std::string& key : line.words)
        lines.push_back({.number = number, .verb = "key", .words = {std::move(key)}});
      continue;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace strata::viewer
