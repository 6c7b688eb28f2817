#include "prove/chunks.h"

#include "passes/core/chunk_attributes.h"

namespace strata::prove {

bool IsNewChunk(const Graph& before, NodeId original, const Graph& after, NodeId node) {
  return after.attribute(node, kChunkRoleAttribute) == kBodyRole &&
         before.attribute(original, kChunkRoleAttribute) != kBodyRole;
}

std::optional<WholeValue> JoinedWhole(const Graph& before, const Graph& after, NodeId node,
                                      const OriginalOf& original_of) {
  std::optional<WholeValue> whole;
  if (after.attribute(node, kChunkRoleAttribute) != kMaterializationRole) return whole;
  after.ForEachOperand(node, [&](ValueId operand) {
    const NodeId chunk = after.value(operand).def;
    const NodeId original = original_of(after.node(chunk).stable_id);
    if (original.valid() && IsNewChunk(before, original, after, chunk))
      whole = WholeValue{original, static_cast<size_t>(after.result_index(operand))};
  });
  return whole;
}

}  // namespace strata::prove
