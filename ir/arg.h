#pragma once
#include <cstdint>
#include <initializer_list>

#include "ir/ids.h"
#include "ir/type.h"

namespace strata {

enum class ArgKind : uint8_t {
  kNone,
  kValue,  ///< an operand
  kInt,
  kFloat,
  kBool,
  kDim,  ///< a symbolic integer
  kString,
  kDType,
  kDevice,  ///< "cuda:0"
  kRaw,     ///< a literal of no other kind, as printed: `torch.strided`, `Ellipsis`, `(2+3j)`
  kGraph,   ///< a graph of the module, for higher-order nodes
  kList,
  kTuple,
  kDict,  ///< keys and values alternate
  kCall,  ///< a call inside arguments, `slice(None, a, 2)`: first the name (kString), then its
          ///< arguments
};

/// One argument: a literal, an operand, or a span of arguments in the graph's pool (kList … kCall).
/// 16 bytes, copied freely; spans are meaningful only in the graph that made them. An operand in
/// the pool is also an element of the use list of its value, its copies are not.
class Arg {
 public:
  constexpr Arg() : int_(0) {}
  constexpr Arg(ValueId value)  // NOLINT: implicit
      : kind_(ArgKind::kValue), id_(value.index), use_{-1, -1} {}

  static constexpr Arg None() { return {}; }
  static constexpr Arg Int(int64_t v) {
    Arg a(ArgKind::kInt);
    a.int_ = v;
    return a;
  }
  static constexpr Arg Float(double v) {
    Arg a(ArgKind::kFloat);
    a.float_ = v;
    return a;
  }
  static constexpr Arg Bool(bool v) {
    Arg a(ArgKind::kBool);
    a.int_ = v;
    return a;
  }
  static constexpr Arg Dim(DimId v) { return Arg(ArgKind::kDim, v.index); }
  static constexpr Arg String(StrId v) { return Arg(ArgKind::kString, v.index); }
  static constexpr Arg DType(strata::DType v) {
    return Arg(ArgKind::kDType, static_cast<int32_t>(v));
  }
  static constexpr Arg Device(StrId v) { return Arg(ArgKind::kDevice, v.index); }
  static constexpr Arg Raw(StrId v) { return Arg(ArgKind::kRaw, v.index); }
  static constexpr Arg Graph(GraphId v) { return Arg(ArgKind::kGraph, v.index); }
  static constexpr Arg Span(ArgKind kind, uint32_t begin, uint32_t size) {
    Arg a(kind);
    a.span_ = {begin, size};
    return a;
  }

  constexpr ArgKind kind() const { return kind_; }
  constexpr bool is_value() const { return kind_ == ArgKind::kValue; }
  constexpr bool is_none() const { return kind_ == ArgKind::kNone; }
  constexpr bool is_span() const { return kind_ >= ArgKind::kList; }

  /// Each accessor REQUIRES the kind of its name.
  constexpr ValueId value() const { return {id_}; }
  constexpr int64_t as_int() const { return int_; }
  constexpr double as_float() const { return float_; }
  constexpr bool as_bool() const { return int_ != 0; }
  constexpr DimId dim() const { return {id_}; }
  constexpr StrId str() const { return {id_}; }  ///< kString, kDevice, kRaw
  constexpr strata::DType dtype() const { return static_cast<strata::DType>(id_); }
  constexpr GraphId graph() const { return {id_}; }
  constexpr uint32_t span_begin() const { return span_.begin; }
  constexpr uint32_t span_size() const { return span_.size; }

 private:
  friend class Graph;
  friend class Rewriter;

  constexpr explicit Arg(ArgKind kind) : kind_(kind), int_(0) {}
  constexpr Arg(ArgKind kind, int32_t id) : kind_(kind), id_(id), int_(0) {}

  struct Slice {
    uint32_t begin, size;
  };
  /// Slots before and behind it in the use list. Before the first stands the last, so that a value
  /// needs to know the first alone; behind the last stands none, -1.
  struct UseLink {
    int32_t prev, next;
  };

  static constexpr int kUserBits = 28;
  NodeId user() const { return {static_cast<int32_t>(user_)}; }
  void SetUser(NodeId user) { user_ = static_cast<uint32_t>(user.index) & ((1u << kUserBits) - 1); }

  ArgKind kind_ : 32 - kUserBits = ArgKind::kNone;
  uint32_t user_ : kUserBits = 0;  // of an operand in the pool: the node that reads it
  int32_t id_ = -1;
  union {
    int64_t int_;
    double float_;
    Slice span_;
    UseLink use_;  // of an operand
  };
};
static_assert(sizeof(Arg) == 16);

/// A keyword argument.
struct NamedArg {
  StrId name;
  Arg value;
};

}  // namespace strata
