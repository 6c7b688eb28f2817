#pragma once
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

namespace strata {

// Flex attention by ATen's operators on the matrix of all scores: exact, and slow. Shapes as
// FlexAttention has them; logsumexp is `[batch, heads, seq]`, to base 2.
// Source: PyTorch's eager implementation, torch/_higher_order_ops/flex_attention.py.

std::tuple<at::Tensor, at::Tensor> FlexForward(const at::Tensor& query, const at::Tensor& key,
                                               const at::Tensor& value, std::string_view score_mod,
                                               std::string_view mask_mod, double scale,
                                               at::TensorList score_buffers,
                                               at::TensorList mask_buffers);

struct FlexSaved {
  at::Tensor query, key, value, out, logsumexp;
};
std::tuple<at::Tensor, at::Tensor, at::Tensor> FlexBackward(
    const FlexSaved& saved, const at::Tensor& gradient, std::string_view score_mod,
    std::string_view joint_graph, std::string_view mask_mod, double scale,
    at::TensorList score_buffers, at::TensorList mask_buffers);

/// Partial and full blocks of `[batch, heads, queries, keys]` scores in rows and columns: counts
/// and ascending indices, int32, on `device`; indices of other blocks follow.
std::vector<at::Tensor> BlocksOf(std::string_view mask_mod, at::IntArrayRef scores,
                                 at::IntArrayRef block, at::TensorList mask_buffers,
                                 c10::Device device);

}  // namespace strata
