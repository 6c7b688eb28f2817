#include "diff/patch/parse.h"

#include <utility>

#include <fmt/format.h>

#include "ir/text/native_cursor.h"

namespace strata {
namespace {

constexpr int64_t kMaxNumber = INT32_MAX - 1;

class PatchParser : NativeCursor {
 public:
  PatchParser(Patch& patch, std::string_view file)
      : NativeCursor(*patch.text, file), patch_(patch) {}

  Status Run() {
    STRATA_RETURN_IF_ERROR(ParseHeader());
    while (NextLine()) {
      if (TakeWord("symbols")) {
        STRATA_RETURN_IF_ERROR(ParseSymbols());
      } else if (TakeWord("graph")) {
        STRATA_RETURN_IF_ERROR(ParseGraph());
      } else if (TakeWord("drop")) {
        STRATA_RETURN_IF_ERROR(ParseDrop());
      } else {
        return Fail("expected 'graph', 'drop graph' or 'symbols'");
      }
    }
    if (patch_.graphs.empty()) return Fail("the patch has no graph");
    return Ok();
  }

 private:
  /// Goes to the first character of the next line that says something; false at the end.
  bool NextLine() {
    for (;;) {
      line_begin_ = at_;
      SkipBlanks();
      if (AtEnd()) return false;
      if (Peek() != '\n' && Peek() != '\r' && Peek() != '#') return true;
      SkipLine();
    }
  }
  void SkipLine() {
    const size_t end = text_.find('\n', at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
  }
  /// The end of a line, perhaps behind a comment; goes to the next one.
  Status FinishLine() {
    SkipBlanks();
    if (!AtEnd() && Peek() != '\n' && Peek() != '\r' && Peek() != '#') {
      return Fail("expected the end of the line");
    }
    SkipLine();
    return Ok();
  }
  /// What is left of the line, which is then behind us.
  std::string_view RestOfLine() {
    const size_t begin = at_;
    SkipLine();
    std::string_view rest = text_.substr(begin, at_ - begin);
    while (!rest.empty() && (rest.back() == '\n' || rest.back() == '\r' || rest.back() == ' '))
      rest.remove_suffix(1);
    return rest;
  }

  Status ParseHeader() {
    if (!NextLine() || !TakeWord("strata") || !TakeWord("patch")) {
      return FailAt(line_begin_, "not a patch: it begins with 'strata patch 1'");
    }
    SkipBlanks();
    const size_t version_at = at_;
    STRATA_TRY(const int64_t version, Integer());
    if (version != 1) {
      return FailAt(version_at, fmt::format("format {} is not known, 1 is", version));
    }
    STRATA_RETURN_IF_ERROR(FinishLine());
    STRATA_RETURN_IF_ERROR(ParseSide("before", patch_.before));
    STRATA_RETURN_IF_ERROR(ParseSide("after", patch_.after));
    if (!NextLine() || !TakeWord("carries")) return Fail("expected 'carries'");
    using enum Patch::Carries;
    for (Patch::Carries carries : {kComputation, kPlaces, kEverything}) {
      if (!TakeWord(ToString(carries))) continue;
      patch_.carries = carries;
      return FinishLine();
    }
    return Fail("expected 'computation', 'places' or 'everything'");
  }

  Status ParseSide(std::string_view word, Patch::Side& side) {
    if (!NextLine() || !TakeWord(word)) return Fail(fmt::format("expected '{}'", word));
    const std::string_view digits = PeekWord();
    const std::optional<Fingerprint> fingerprint = FingerprintFromString(digits);
    if (!fingerprint) return Fail("expected a fingerprint: 32 digits of 0-9a-f");
    side.fingerprint = *fingerprint;
    at_ += digits.size();
    STRATA_TRY(const int64_t nodes, Integer(0, kMaxNumber));
    side.nodes = static_cast<int32_t>(nodes);
    if (!TakeWord("nodes")) return Fail("expected 'nodes'");
    return FinishLine();
  }

  Status ParseSymbols() {
    if (patch_.symbols) return FailAt(line_begin_, "the symbols were told above");
    STRATA_RETURN_IF_ERROR(FinishLine());
    patch_.symbols.emplace();
    while (NextLine() && PeekWord() == "symbol") {
      const size_t begin = at_;
      patch_.symbols->push_back({RestOfLine(), begin});
    }
    at_ = line_begin_;
    return Ok();
  }

  Status ParseDrop() {
    if (!TakeWord("graph")) return Fail("expected 'graph'");
    STRATA_TRY(const int64_t number, Integer(0, kMaxNumber));
    patch_.dropped.push_back({static_cast<int32_t>(number), line_begin_});
    return FinishLine();
  }

  Status ParseGraph() {
    Patch::GraphPart part;
    part.at = line_begin_;
    SkipBlanks();
    const size_t number_at = at_;
    STRATA_TRY(const int64_t number, Integer(0, kMaxNumber));
    if (static_cast<size_t>(number) != patch_.graphs.size()) {
      return FailAt(number_at, fmt::format("graphs are numbered in order: this is graph {}",
                                           patch_.graphs.size()));
    }
    STRATA_TRY(part.name, Name());
    part.is_body = TakeWord("body");
    part.is_foreign = TakeWord("foreign");
    if (TakeWord("from")) {
      STRATA_TRY(const int64_t from, Integer(0, kMaxNumber));
      part.from = static_cast<int32_t>(from);
    }
    STRATA_RETURN_IF_ERROR(FinishLine());
    STRATA_RETURN_IF_ERROR(ParseSteps(part));
    STRATA_RETURN_IF_ERROR(ParseNames(part));
    patch_.graphs.push_back(std::move(part));
    return Ok();
  }

  Status ParseSteps(Patch::GraphPart& part) {
    while (NextLine()) {
      Patch::Step step;
      step.at = line_begin_;
      const char mark = Peek();
      const bool is_marked = mark == '>' || mark == '-' || mark == '+' || mark == '~';
      if (!is_marked && !(mark >= '0' && mark <= '9')) {
        if (mark == '=') return Fail("'=' stands below a line with '~' only");
        at_ = line_begin_;
        return Ok();
      }
      if (!part.from && mark != '+') {
        return Fail("a graph that comes from none has lines with '+' only");
      }
      if (is_marked) ++at_;
      step.action = mark == '>'   ? Patch::Action::kMove
                    : mark == '-' ? Patch::Action::kDrop
                    : mark == '+' ? Patch::Action::kInsert
                    : mark == '~' ? Patch::Action::kChange
                                  : Patch::Action::kKeep;
      STRATA_RETURN_IF_ERROR(ParseStep(step));
      part.steps.push_back(step);
    }
    return Ok();
  }

  Status ParseStep(Patch::Step& step) {
    using enum Patch::Action;
    if (step.action == kInsert) return ParseLine(step.after, step.after_at);
    STRATA_TRY(const int64_t first, Integer(1, kMaxNumber));
    step.first = step.last = static_cast<int32_t>(first);
    if (step.action == kKeep || step.action == kMove) {
      if (Peek() == '.' && Peek(1) == '.') {
        at_ += 2;
        STRATA_TRY(const int64_t last, Integer(first, kMaxNumber));
        step.last = static_cast<int32_t>(last);
      }
      return FinishLine();
    }
    STRATA_RETURN_IF_ERROR(ParseLine(step.before, step.before_at));
    if (step.action == kDrop) return Ok();
    if (!NextLine() || !Take('=')) return Fail("expected '=' and the line that it becomes");
    return ParseLine(step.after, step.after_at);
  }

  Status ParseLine(std::string_view& line, size_t& at) {
    SkipBlanks();
    at = at_;
    line = RestOfLine();
    if (line.empty()) return FailAt(at, "expected a node");
    return Ok();
  }

  Status ParseNames(Patch::GraphPart& part) {
    if (!NextLine() || !TakeWord("names")) {
      at_ = line_begin_;
      return Ok();
    }
    STRATA_RETURN_IF_ERROR(FinishLine());
    while (NextLine()) {
      if (Peek() < '0' || Peek() > '9') break;
      Patch::Name name;
      name.at = at_;
      STRATA_TRY(const int64_t node, Integer(1, kMaxNumber));
      name.node = static_cast<int32_t>(node);
      if (Take('.')) {
        STRATA_TRY(const int64_t element, Integer(0, UINT16_MAX));
        name.element = static_cast<int32_t>(element);
      }
      STRATA_TRY(name.before, Name());
      name.after = name.before;
      if (Take('-')) {
        STRATA_RETURN_IF_ERROR(Expect('>'));
        STRATA_TRY(name.after, Name());
      }
      STRATA_RETURN_IF_ERROR(FinishLine());
      part.names.push_back(std::move(name));
    }
    at_ = line_begin_;
    return Ok();
  }

  Patch& patch_;
  size_t line_begin_ = 0;
};

}  // namespace

Result<Patch> ParsePatch(std::string_view text, std::string_view file) {
  Patch patch;
  patch.text = std::make_unique<const std::string>(text);
  patch.file = file;
  STRATA_RETURN_IF_ERROR(PatchParser(patch, patch.file).Run());
  return patch;
}

}  // namespace strata
