#include "diff/graph/module_path.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata {
namespace {

std::vector<std::string_view> Split(std::string_view module) {
  std::vector<std::string_view> parts;
  while (!module.empty()) {
    const size_t dot = std::min(module.find('.'), module.size());
    parts.push_back(module.substr(0, dot));
    module.remove_prefix(std::min(dot + 1, module.size()));
  }
  return parts;
}

bool IsNumber(std::string_view part) {
  return !part.empty() && part.size() < 10 &&
         std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

int32_t NumberOf(std::string_view part) {
  int32_t number = 0;
  std::from_chars(part.data(), part.data() + part.size(), number);
  return number;
}

/// `{0..31}` with what is missing in it, `{0,5,9}`, or the number alone.
std::string RangeText(const std::set<int32_t>& numbers, std::vector<int32_t>& missing) {
  if (numbers.size() == 1) return fmt::format("{}", *numbers.begin());
  const int32_t first = *numbers.begin(), last = *numbers.rbegin();
  const size_t length = static_cast<size_t>(last - first) + 1;
  if (length - numbers.size() > length / 3) return fmt::format("{{{}}}", fmt::join(numbers, ","));
  for (int32_t i = first; i <= last; ++i) {
    if (!numbers.contains(i)) missing.push_back(i);
  }
  return fmt::format("{{{}..{}}}", first, last);
}

/// Paths of one shape.
ModulePathRange GeneralizeShape(const std::vector<std::string>& modules) {
  ModulePathRange range;
  const std::vector<std::string_view> parts = Split(modules[0]);
  std::vector<std::set<int32_t>> numbers(parts.size());
  for (const std::string& module : modules) {
    const std::vector<std::string_view> own = Split(module);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (IsNumber(own[i])) numbers[i].insert(NumberOf(own[i]));
    }
  }
  const auto varying =
      std::ranges::count_if(numbers, [](const auto& set) { return set.size() > 1; });
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) range.where += '.';
    if (numbers[i].empty()) {
      range.where += parts[i];
      continue;
    }
    std::vector<int32_t> missing;
    range.where += RangeText(numbers[i], missing);
    if (varying != 1) continue;
    for (int32_t number : missing) {
      std::vector<std::string> path(parts.begin(), parts.end());
      path[i] = fmt::format("{}", number);
      range.except.push_back(fmt::format("{}", fmt::join(path, ".")));
    }
  }
  return range;
}

}  // namespace

std::string ModulePathShape(std::string_view module) {
  std::string shape;
  for (std::string_view part : Split(module)) {
    if (!shape.empty()) shape += '.';
    shape += IsNumber(part) ? "*" : part;
  }
  return shape;
}

std::string_view LayerOf(std::string_view module) {
  for (std::string_view part : Split(module)) {
    if (IsNumber(part)) return module.substr(0, static_cast<size_t>(part.end() - module.begin()));
  }
  return {};
}

std::string_view CommonModule(std::string_view a, std::string_view b) {
  size_t end = 0;
  for (size_t i = 0;; ++i) {
    const bool end_a = i >= a.size() || a[i] == '.', end_b = i >= b.size() || b[i] == '.';
    if (end_a && end_b) end = i;
    if (i >= a.size() || i >= b.size() || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

int CompareModulePaths(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> x = Split(a), y = Split(b);
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i] == y[i]) continue;
    if (IsNumber(x[i]) && IsNumber(y[i])) return NumberOf(x[i]) - NumberOf(y[i]);
    return x[i].compare(y[i]);
  }
  return static_cast<int>(x.size()) - static_cast<int>(y.size());
}

ModulePathRange GeneralizeModulePaths(const std::vector<std::string>& modules) {
  std::map<std::string, std::vector<std::string>> by_shape;
  for (const std::string& module : modules)
    by_shape[ModulePathShape(module)].push_back(module);
  ModulePathRange result;
  for (const auto& [shape, paths] : by_shape) {
    const ModulePathRange range = GeneralizeShape(paths);
    if (!result.where.empty()) result.where += ", ";
    result.where += range.where;
    result.except.insert(result.except.end(), range.except.begin(), range.except.end());
  }
  return result;
}

}  // namespace strata
