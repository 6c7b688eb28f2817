#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "passes/flex/flex_program.h"

namespace strata {

/// Calls a body of flex attention on tensors that broadcast against each other: the operators of
/// the text, one by one. An evaluator is kept per thread, text and types of buffers.
///
/// Throws c10::Error for a body that AddFlexBody refuses, and what operators throw.
std::vector<at::Tensor> EvaluateFlexBody(std::string_view text, FlexRole role,
                                         std::span<const at::Tensor> inputs);

}  // namespace strata
