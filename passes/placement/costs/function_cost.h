#pragma once
#include <span>
#include <string_view>

#include "passes/placement/costs/topology.h"

namespace strata {

/// Functions that take a core longer than to read an element and write it, by name, sorted.
std::span<const std::string_view> PricedFunctions();
bool IsPricedFunction(std::string_view name);

/// The time to compute what the operator `base`, "silu" or "_softmax", computes of each of
/// `elements`; 0: memory takes longer, or the device has no rate of it.
double FunctionUs(const DeviceSpec& device, std::string_view base, double elements);

/// Floating-point operations in a µs of the operator `base` on elements of type `dtype`; 0: the
/// device has no rate of it.
double FlopsRate(const DeviceSpec& device, std::string_view base, DType dtype);

}  // namespace strata
