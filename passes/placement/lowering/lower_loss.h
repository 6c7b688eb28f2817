#pragma once
#include <map>
#include <string_view>

#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// True for an operator that `LowerLoss` knows: cross entropy in its parts.
bool IsLoss(std::string_view base);

/// The labels of lowered losses, of all classes, by the node that reads those of own classes.
using LabelsOfLosses = std::map<NodeId, ValueId>;

/// Replaces a part of cross entropy whose classes, dimension `dim` of `placements`, are cut: ranks
/// exchange sums over classes instead of logits.
///
///   _log_softmax(x)                  m = max x over all ranks,  z = x − m
///                                    z − log Σ exp z, the sum over all ranks
///   _log_softmax_backward_data(g, y) g − exp(y) · Σ g, the sum over all ranks; where g is the
///                                    gradient of a sum of losses, what the labels say, and nothing
///                                    is exchanged
///   nll_loss_forward(y, label)       the same of own classes; other labels are ignored: a summand
///   nll_loss_backward(g, y, label)   likewise
///
/// Where ranks do not divide the classes, those beyond the last one have the logit −∞.
/// `classes`: of all ranks. `labels`: of the losses of the graph that are lowered; those of `node`
/// are added. REQUIRES: a graph's losses are lowered in execution order. Types of the graph are
/// local. Returns what readers of result 0 read. Source: loss parallelism of
/// torch.distributed.tensor; vocabulary-parallel cross entropy of Megatron-LM.
ValueId LowerLoss(Rewriter& rewriter, NodeId node, int64_t classes, const Placements& placements,
                  const Mesh& mesh, LabelsOfLosses& labels);

/// The value whose classes matter: log-probabilities, or logits.
ValueId ClassesOf(const Graph& graph, NodeId node);
/// The dimension of classes there.
int32_t ClassDim(const Graph& graph, NodeId node);

}  // namespace strata
