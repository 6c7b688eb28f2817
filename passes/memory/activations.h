#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace strata {

/// A result of a forward node that backward reads. Views count like other results: what they share
/// is in `owner`.
struct Activation {
  ValueId value;
  ValueId owner;                 ///< whose storage it is
  std::string op;                ///< that made it: of a wait, its collective
  std::string policy;            ///< SAVE, RECOMPUTE, RECOMPUTE!, OFFLOAD; SAVE* without a tag
  std::optional<int64_t> bytes;  ///< none: sizes that are not known
};

/// In program order. Values that `recompute` gave up are not read by backward any more; before it
/// they are, with what their tag says.
/// Source: torchtitan's log_activation_memory_policy.
std::vector<Activation> ListActivations(const Graph& graph);

/// The storages of the activations in memory of their own, with the most bytes that one of the
/// activations has in it. Not those of inputs and constants, which live anyway.
std::map<ValueId, int64_t> SavedStorages(const Graph& graph,
                                         const std::vector<Activation>& activations);
/// Their sum: what forward leaves for backward.
int64_t SavedBytes(const Graph& graph, const std::vector<Activation>& activations);

/// Activations of one layer, or of layers that are alike: the same operators, types up to the names
/// of symbols, and policies, in this order.
struct ActivationGroup {
  std::vector<int64_t> layers;          ///< ascending; empty: outside of layers
  std::vector<Activation> activations;  ///< of the first layer
  int64_t bytes = 0;                    ///< of one layer: each storage once, known sizes only
};

/// By first layer, what is outside of layers last.
std::vector<ActivationGroup> GroupByLayer(const Graph& graph,
                                          const std::vector<Activation>& activations);

}  // namespace strata
