#pragma once
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Copies results tagged MUST_CPU_OFFLOAD to memory of the host, and back before backward reads
/// them. In between their memory is free.
///
///   before  a = mm(x, w) {layers.0, MUST_CPU_OFFLOAD}  r = relu(a) {layers.0}
///           b = mm(r, u) {layers.1}  …  d = … {backward layers.1}  g = mul(d, a) {backward
///           layers.0}
///   after   a = mm(x, w)  o = offload(a)  r = relu(a)
///           b = mm(r, u)  c = wait(o, a, r)                // defer=1: at the end of layers.1
///           …  l = reload(c, "cpu")  d = …                 // prefetch=1: a layer earlier
///           v = wait(l, c)  g = mul(d, v)
///
/// A wait for the copy to the host stands `defer` forward layers later, and after the last forward
/// reader; a reload starts `prefetch` backward layers earlier. Backward nodes that read views of
/// the result read clones of these views. Results of GPUs are copied on stream kTransferStream.
/// Results that backward does not read stay, and those that OffloadableBytes excludes. Values are
/// bitwise equal. Run it after `recompute`: then all readers are there. Cost is linear in nodes and
/// readers. Errors: a tag on a view. Source: torchtitan's apply_cpu_offload_pass.
class Offload final : public Pass {
 public:
  struct Options {
    int64_t prefetch = 1;
    int64_t defer = 1;
    void Bind(OptionList& list) {
      list.Add("prefetch", prefetch, "backward layers by which a copy back starts earlier");
      list.Add("defer", defer, "forward layers after which a copy to the host is awaited");
    }
  };
  static constexpr std::string_view kSummary =
      "copy tagged results to memory of the host and back before backward reads them";
  /// Of copies of a GPU; no other pass uses it.
  static constexpr uint16_t kTransferStream = 7;

  Offload() = default;
  explicit Offload(Options options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
