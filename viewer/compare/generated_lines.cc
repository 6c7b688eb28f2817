#include "viewer/compare/generated_lines.h"

#include <string_view>

#include "base/text.h"
#include "base/unicode.h"
#include "runtime/codegen/kernel_code.h"

namespace strata::viewer {

std::vector<std::string> GeneratedLinesOf(const Comparison& comparison, SceneNodeId node) {
  const Entity& entity = comparison.listing_of(node)[comparison.entity_of(node)];
  if (entity.element.valid() || entity.kind == EntityKind::kOutput) return {};
  KernelCode generated;
  std::string_view code = generated.Of(comparison.graph_of(node), entity.node);
  std::vector<std::string> lines;
  while (!code.empty())
    lines.push_back(Visible(TakeLine(code)));
  return lines;
}

}  // namespace strata::viewer
