#pragma once

namespace strata {

/// Registers the operators that ranks communicate by, once per process:
///
///   _c10d_functional   kernels for all_reduce, all_gather_into_tensor, reduce_scatter_tensor,
///                      all_to_all_single, broadcast and wait_tensor between the ranks of a
///                      RankTeam, on tensors of GPUs those of DeviceCollectives; groups are axes of
///                      its mesh, `fsdp`, or several, `dp_replicate+fsdp`. Results are there when
///                      wait_tensor returns; without AsyncCollectives, when the launch returns.
///                      Overloads `out` write to a contiguous tensor. Sums add the ranks' values in
///                      the order of the ranks, in fp32 for narrower floats: equal bits on every
///                      rank and in every run. Shape functions for Meta tensors.
///   strata             `axis_index(str axis) -> Tensor`, the rank's coordinate: int64, `[]`.
///                      `axis_shard(Tensor x, int dim, str axis, int parts) -> Tensor`, a copy of
///                      the rank's chunk of x; `parts`, the size of the axis, divides the
///                      dimension.
///                      `redistribute(Tensor x, str placements) -> Tensor`, a copy: of placed
///                      graphs, in which every value is whole.
///
/// Kernels throw what RankTeam::CurrentGroup and RankGroup::Exchange throw, and for operands that
/// do not fit.
void RegisterCollectives();

}  // namespace strata
