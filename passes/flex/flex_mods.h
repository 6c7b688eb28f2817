#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

// The bodies of flex attention that models have by name, as FX text.

/// Buffers that bodies may read, by name: int64 `[batch, seq]`.
inline constexpr std::string_view kDocumentIds = "document_id", kPositions = "positions";

/// Which keys a query attends to: those of all conditions.
struct FlexMaskSpec {
  int64_t window = 0;          ///< itself and the `window - 1` keys before it; 0: all before it
  int64_t prefix = 0;          ///< also the first keys of the row, which attend to each other
  bool has_documents = false;  ///< of its own document; reads the buffer `document_id`
};
std::string MaskModText(const FlexMaskSpec& spec);

/// How scores change before the softmax.
struct FlexScoreSpec {
  double soft_cap = 0.0;    ///< c · tanh(score / c) (arXiv 2408.00118); 0: none
  int64_t alibi_heads = 0;  ///< adds (k - q) · 2^(-8 (h + 1) / heads) (arXiv 2108.12409); 0: none
};
std::string ScoreModText(const FlexScoreSpec& spec);

}  // namespace strata
