#include "viewer/model/script_text.h"

#include <algorithm>
#include <map>

#include "base/suggest.h"
#include "base/text.h"

namespace strata::viewer {
namespace {

struct Verb {
  size_t least, most;  // words
  const char* usage;
};

const std::map<std::string, Verb, std::less<>>& Verbs() {
  static const std::map<std::string, Verb, std::less<>> kVerbs = {
      {"open", {1, 1, "open FILE[#LINK]"}},
      {"compare", {2, 2, "compare REF REF"}},
      {"wait", {0, 1, "wait [MILLISECONDS]"}},
      {"await",
       {2, 99, "await ELEMENT WHAT… | await state KEY OP VALUE | await count PATTERN OP N"}},
      {"frames", {1, 2, "frames N [still|pan|zoom]"}},
      {"random", {2, 2, "random EVENTS SEED"}},
      {"export", {1, 1, "export FILE.png|svg|dot|json|html"}},
      {"key", {1, 99, "key KEY…"}},
      {"hold", {1, 1, "hold KEY"}},
      {"release", {1, 1, "release KEY"}},
      {"type", {1, 99, "type TEXT"}},
      {"click", {1, 2, "click ELEMENT [right|double|shift|ctrl]"}},
      {"move", {1, 1, "move ELEMENT"}},
      {"drag", {3, 3, "drag ELEMENT DX DY"}},
      {"scroll", {2, 3, "scroll ELEMENT NOTCHES [ctrl|shift]"}},
      {"run", {1, 2, "run COMMAND [COUNT]"}},
      {"goto", {1, 1, "goto NODE"}},
      {"resize", {2, 2, "resize WIDTH HEIGHT"}},
      {"drop", {1, 99, "drop FILE…"}},
      {"screenshot", {1, 1, "screenshot FILE.png"}},
      {"tree", {1, 1, "tree FILE.json"}},
      {"assert",
       {2, 99, "assert ELEMENT WHAT… | assert state KEY OP VALUE | assert count PATTERN OP N"}},
      {"quit", {0, 0, "quit"}},
      {"now", {1, 99, "now COMMAND…"}}};
  return kVerbs;
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
    const size_t end = std::min(text.find('\n'), text.size());
    Result<std::vector<std::string>> words = SplitWords(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!words) return std::move(words).error().In(fmt::format("{}:{}", file, number));
    if (words->empty()) continue;
    const bool now = words->front() == "now" && words->size() > 1;
    if (now) words->erase(words->begin());
    ScriptLine line{.number = number, .now = now, .verb = words->front(), .words = {}};
    line.words.assign(words->begin() + 1, words->end());
    const auto verb = Verbs().find(line.verb);
    if (verb == Verbs().end()) {
      std::vector<std::string> names;
      for (const auto& [name, known] : Verbs())
        names.push_back(name);
      return Error("{}:{}: unknown verb '{}'{}: see docs/viewer.md", file, number,
                   OneLine(line.verb), DidYouMean(line.verb, names));
    }
    if (line.words.size() < verb->second.least || line.words.size() > verb->second.most)
      return Error("{}:{}: wrong number of words: write {}", file, number, verb->second.usage);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace strata::viewer
