#pragma once
#include <string_view>

namespace strata {

// Attributes of the nodes of chunked regions: what the pass that cuts says to the one that
// schedules, to diffs and to reports. Names and values are torchtitan's.

/// Path of the module that was cut: "layers.3.moe".
inline constexpr std::string_view kChunkedRegionAttribute = "chunked_region_fqn";
inline constexpr std::string_view kChunkRoleAttribute = "chunked_region_role";
/// 0, 1, …; of the body and of what one chunk reads.
inline constexpr std::string_view kChunkIdAttribute = "chunk_id";
/// Of the body: the node's name before.
inline constexpr std::string_view kChunkedOriginalAttribute = "chunked_original_name";
/// Of a sum: why the values of the chunks add up to the whole.
inline constexpr std::string_view kChunkProofAttribute = "chunked_materialization_proof";

// Roles.
inline constexpr std::string_view kSplitRole = "split_boundary";
inline constexpr std::string_view kChunkInputRole = "chunk_input";
inline constexpr std::string_view kBodyRole = "body";
inline constexpr std::string_view kMaterializationRole = "materialization";

// Proofs.
inline constexpr std::string_view kOutputSumProof = "graph_output_partial_sum";
inline constexpr std::string_view kBoundarySumProof = "backward_partial_sum";
inline constexpr std::string_view kCountProof = "forward_count";
/// Of the last chunk that writes shared memory: its result is that of all chunks.
inline constexpr std::string_view kLastWriteProof = "last_write";

}  // namespace strata
