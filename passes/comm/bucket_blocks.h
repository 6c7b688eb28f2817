#pragma once
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Merges the collectives of parameters and gradients of each transformer block and direction into
/// one, and moves the merged ones so that they run beside the computation.
///
///   before  a0 = all_gather(p0)  w0 = wait(a0)  c0 = all_gather(q0)  x0 = wait(c0)
///           h0 = mm(x, w0)  h1 = mm(h0, x0)                                          layers.0
///           a1 = all_gather(p1)  w1 = wait(a1)  …                                    layers.1
///   after   b0 = all_gather(pack(p0, q0))  b1 = all_gather(pack(p1, q1))
///           W0 = wait(b0)  w0, x0 = unpack(W0)  h0 = mm(x, w0)  h1 = mm(h0, x0)      layers.0
///           W1 = wait(b1)  …                                                         layers.1
///
/// - Buckets are those of a plan, split by direction, kind, group, reduction and type. Collectives
///   of a bucket that depend on each other, or whose merging would close a cycle with another
///   bucket, form several. Members are packed in order of the modules of the parameters.
/// - The all-gather of the next block is launched before the wait for the one of this block; the
///   first one before the first product of its direction. So one block is gathered ahead.
/// - The wait for the reduction of a block moves behind the launch of the next one.
///
/// Results are bitwise equal. Cost is linear in nodes. A graph without backward nodes, and buckets
/// that exist already, stay as they are. Errors: a plan that cannot be read.
/// Source: torchtitan's joint_transformer_block_bucketing_reordering_pass; the order of members is
/// that of FSDP2.
class BucketTransformerBlocks final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "merge the collectives of each transformer block, and launch them one block ahead";

  struct Options {
    std::string plan;
    bool reorder = true;
    void Bind(OptionList& list);
  };
  explicit BucketTransformerBlocks(Options options) : options_(std::move(options)) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
