#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/memory/selectors.h"
#include "passes/memory/tag_memory.h"

namespace strata {

/// The tag of single nodes, whatever a policy says:
/// `layers.*.attention::aten.mm.default#2=MUST_RECOMPUTE`.
struct TagOverride {
  NodeSelector selector;
  MemoryTag tag = MemoryTag::kMustSave;
};

/// Overrides separated by `|`. Errors: those of ParseSelectors; no `=` with a tag behind it.
Result<std::vector<TagOverride>> ParseOverrides(std::string_view text);

/// `policy`, but for the nodes that overrides select: the first that does decides. What every
/// policy saves is saved nevertheless.
MemoryPolicy WithOverrides(MemoryPolicy policy, std::vector<TagOverride> overrides);

}  // namespace strata
