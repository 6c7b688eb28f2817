#include "diff/history/aot_graphs.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// `0_forward` of `model__0_forward_1`; "": another name.
std::string_view AotIdOfFolder(std::string_view name) {
  const size_t begin = name.find("__");
  if (begin == std::string_view::npos) return {};
  const std::string_view id = name.substr(begin + 2);
  const size_t last = id.rfind('_');
  const bool is_numbered = last != std::string_view::npos && last + 1 < id.size() &&
                           id.find_first_not_of(kDigits, last + 1) == std::string_view::npos;
  const size_t number = id.find_first_not_of(kDigits);
  if (!is_numbered || number == 0 || number >= last || id[number] != '_') return {};
  return id.substr(0, last);
}

std::string_view AotIdOfFolder(const GraphRecord& record) {
  return record.compilation.empty() ? AotIdOfFolder(record.name) : std::string_view{};
}

/// The graphs that each compilation gave to Inductor, in order, each once.
std::map<std::string, std::vector<int32_t>> GivenToInductor(const History& history) {
  std::map<std::string, std::vector<int32_t>> given;
  for (const HistoryStep& step : history.steps) {
    if (PassOf(history, step) != kPostGradPass) continue;
    given[history.records[static_cast<size_t>(step.graph)].compilation].push_back(step.graph);
  }
  return given;
}

}  // namespace

bool IsOfDebugFolder(const History& history) {
  return !history.records.empty() && std::ranges::all_of(history.records, [](const auto& record) {
    return !AotIdOfFolder(record).empty();
  });
}

std::map<std::string, int32_t> GraphsByAotId(const History& history) {
  std::vector<std::pair<std::string, int32_t>> found;
  for (size_t g = 0; g < history.records.size(); ++g) {
    const std::string_view id = AotIdOfFolder(history.records[g]);
    if (!id.empty()) found.emplace_back(id, static_cast<int32_t>(g));
  }
  std::map<std::string, std::vector<std::string>> ids;  // by compilation, in order of the code
  for (const GeneratedCode& code : history.code) {
    if (!code.compilation.empty() && !code.aot_id.empty())
      ids[code.compilation].push_back(code.aot_id);
  }
  if (!ids.empty()) {
    const auto given = GivenToInductor(history);
    for (const auto& [compilation, list] : ids) {
      const auto graphs = given.find(compilation);
      if (graphs == given.end() || graphs->second.size() != list.size()) continue;
      for (size_t i = 0; i < list.size(); ++i)
        found.emplace_back(list[i], graphs->second[i]);
    }
  }
  std::map<std::string, int32_t> graphs;
  std::set<std::string> ambiguous;
  for (const auto& [id, graph] : found) {
    if (!graphs.emplace(id, graph).second) ambiguous.insert(id);
  }
  for (const std::string& id : ambiguous)
    graphs.erase(id);
  return graphs;
}

}  // namespace strata
