#include "runtime/control/breakpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.h"
#include "passes/memory/selectors.h"
#include "runtime/control/words.h"

namespace strata {
namespace {

using Statistic = ValuePredicate::Statistic;
using Comparison = ValuePredicate::Comparison;
using Kind = Breakpoint::Kind;

template <class T>
using Names = std::vector<std::pair<std::string_view, T>>;

const Names<Statistic>& Statistics() {
  static const Names<Statistic> names = {
      {"min", Statistic::kMin},        {"max", Statistic::kMax}, {"mean", Statistic::kMean},
      {"abs_max", Statistic::kAbsMax}, {"nan", Statistic::kNan}, {"inf", Statistic::kInf}};
  return names;
}

const Names<Comparison>& Comparisons() {
  static const Names<Comparison> names = {
      {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
      {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual},
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual}};
  return names;
}

template <class T>
Result<T> Named(const Names<T>& names, std::string_view word, std::string_view what) {
  const auto found = std::ranges::find(names, word, [](const auto& entry) { return entry.first; });
  if (found != names.end()) return found->second;
  std::vector<std::string> all;
  for (const auto& [name, value] : names)
    all.emplace_back(name);
  return Error("no such {}: {}: write one of {}", what, OneLine(word), Enumerate(all, all.size()));
}

Result<ValuePredicate> ParsePredicate(std::span<const std::string_view> words) {
  if (words.size() != 3) {
    return Error("not a condition: {}: write 'if abs_max > 100'",
                 words.empty() ? "nothing after 'if'" : OneLine(words[0]));
  }
  ValuePredicate predicate;
  STRATA_TRY(predicate.statistic, Named(Statistics(), words[0], "statistic"));
  STRATA_TRY(predicate.comparison, Named(Comparisons(), words[1], "comparison"));
  STRATA_TRY(predicate.number, ParseNumber(words[2]));
  return predicate;
}

/// `aten.mm.default` is called `aten.mm` and `mm`, too.
bool IsOperator(std::string_view op, std::string_view name) {
  if (op == name) return true;
  const std::string_view packet = op.substr(0, op.rfind('.'));
  if (packet == name) return true;
  const size_t library = packet.find('.');
  return library != std::string_view::npos && packet.substr(library + 1) == name;
}

/// The pattern matches the module or one that it is in.
bool IsBelow(std::string_view pattern, std::string_view module) {
  while (!module.empty()) {
    if (MatchesModule(pattern, module)) return true;
    const size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
  }
  return false;
}

Error NotABreakpoint(std::string_view text) {
  return Error(
      "not a place to break at: {}: write pass NAME, step N, node NAME, op NAME, module PATTERN, "
      "nan, inf, or if STATISTIC > NUMBER",
      text.empty() ? "nothing" : OneLine(text));
}

}  // namespace

bool ValuePredicate::Holds(const ValueStatistics& values) const {
  const auto value = [&] {
    switch (statistic) {
      case Statistic::kMin:
        return values.min;
      case Statistic::kMax:
        return values.max;
      case Statistic::kMean:
        return values.mean;
      case Statistic::kAbsMax:
        return std::max(std::abs(values.min), std::abs(values.max));
      case Statistic::kNan:
        return static_cast<double>(values.nan_count);
      case Statistic::kInf:
        return static_cast<double>(values.inf_count);
    }
    return 0.0;
  }();
  switch (comparison) {
    case Comparison::kLess:
      return value < number;
    case Comparison::kLessEqual:
      return value <= number;
    case Comparison::kGreater:
      return value > number;
    case Comparison::kGreaterEqual:
      return value >= number;
    case Comparison::kEqual:
      return value == number;
    case Comparison::kNotEqual:
      return value != number;
  }
  return false;
}

bool Breakpoint::Matches(const NodeSite& node, std::string_view last_module) const {
  switch (kind) {
    case Kind::kPass:
    case Kind::kStep:
      return false;
    case Kind::kNode:
      return node.name == name;
    case Kind::kOp:
      return IsOperator(node.op, name);
    case Kind::kModule:
      return IsBelow(name, node.module) && (predicate || !IsBelow(name, last_module));
    case Kind::kAny:
      return true;
  }
  return false;
}

Result<Breakpoint> ParseBreakpoint(std::string_view text) {
  std::vector<std::string_view> words = SplitWords(text);
  Breakpoint at{.name = {}, .predicate = {}, .text = std::string(TrimBlanks(text))};
  const auto condition = std::ranges::find(words, "if");
  if (condition != words.end()) {
    STRATA_TRY(at.predicate, ParsePredicate(std::span(condition + 1, words.end())));
    words.erase(condition, words.end());
    if (words.empty()) return at;
  }
  if (words.size() == 1 && !at.predicate && (words[0] == "nan" || words[0] == "inf")) {
    STRATA_TRY(const Statistic statistic, Named(Statistics(), words[0], "statistic"));
    at.predicate = {.statistic = statistic, .comparison = Comparison::kGreater, .number = 0.0};
    return at;
  }
  if (words.size() != 2) return NotABreakpoint(text);
  static const Names<Kind> kinds = {{"pass", Kind::kPass},
                                    {"step", Kind::kStep},
                                    {"node", Kind::kNode},
                                    {"op", Kind::kOp},
                                    {"module", Kind::kModule}};
  const auto kind =
      std::ranges::find(kinds, words[0], [](const auto& entry) { return entry.first; });
  if (kind == kinds.end()) return NotABreakpoint(text);
  at.kind = kind->second;
  at.name = words[1];
  if (!at.IsOfNodes() && at.predicate)
    return Error("no values to compare before a {}: {}: leave out 'if'", words[0], OneLine(text));
  if (at.kind == Kind::kStep) {
    STRATA_TRY(at.step, ParseCount(words[1]));
  }
  return at;
}

}  // namespace strata
