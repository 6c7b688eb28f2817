#pragma once
#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

/// Collectives between the ranks of a RankTeam. A launch begins where the operator is called, with
/// what it was called with, and may end on the rank's communication thread. Results go to `out`,
/// which is contiguous. Throws as RankTeam::CurrentGroup and RankGroup::Exchange.
namespace strata {

void LaunchAllGather(const at::Tensor& input, int64_t group_size, const std::string& group_name,
                     const at::Tensor& out);
void LaunchReduceScatter(const at::Tensor& input, const std::string& op, int64_t group_size,
                         const std::string& group_name, const at::Tensor& out);
/// Of large tensors each rank reduces a part and takes the other parts from the other ranks.
void LaunchAllReduce(const at::Tensor& input, const std::string& op, const std::string& group_name,
                     const at::Tensor& out);
void LaunchAllToAll(const at::Tensor& input, c10::SymIntArrayRef output_splits,
                    c10::SymIntArrayRef input_splits, const std::string& group_name,
                    const at::Tensor& out);
void LaunchBroadcast(const at::Tensor& input, int64_t source, const std::string& group_name,
                     const at::Tensor& out);

}  // namespace strata
