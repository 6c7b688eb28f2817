#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "diff/graph/listing.h"
#include "diff/graph/symbols.h"

namespace strata {

/// Which properties of types are known on both sides of a diff. A property that only one side
/// prints is unknown on the other, and must not distinguish nodes.
struct TypeFields {
  bool dtype = false, shape = false, strides = false, device = false, placement = false;

  TypeFields And(const TypeFields& other) const {
    return {dtype && other.dtype, shape && other.shape, strides && other.strides,
            device && other.device, placement && other.placement};
  }
};

/// The properties that any value of the listing has.
TypeFields KnownTypeFields(const Listing& listing);

/// The target of an attribute without the number that a tracer counted up: `_tensor_constant` of
/// `_tensor_constant3`. Attributes of modules (`layers.0.weight`) stay whole.
std::string_view AttributeStem(std::string_view target);

/// What a listing looks like to the matcher: per entity hashes of what it is, and its edges. No
/// names in it. Indices are EntityId::index.
struct Labels {
  /// `symbols`: names of symbols on this side that are other names on the other side.
  Labels(const Listing& listing, const TypeFields& fields, const SymbolNames& symbols = {});

  int32_t size() const { return static_cast<int32_t>(kind.size()); }

  std::vector<EntityKind> kind;
  std::vector<uint64_t> op;         ///< kind and target
  std::vector<uint64_t> literals;   ///< and the literals, with holes where operands stand
  std::vector<uint64_t> type;       ///< and the type of the value
  std::vector<uint64_t> value;      ///< kind and type of the value alone
  std::vector<uint64_t> arguments;  ///< the literals alone
  std::vector<uint64_t> attribute;  ///< of a constant: its whole target; else 0
  std::vector<uint64_t> form;       ///< literals and type, whatever the target
  /// What a call's operator is named without library, overload and the mark of one in place; 0: no
  /// call of an operator.
  std::vector<uint64_t> name;
  std::vector<bool> piece;    ///< takes a part of its only operand: an element, a slice
  std::vector<bool> pure;     ///< the same operands give the same value: no input, no random number
  std::vector<bool> telling;  ///< has literals that many other calls have not

  /// Gives the entity another target: `op`, `literals` and `type` change.
  void SetOp(int32_t i, uint64_t new_op);

  /// A user of an entity, or an operand: which entity, and at which operand slot.
  struct Edge {
    int32_t entity;
    int32_t slot;
  };
  std::span<const Edge> operands(int32_t i) const { return Row(operand_begin_, operands_, i); }
  std::span<const Edge> users(int32_t i) const { return Row(user_begin_, users_, i); }
  /// Whether `user` reads `operand` at any slot. An output may read, and an input may be read by,
  /// half of a graph: looks at the shorter list.
  bool Reads(int32_t user, int32_t operand) const;

 private:
  static std::span<const Edge> Row(const std::vector<int32_t>& begin,
                                   const std::vector<Edge>& edges, int32_t i) {
    const auto row = static_cast<size_t>(i);
    return {edges.data() + begin[row], static_cast<size_t>(begin[row + 1] - begin[row])};
  }
  void AddEdges(const Listing& listing);

  std::vector<int32_t> operand_begin_, user_begin_;
  std::vector<Edge> operands_, users_;
};

/// Labels of both sides that can be compared: of types what both sides have, and symbols by the
/// names that they have before.
struct LabelledSides {
  SymbolNames symbols;
  Labels before, after;
};
LabelledSides LabelSides(const Listing& before, const Listing& after);

}  // namespace strata
