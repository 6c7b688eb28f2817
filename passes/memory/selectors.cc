#include "passes/memory/selectors.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "ir/ops.h"

namespace strata {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// The text up to `separator`, which is taken from the front of `rest` together with it.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

bool MatchesPart(std::string_view pattern, std::string_view text) {
  // Backtracks to the last star only: that a later star matches more never needs an earlier one.
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<NodeSelector> ParseSelector(std::string_view text) {
  const size_t at = text.find("::");
  if (at == std::string_view::npos || text.find("::", at + 2) != std::string_view::npos)
    return Error("selector '{}' has not one '::', write MODULE_PATTERN::OP", text);
  NodeSelector selector{.pattern = std::string(Trim(text.substr(0, at))),
                        .op = std::string(Trim(text.substr(at + 2)))};
  if (selector.pattern.empty() || selector.op.empty())
    return Error("a side of selector '{}' is empty, write MODULE_PATTERN::OP", text);
  if (const size_t mark = selector.op.find('#'); mark != std::string::npos) {
    const std::string_view number = std::string_view(selector.op).substr(mark + 1);
    const char* const last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, selector.occurrence);
    if (error != std::errc() || end != last || selector.occurrence < 1)
      return Error("'#{}' of selector '{}' is not a whole number from 1, write OP#2", number, text);
    selector.op.resize(mark);
  }
  constexpr std::string_view kTorchOps = "torch.ops.";
  if (selector.op.starts_with(kTorchOps)) selector.op.erase(0, kTorchOps.size());
  const auto dots = std::ranges::count(selector.op, '.');
  const bool is_higher_order = selector.op.starts_with("higher_order.") && dots == 1;
  if (dots != 2 && !is_higher_order) {
    return Error(
        "operator '{}' of a selector must name an overload or a higher-order operator, write "
        "aten.mm.default",
        selector.op);
  }
  return selector;
}

}  // namespace

bool NodeSelector::Matches(std::string_view module, std::string_view node_op,
                           int64_t node_occurrence) const {
  return node_op == op && (occurrence == 0 || occurrence == node_occurrence) &&
         MatchesModule(pattern, module);
}

bool MatchesModule(std::string_view pattern, std::string_view module) {
  if (std::ranges::count(pattern, '.') != std::ranges::count(module, '.')) return false;
  for (auto parts = std::ranges::count(pattern, '.') + 1; parts > 0; --parts) {
    if (!MatchesPart(TakeUntil(pattern, '.'), TakeUntil(module, '.'))) return false;
  }
  return true;
}

Result<std::vector<NodeSelector>> ParseSelectors(std::string_view text) {
  std::vector<NodeSelector> selectors;
  if (Trim(text).empty()) return selectors;
  while (!text.empty()) {
    const std::string_view part = Trim(TakeUntil(text, '|'));
    if (part.empty()) continue;
    STRATA_TRY(NodeSelector selector, ParseSelector(part));
    selectors.push_back(std::move(selector));
  }
  return selectors;
}

}  // namespace strata
