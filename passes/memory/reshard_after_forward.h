#pragma once
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Lets backward gather sharded parameters again, whatever a memory policy says of activations:
/// tags gathers of parameters, and their waits, casts and views, which `recompute` then copies.
///
///   before  a = all_gather(p)  w = wait(a)  t = t(w)  y = mm(x, t)  …  g = mm(d, w) {backward}
///   after   a {PREFER_RECOMPUTE}  w {PREFER_RECOMPUTE}  t {PREFER_RECOMPUTE}  …
///
/// A gather belongs to a parameter if a chain of nodes with one input leads to it from a
/// placeholder. `consumers` adds operators that may follow: `aten.cat.default#0` is tagged when its
/// first argument reads a tagged result. A tag MUST_SAVE stays. Gathers of modules that `skip`
/// matches stay as they are: those that backward needs at once. Only attributes change; values are
/// bitwise equal. Cost is linear in nodes. Graphs without backward are left alone. Errors: invalid
/// patterns and consumers. Source: torchtitan's reshard-after-forward pass.
class ReshardParameters final : public Pass {
 public:
  struct Options {
    std::string skip = {};
    std::string consumers = {};
    void Bind(OptionList& list) {
      list.Add("skip", skip,
               "modules whose parameters stay whole, patterns separated by |: norm | lm_head");
      list.Add("consumers", consumers,
               "operators that may follow a gather, OP#ARGUMENT separated by |: "
               "aten.cat.default#0");
    }
  };
  static constexpr std::string_view kSummary =
      "tag gathers of parameters, so that backward gathers them again";

  ReshardParameters() = default;
  explicit ReshardParameters(Options options) : options_(std::move(options)) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
