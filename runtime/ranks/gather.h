#pragma once
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runtime/ranks/sharding.h"

namespace strata {

/// Ranks that follow each other.
struct RankRange {
  size_t first = 0, count = 0;
};

/// The whole of a tensor that `ranks` hold as `sharding` says, on rank 0, in the CPU's memory;
/// undefined on the other ranks. Every rank of the run calls it, on its thread, with its part or,
/// if it is none of `ranks`, an undefined one. `what` names the tensor in messages. Throws as
/// RankGroup::Exchange.
at::Tensor GatherOnFirst(const Sharding& sharding, const at::Tensor& part, std::string_view what,
                         RankRange ranks);

/// Throws c10::Error unless every rank calls it with the same text: `what` names it, and the first
/// lines that differ are shown.
void CheckSameOnRanks(std::string_view what, std::string_view text);

/// Whether any rank calls it with true. Throws as RankGroup::Exchange.
bool IsTrueOnAnyRank(bool mine, std::string_view what);

}  // namespace strata
