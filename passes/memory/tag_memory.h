#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/core/options.h"
#include "passes/core/pass.h"
#include "passes/memory/tags.h"

namespace strata {

/// The tag that a policy gives a forward node; called once per node, in program order.
using MemoryPolicy = std::function<MemoryTag(const Graph&, NodeId)>;

/// Tags the forward nodes of a graph as `policy` says, but for what every policy saves (see
/// TagMemory) and for `kept`, which are saved, too.
void ApplyMemoryPolicy(Graph& graph, MemoryPolicy policy, std::span<const NodeId> kept = {});

/// The nodes that give sharded parameters whole: waits for gathers, or what joins their parts.
/// Errors: those of UnshardOutput (passes/core/fsdp_patterns.h).
Result<std::vector<NodeId>> UnshardedParameters(const Graph& graph);

/// Whether copies of a forward node could differ from it, or no policy recomputes it: random
/// numbers, integers of the program, the output layer and the loss.
bool IsNeverRecomputed(const Graph& graph, NodeId node);
/// Whether a graph has backward nodes: what has none is not tagged.
bool HasBackward(const Graph& graph);

/// Tags each forward node: save its results for backward, or compute them again there.
///
///   before  n = norm(h)  q = mm(n, w)  …            // backward reads n and q
///   after   n = norm(h) {recompute=MUST_RECOMPUTE}  q = mm(n, w) {recompute=MUST_SAVE}
///
/// Only attributes change; the pass `recompute` does what they say.
///
/// `default` saves matrix products, attention and other expensive operators, and collectives that
/// reduce; `eager` the same, but of the matrix products of a layer only every second one; `full`
/// nothing but what `save` selects; `min_cut` the fewest bytes from which backward computes the
/// rest; `none` everything.
///
/// All policies save random numbers, integers of the program, what the next layer reads, and memory
/// that is written in a way that copies cannot repeat. The output layer and the loss have no tags:
/// their results are saved. `keep_unsharded` saves gathered parameters in addition. `override`
/// replaces what the policy says of single nodes. Graphs without backward are left alone.
/// Source: torchtitan's graph_trainer, tag_sac_policy and its policies.
class TagMemory final : public Pass {
 public:
  enum class Policy : uint8_t { kDefault, kEager, kFull, kMinCut, kNone };
  struct Options {
    Policy policy = Policy::kDefault;
    std::string save = {};
    std::string override_tags = {};
    bool keep_unsharded = false;
    void Bind(OptionList& list);
  };
  static constexpr std::string_view kSummary =
      "tag forward nodes: save their results for backward, or recompute them";

  TagMemory() = default;
  explicit TagMemory(Options options) : options_(std::move(options)) {}
  /// Errors: a selector or override that is not one, `save` with another policy than full;
  /// `min_cut`: results of unknown type that backward needs.
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

/// "default", "full", …
std::string_view ToString(TagMemory::Policy policy);

/// The policy of a name; none: no policy is called so.
std::optional<TagMemory::Policy> MemoryPolicyNamed(std::string_view name);

/// For messages: "default, eager, full, min_cut or none".
std::string MemoryPolicyNames();

}  // namespace strata
