#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/dim.h"
#include "ir/ids.h"

namespace strata {

enum class DType : uint8_t {
  kUnknown,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kU16,
  kU32,
  kU64,
  kF16,
  kF32,
  kF64,
  kBF16,
  kC32,
  kC64,
  kC128,
  kBC32,
  kBool,
  kBits1x8,
  kBits2x4,
  kBits4x2,
  kBits8,
  kBits16,
  kF8E5M2,
  kF8E4M3FN,
  kF8E5M2FNUZ,
  kF8E4M3FNUZ,
  kF8E8M0FNU,
  kF4E2M1FNX2,
};

/// "bf16", as FX annotations spell it.
std::string_view ShortName(DType dtype);
/// "torch.bfloat16".
std::string_view TorchName(DType dtype);
std::optional<DType> DTypeFromShortName(std::string_view name);
std::optional<DType> DTypeFromTorchName(std::string_view name);
/// Bytes of one element; 0 when unknown. Sub-byte types count the packed element.
int64_t ByteSize(DType dtype);

/// How one mesh axis holds a tensor.
struct Placement {
  enum class Kind : uint8_t { kReplicate, kShard, kPartial };
  Kind kind = Kind::kReplicate;
  int32_t dim = 0;  ///< kShard
  /// kShard: into how many parts inner axes cut the dimension before this one cuts each of them
  /// (torch's _StridedShard); 0: this axis cuts first.
  int32_t split = 0;
  StrId reduce;  ///< kPartial: "sum", "avg", …
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// `S(0)`, `_S(0, 2)`, `P(sum)` or `R`, as torch.distributed prints them.
void PrintPlacement(const Placement& placement, const StringTable& strings, std::string& out);

enum class TypeKind : uint8_t {
  kTensor,
  kSymInt,  ///< an integer of the program: `Sym(s0*4)`
  kOpaque,  ///< anything else, by the text of its annotation
};

/// The type of a value. Fields that a foreign text omits are unknown, not empty.
struct Type {
  TypeKind kind = TypeKind::kTensor;
  DType dtype = DType::kUnknown;
  bool has_strides = false;
  bool requires_grad = false;
  StrId device;                       ///< "cpu", "cuda:0"; none: unknown
  StrId wrapper;                      ///< "Parameter", "DTensor" (set by placements); none: plain
  DimId dim;                          ///< kSymInt: the number. kTensor: storage offset, none is 0
  std::vector<DimId> sizes, strides;  ///< elements, outermost first
  std::vector<Placement> placements;  ///< one per mesh axis
  StrId text;                         ///< kOpaque
  friend bool operator==(const Type&, const Type&) = default;
};

/// Interned types of one module.
class TypeTable {
 public:
  TypeTable(StringTable& strings, DimTable& dims) : strings_(strings), dims_(dims) {}
  TypeTable(const TypeTable& other, StringTable& strings, DimTable& dims);

  TypeId Intern(const Type& type);
  /// A tensor with constant sizes, contiguous strides.
  TypeId Tensor(DType dtype, std::span<const int64_t> sizes, std::string_view device);
  /// A tensor like `like` of other sizes, in memory of its own: contiguous strides, no offset.
  Type Contiguous(Type like, std::vector<DimId> sizes) const;
  const Type& operator[](TypeId id) const { return types_[static_cast<size_t>(id.index)]; }
  size_t size() const { return types_.size(); }

  /// Parses an FX annotation without its quotes: `bf16[256, 64][64, 1]cpu`, `Sym(s77)`,
  /// `DTensor(f32[4, 4][4, 1]cpu, S(0))`. Text of another form gives an opaque type that prints the
  /// same. Placements stand one after the other, as torch.distributed prints them: `S(0)P(sum)R`.
  TypeId Parse(std::string_view text);
  /// Storage offset and `requires_grad` are not part of an annotation.
  void Print(TypeId id, std::string& out) const;
  std::string ToString(TypeId id) const;
  /// As `Print`, but the same for all spellings of one size.
  void PrintCanonical(TypeId id, std::string& out) const;

  /// Elements × element size, under the symbols' hints; none when not known.
  std::optional<int64_t> Bytes(TypeId id) const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  class Parser;
  void Print(TypeId id, bool canonical, std::string& out) const;

  StringTable& strings_;
  DimTable& dims_;
  std::vector<Type> types_;
  std::unordered_map<uint64_t, std::vector<TypeId>> index_;
  // A graph repeats few annotations many times.
  std::unordered_map<std::string, TypeId, TextHash, std::equal_to<>> parsed_;
};

}  // namespace strata
