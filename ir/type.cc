#include "ir/type.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/checked_math.h"

namespace strata {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view short_name, torch_name;
  int64_t bytes;
};

/// Short names: torch/utils/_dtype_abbrs.py; those that PyTorch 2.11 no longer lists come from logs
/// of other versions.
constexpr std::array<DTypeInfo, 28> kDTypes = {{
    {DType::kU8, "u8", "torch.uint8", 1},
    {DType::kI8, "i8", "torch.int8", 1},
    {DType::kI16, "i16", "torch.int16", 2},
    {DType::kI32, "i32", "torch.int32", 4},
    {DType::kI64, "i64", "torch.int64", 8},
    {DType::kU16, "u16", "torch.uint16", 2},
    {DType::kU32, "u32", "torch.uint32", 4},
    {DType::kU64, "u64", "torch.uint64", 8},
    {DType::kF16, "f16", "torch.float16", 2},
    {DType::kF32, "f32", "torch.float32", 4},
    {DType::kF64, "f64", "torch.float64", 8},
    {DType::kBF16, "bf16", "torch.bfloat16", 2},
    {DType::kC32, "c32", "torch.complex32", 4},
    {DType::kC64, "c64", "torch.complex64", 8},
    {DType::kC128, "c128", "torch.complex128", 16},
    {DType::kBC32, "bc32", "torch.bcomplex32", 4},
    {DType::kBool, "b8", "torch.bool", 1},
    {DType::kBits1x8, "b1x8", "torch.bits1x8", 1},
    {DType::kBits2x4, "b2x4", "torch.bits2x4", 1},
    {DType::kBits4x2, "b4x2", "torch.bits4x2", 1},
    {DType::kBits8, "b8x1", "torch.bits8", 1},
    {DType::kBits16, "b16x1", "torch.bits16", 2},
    {DType::kF8E5M2, "f8e5m2", "torch.float8_e5m2", 1},
    {DType::kF8E4M3FN, "f8e4m3fn", "torch.float8_e4m3fn", 1},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", "torch.float8_e5m2fnuz", 1},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", "torch.float8_e4m3fnuz", 1},
    {DType::kF8E8M0FNU, "f8e8m0fnu", "torch.float8_e8m0fnu", 1},
    {DType::kF4E2M1FNX2, "f4e2m1fnx2", "torch.float4_e2m1fn_x2", 1},
}};

const DTypeInfo* FindDType(DType dtype) {
  const auto* const found = std::ranges::find(kDTypes, dtype, &DTypeInfo::dtype);
  return found == kDTypes.end() ? nullptr : found;
}

uint64_t MixNumber(uint64_t hash, int64_t value) {
  hash ^= static_cast<uint64_t>(value) + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDull;
}

uint64_t HashOf(const Type& type) {
  uint64_t hash = MixNumber(static_cast<uint64_t>(type.kind), static_cast<int64_t>(type.dtype));
  hash = MixNumber(hash, type.has_strides ? 1 : 0);
  hash = MixNumber(hash, type.requires_grad ? 1 : 0);
  for (int32_t id : {type.device.index, type.wrapper.index, type.dim.index, type.text.index})
    hash = MixNumber(hash, id);
  hash = MixNumber(hash, static_cast<int64_t>(type.sizes.size()));
  for (DimId size : type.sizes)
    hash = MixNumber(hash, size.index);
  for (DimId stride : type.strides)
    hash = MixNumber(hash, stride.index);
  for (const Placement& placement : type.placements) {
    hash = MixNumber(hash, static_cast<int64_t>(placement.kind));
    hash = MixNumber(hash, placement.dim);
    hash = MixNumber(hash, placement.split);
    hash = MixNumber(hash, placement.reduce.index);
  }
  return hash;
}

}  // namespace

std::string_view ShortName(DType dtype) {
  const DTypeInfo* info = FindDType(dtype);
  return info != nullptr ? info->short_name : "?";
}

std::string_view TorchName(DType dtype) {
  const DTypeInfo* info = FindDType(dtype);
  return info != nullptr ? info->torch_name : "?";
}

std::optional<DType> DTypeFromShortName(std::string_view name) {
  const auto* const found = std::ranges::find(kDTypes, name, &DTypeInfo::short_name);
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

std::optional<DType> DTypeFromTorchName(std::string_view name) {
  const auto* const found = std::ranges::find(kDTypes, name, &DTypeInfo::torch_name);
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

int64_t ByteSize(DType dtype) {
  const DTypeInfo* info = FindDType(dtype);
  return info != nullptr ? info->bytes : 0;
}

TypeTable::TypeTable(const TypeTable& other, StringTable& strings, DimTable& dims)
    : strings_(strings),
      dims_(dims),
      types_(other.types_),
      index_(other.index_),
      parsed_(other.parsed_) {}

TypeId TypeTable::Intern(const Type& type) {
  if (!type.placements.empty() && !type.wrapper.valid()) {
    Type wrapped = type;
    wrapped.wrapper = strings_.Intern("DTensor");
    return Intern(wrapped);
  }
  std::vector<TypeId>& bucket = index_[HashOf(type)];
  for (TypeId candidate : bucket) {
    if ((*this)[candidate] == type) return candidate;
  }
  const TypeId id{static_cast<int32_t>(types_.size())};
  types_.push_back(type);
  bucket.push_back(id);
  return id;
}

Type TypeTable::Contiguous(Type like, std::vector<DimId> sizes) const {
  like.has_strides = true;
  like.strides.assign(sizes.size(), dims_.Const(1));
  for (size_t dim = sizes.size(); dim-- > 1;)
    like.strides[dim - 1] = dims_.Mul(like.strides[dim], sizes[dim]);
  like.sizes = std::move(sizes);
  like.dim = {};
  return like;
}

TypeId TypeTable::Tensor(DType dtype, std::span<const int64_t> sizes, std::string_view device) {
  Type type;
  type.dtype = dtype;
  type.has_strides = true;
  type.device = strings_.Intern(device);
  type.strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    type.strides[i] = dims_.Const(stride);
    // PyTorch gives the strides of an empty tensor as if its empty sizes were 1.
    stride = CheckedMul(stride, std::max<int64_t>(sizes[i], 1)).value_or(stride);
  }
  for (int64_t size : sizes)
    type.sizes.push_back(dims_.Const(size));
  return Intern(type);
}

std::optional<int64_t> TypeTable::Bytes(TypeId id) const {
  const Type& type = (*this)[id];
  if (type.kind != TypeKind::kTensor || ByteSize(type.dtype) == 0) return std::nullopt;
  std::optional<int64_t> bytes = ByteSize(type.dtype);
  for (DimId size : type.sizes) {
    const std::optional<int64_t> hint = dims_.Hint(size);
    if (!hint || *hint < 0) return std::nullopt;
    bytes = CheckedMul(*bytes, *hint);
    if (!bytes) return std::nullopt;
  }
  return bytes;
}

}  // namespace strata
