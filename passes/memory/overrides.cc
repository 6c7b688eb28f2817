#include "passes/memory/overrides.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"

namespace strata {
namespace {

std::optional<MemoryTag> TagNamed(std::string_view text) {
  for (const MemoryTag tag : {MemoryTag::kMustSave, MemoryTag::kPreferRecompute,
                              MemoryTag::kMustRecompute, MemoryTag::kMustCpuOffload})
    if (ToString(tag) == text) return tag;
  return std::nullopt;
}

Result<TagOverride> ParseOverride(std::string_view text) {
  const size_t at = text.rfind('=');
  const std::string_view name =
      at == std::string_view::npos ? std::string_view() : TrimBlanks(text.substr(at + 1));
  const std::optional<MemoryTag> tag = TagNamed(name);
  if (!tag) {
    return Error(
        "override '{}' ends with no tag, write MODULE_PATTERN::OP=TAG with MUST_SAVE, "
        "PREFER_RECOMPUTE, MUST_RECOMPUTE or MUST_CPU_OFFLOAD",
        text);
  }
  STRATA_TRY(std::vector<NodeSelector> selectors, ParseSelectors(text.substr(0, at)));
  if (selectors.empty())
    return Error("override '{}' selects nothing, write MODULE_PATTERN::OP=TAG", text);
  return TagOverride{.selector = std::move(selectors.front()), .tag = *tag};
}

}  // namespace

Result<std::vector<TagOverride>> ParseOverrides(std::string_view text) {
  std::vector<TagOverride> overrides;
  while (!text.empty()) {
    const size_t end = text.find('|');
    const std::string_view part = TrimBlanks(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.empty()) continue;
    STRATA_TRY(TagOverride one, ParseOverride(part));
    overrides.push_back(std::move(one));
  }
  return overrides;
}

MemoryPolicy WithOverrides(MemoryPolicy policy, std::vector<TagOverride> overrides) {
  if (overrides.empty()) return policy;
  return [policy = std::move(policy), overrides = std::move(overrides),
          counter = OccurrenceCounter()](const Graph& graph, NodeId node) mutable {
    const MemoryTag tag = policy(graph, node);  // it may count nodes
    const int64_t occurrence = counter.Count(ModuleOf(graph, node), graph.op(node));
    const auto found = std::ranges::find_if(overrides, [&](const TagOverride& one) {
      return one.selector.Matches(ModuleOf(graph, node), graph.op(node), occurrence);
    });
    return found == overrides.end() ? tag : found->tag;
  };
}

}  // namespace strata
