#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "passes/core/options.h"
#include "passes/core/pass.h"
#include "passes/expert/chunk_roots.h"
#include "passes/expert/chunk_symbols.h"

namespace strata {

/// Runs modules with experts chunk by chunk, so that one chunk's exchange of tokens between ranks
/// can overlap with another chunk's work:
///
///   before  y = moe(x)                                      x: f32[s0, 32, 64]
///   after   (x0, x1) = split_with_sizes(x, [s0//2, s0//2], 0)
///           y0 = moe(x0)   y1 = moe(x1)   y = cat([y0, y1], 0)
///
/// Backward is cut in the same way; gradients of parameters are the sums of those of the chunks.
/// Results are those of a program that calls the module once per chunk. Only values change
/// hands here: the order of nodes stays, each copy stands behind its original.
///
/// The graph must be traced with symbolic sizes, as a size that mentions the symbol is what marks
/// a tensor as cut; `concretize` makes them numbers again.
/// Source: torchtitan's graph_trainer, ep_chunk_pass.
class EpChunk final : public Pass {
 public:
  struct Options {
    ChunkOptions chunks;
    bool require_all_to_all = false;
    void Bind(OptionList& list) {
      list.Add("chunk_dim", chunks.chunk_dim,
               {{"batch", ChunkDim::kBatch}, {"seq", ChunkDim::kSeq}},
               "the dimension of the inputs that is cut");
      list.Add("module_fqn", chunks.module_fqn, "modules that are cut: layers.* or layers.*.moe");
      list.Add("num_chunks", chunks.num_chunks, "how many chunks, 2 or more");
      list.Add("uneven", chunks.uneven, "allow the first chunks to be one larger than the last");
      list.Add("num_static_inputs", chunks.num_static_inputs,
               "leading inputs that are state and never cut");
      list.Add("require_all_to_all", require_all_to_all,
               "fail where no selected module exchanges tokens between ranks");
    }
  };
  static constexpr std::string_view kSummary =
      "run modules with experts in chunks of the batch or sequence";

  EpChunk() = default;
  explicit EpChunk(Options options) : options_(std::move(options)) {}
  /// Errors: no symbolic size to cut, a size that the chunks do not divide, no module with experts,
  /// and what docs/expert.md lists.
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

/// Cuts the regions of `roots` in one graph, experts or not. Errors: as above; no region is found.
Status ChunkRegions(Graph& graph, const ChunkRoots& roots, const ChunkOptions& options);

}  // namespace strata
