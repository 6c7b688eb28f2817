#pragma once
#include <span>

#include "prove/ops/definitions.h"

namespace strata::prove {

// The definitions of operators, each part in the file of its name. A new definition is one row.

std::span<const OpDefinition> ArithmeticOps();
std::span<const OpDefinition> ChannelNormOps();
std::span<const OpDefinition> ConvolutionOps();
std::span<const OpDefinition> FunctionOps();
std::span<const OpDefinition> ViewOps();
std::span<const OpDefinition> IndexOps();
std::span<const OpDefinition> MemoryOps();
std::span<const OpDefinition> IntegerOps();
std::span<const OpDefinition> OrderOps();
std::span<const OpDefinition> RearrangeOps();
std::span<const OpDefinition> ReductionOps();
std::span<const OpDefinition> PiecewiseOps();
std::span<const OpDefinition> PoolingOps();
std::span<const OpDefinition> ProductOps();
std::span<const OpDefinition> SoftmaxOps();
std::span<const OpDefinition> LossOps();
std::span<const OpDefinition> AttentionOps();
std::span<const OpDefinition> BodyOps();
std::span<const OpDefinition> FlexOps();
std::span<const OpDefinition> DataSizeOps();
std::span<const OpDefinition> ExpertOps();
std::span<const OpDefinition> NormOps();
std::span<const OpDefinition> OptimizerOps();
std::span<const OpDefinition> RegionOps();
std::span<const OpDefinition> StatisticsOps();

}  // namespace strata::prove
