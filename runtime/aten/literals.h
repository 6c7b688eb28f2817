#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/function_schema.h>
#include <ATen/core/operator_name.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include "ir/type.h"

namespace strata {

// The spellings of the IR, which are FX's, for what ATen keeps as enums.

/// kUnknown for types that the IR has no name for.
DType ToDType(c10::ScalarType type);
/// REQUIRES: dtype is not kUnknown.
c10::ScalarType ToScalarType(DType dtype);
/// `f32`, for messages; what ATen says of types that the IR has no name for.
std::string_view ShortName(c10::ScalarType type);

/// `torch.strided`; empty for those without a name in Python.
std::string_view TorchName(c10::Layout layout);
/// `torch.preserve_format`.
std::string_view TorchName(c10::MemoryFormat format);
std::optional<c10::Layout> LayoutFromTorchName(std::string_view name);
std::optional<c10::MemoryFormat> MemoryFormatFromTorchName(std::string_view name);

/// `aten.mm.default`.
std::string OperatorName(const c10::FunctionSchema& schema);
/// The operator that `OperatorName` spells `op`; without an overload (`aten.clone`) the default
/// one.
c10::OperatorName SchemaName(std::string_view op);

}  // namespace strata
