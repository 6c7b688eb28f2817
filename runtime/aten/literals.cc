#include "runtime/aten/literals.h"

#include <optional>
#include <utility>

#include "base/result.h"

namespace strata {
namespace {

using c10::ScalarType;

constexpr std::pair<DType, ScalarType> kTypes[] = {
    {DType::kU8, ScalarType::Byte},
    {DType::kI8, ScalarType::Char},
    {DType::kI16, ScalarType::Short},
    {DType::kI32, ScalarType::Int},
    {DType::kI64, ScalarType::Long},
    {DType::kU16, ScalarType::UInt16},
    {DType::kU32, ScalarType::UInt32},
    {DType::kU64, ScalarType::UInt64},
    {DType::kF16, ScalarType::Half},
    {DType::kF32, ScalarType::Float},
    {DType::kF64, ScalarType::Double},
    {DType::kBF16, ScalarType::BFloat16},
    {DType::kC32, ScalarType::ComplexHalf},
    {DType::kC64, ScalarType::ComplexFloat},
    {DType::kC128, ScalarType::ComplexDouble},
    {DType::kBool, ScalarType::Bool},
    {DType::kBits1x8, ScalarType::Bits1x8},
    {DType::kBits2x4, ScalarType::Bits2x4},
    {DType::kBits4x2, ScalarType::Bits4x2},
    {DType::kBits8, ScalarType::Bits8},
    {DType::kBits16, ScalarType::Bits16},
    {DType::kF8E5M2, ScalarType::Float8_e5m2},
    {DType::kF8E4M3FN, ScalarType::Float8_e4m3fn},
    {DType::kF8E5M2FNUZ, ScalarType::Float8_e5m2fnuz},
    {DType::kF8E4M3FNUZ, ScalarType::Float8_e4m3fnuz},
    {DType::kF8E8M0FNU, ScalarType::Float8_e8m0fnu},
    {DType::kF4E2M1FNX2, ScalarType::Float4_e2m1fn_x2},
};

constexpr std::pair<std::string_view, c10::Layout> kLayouts[] = {
    {"torch.strided", c10::Layout::Strided},      {"torch.sparse_coo", c10::Layout::Sparse},
    {"torch.sparse_csr", c10::Layout::SparseCsr}, {"torch.sparse_csc", c10::Layout::SparseCsc},
    {"torch.sparse_bsr", c10::Layout::SparseBsr}, {"torch.sparse_bsc", c10::Layout::SparseBsc},
    {"torch.jagged", c10::Layout::Jagged},
};

constexpr std::pair<std::string_view, c10::MemoryFormat> kMemoryFormats[] = {
    {"torch.contiguous_format", c10::MemoryFormat::Contiguous},
    {"torch.preserve_format", c10::MemoryFormat::Preserve},
    {"torch.channels_last", c10::MemoryFormat::ChannelsLast},
    {"torch.channels_last_3d", c10::MemoryFormat::ChannelsLast3d},
};

template <class Table, class T>
std::string_view NameIn(const Table& table, T value) {
  for (const auto& [name, candidate] : table) {
    if (candidate == value) return name;
  }
  return {};
}

template <class T, size_t kSize>
std::optional<T> FindIn(const std::pair<std::string_view, T> (&table)[kSize],
                        std::string_view name) {
  for (const auto& [candidate, value] : table) {
    if (candidate == name) return value;
  }
  return std::nullopt;
}

}  // namespace

DType ToDType(ScalarType type) {
  for (const auto& [dtype, scalar_type] : kTypes) {
    if (scalar_type == type) return dtype;
  }
  return DType::kUnknown;
}

ScalarType ToScalarType(DType dtype) {
  for (const auto& [candidate, scalar_type] : kTypes) {
    if (candidate == dtype) return scalar_type;
  }
  STRATA_CHECK(false, "dtype {} has no tensor type", ShortName(dtype));
}

std::string_view ShortName(ScalarType type) {
  const DType dtype = ToDType(type);
  return dtype == DType::kUnknown ? c10::toString(type) : ShortName(dtype);
}

std::string_view TorchName(c10::Layout layout) {
  return NameIn(kLayouts, layout);
}

std::string_view TorchName(c10::MemoryFormat format) {
  return NameIn(kMemoryFormats, format);
}

std::optional<c10::Layout> LayoutFromTorchName(std::string_view name) {
  return FindIn(kLayouts, name);
}

std::optional<c10::MemoryFormat> MemoryFormatFromTorchName(std::string_view name) {
  return FindIn(kMemoryFormats, name);
}

std::string OperatorName(const c10::FunctionSchema& schema) {
  std::string name = schema.name();
  if (const size_t colons = name.find("::"); colons != std::string::npos) {
    name.replace(colons, 2, ".");
  }
  return fmt::format("{}.{}", name,
                     schema.overload_name().empty() ? "default" : schema.overload_name());
}

c10::OperatorName SchemaName(std::string_view op) {
  const size_t first = op.find('.');
  const size_t last = op.rfind('.');
  if (first == std::string_view::npos) return {std::string(op), ""};
  if (first == last) return {fmt::format("{}::{}", op.substr(0, first), op.substr(first + 1)), ""};
  const std::string_view overload = op.substr(last + 1);
  return {fmt::format("{}::{}", op.substr(0, first), op.substr(first + 1, last - first - 1)),
          overload == "default" ? "" : std::string(overload)};
}

}  // namespace strata
