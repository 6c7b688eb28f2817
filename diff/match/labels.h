#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "diff/graph/hash.h"
#include "diff/graph/large_arrays.h"
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

/// Which label of one listing.
using LabelId = Id<struct LabelTag>;
/// What a label says but for the operator.
using FormId = Id<struct FormTag>;

/// How much of a node itself counts, see Labels.
enum class LabelKind : uint8_t { kOp, kLiterals, kType, kValue, kForm };

/// What a listing looks like to the matcher: per entity hashes of what it is, and its edges. No
/// names in it.
///
/// Many entities are alike: those that are equal in all hashes share a label, which has the hashes,
/// or a few. Labels that differ in the operator share a form.
struct Labels {
  /// `symbols`: names of symbols on this side that are other names on the other side.
  Labels(const Listing& listing, const TypeFields& fields, const SymbolNames& symbols = {});
  Labels(Labels&&) = default;

  size_t size() const { return kind.size(); }
  IdRange<EntityId> ids() const { return IdsOf(kind); }

  /// A hash per label, indexed by entity.
  class Column {
   public:
    uint64_t operator[](EntityId i) const {
      return of_label_[labels_[static_cast<size_t>(i.index)]];
    }

   private:
    friend Labels;
    const LabelId* labels_ = nullptr;  // by entity; of a vector, so it stays when Labels is moved
    IdVector<LabelId, uint64_t> of_label_;
  };
  /// A hash per form, indexed by entity.
  class FormColumn {
   public:
    uint64_t operator[](EntityId i) const {
      return of_form_[forms_[labels_[static_cast<size_t>(i.index)].index]];
    }

   private:
    friend Labels;
    const LabelId* labels_ = nullptr;  // as above
    const FormId* forms_ = nullptr;    // by label
    IdVector<FormId, uint64_t> of_form_;
  };
  IdVector<EntityId, EntityKind> kind;
  Column op;    ///< kind and target
  Column type;  ///< and the literals, with holes where operands stand, and the type of the value
  FormColumn value;      ///< kind and type of the value alone
  FormColumn arguments;  ///< the literals alone
  /// `op` and the literals.
  uint64_t literals(EntityId i) const { return Mix(op[i], arguments[i]); }
  /// Literals and type, whatever the target.
  uint64_t form(EntityId i) const { return Mix(arguments[i], value[i]); }
  uint64_t Of(LabelKind label, EntityId i) const {
    switch (label) {
      case LabelKind::kOp:
        return op[i];
      case LabelKind::kLiterals:
        return literals(i);
      case LabelKind::kType:
        return type[i];
      case LabelKind::kValue:
        return value[i];
      case LabelKind::kForm:
        break;
    }
    return form(i);
  }
  /// Of a constant: its whole target; else 0.
  uint64_t attribute(EntityId i) const;
  /// What a call's operator is named without library, overload and the mark of one in place; 0: no
  /// call of an operator.
  Column name;
  IdVector<EntityId, bool> piece;  ///< takes a part of its only operand: an element, a slice
  IdVector<EntityId, bool>
      pure;  ///< the same operands give the same value: no input, no random number
  IdVector<EntityId, bool> mutates;  ///< writes to an operand
  IdVector<EntityId, bool> telling;  ///< has literals that many other calls have not

  /// Frees what moves and patterns do not read: all but `kind`, `op`, `type`, `piece`, `mutates`
  /// and the edges.
  void ForgetDetails();
  /// Frees `type`.
  void ForgetTypes() { type = {}; }
  /// Frees all hashes.
  void ForgetHashes();
  /// Frees `name`, which synonyms alone read.
  void ForgetNames() { name = {}; }

  void AddAttribute(EntityId i, uint64_t target) { attributes_.push_back({i, target}); }
  LabelId label(EntityId i) const { return labels_[i]; }
  size_t num_labels() const { return op.of_label_.size(); }
  uint64_t op_of(LabelId label) const { return op.of_label_[label]; }
  /// The hashes of a label but for `type`, which follows from them.
  struct Hashes {
    uint64_t op = 0;
    FormId form;
    uint64_t name = 0;
  };
  FormId AddForm(uint64_t value, uint64_t arguments);
  LabelId AddLabel(const Hashes& hashes);
  void SetLabel(EntityId i, LabelId label) { labels_[i] = label; }
  /// Gives the entities of a label another target: `op`, `literals` and `type` change.
  void SetOp(LabelId label, uint64_t new_op);

  /// A user of an entity, or an operand: which entity, and at which operand slot.
  struct Edge {
    EntityId entity;
    int32_t slot;
  };
  /// Operands of an entity by slot: a list of edges in which the slot is the index.
  class Operands {
   public:
    class Iterator {
     public:
      using value_type = Edge;
      using difference_type = std::ptrdiff_t;
      using iterator_concept = std::forward_iterator_tag;
      Iterator() = default;
      Iterator(const EntityId* entities, size_t slot) : entities_(entities), slot_(slot) {}
      Edge operator*() const { return {entities_[slot_], static_cast<int32_t>(slot_)}; }
      Iterator& operator++() {
        ++slot_;
        return *this;
      }
      Iterator operator++(int) {
        Iterator old = *this;
        ++*this;
        return old;
      }
      friend bool operator==(const Iterator& a, const Iterator& b) { return a.slot_ == b.slot_; }

     private:
      const EntityId* entities_ = nullptr;
      size_t slot_ = 0;
    };
    explicit Operands(std::span<const EntityId> entities) : entities_(entities) {}

    Iterator begin() const { return {entities_.data(), 0}; }
    Iterator end() const { return {entities_.data(), entities_.size()}; }
    size_t size() const { return entities_.size(); }
    bool empty() const { return entities_.empty(); }
    Edge operator[](size_t slot) const { return {entities_[slot], static_cast<int32_t>(slot)}; }
    Operands first(size_t count) const { return Operands(entities_.first(count)); }

   private:
    std::span<const EntityId> entities_;
  };
  Operands operands(EntityId i) const { return Operands(Row(operand_begin_, operands_, i)); }
  std::span<const Edge> users(EntityId i) const { return Row(user_begin_, users_, i); }
  /// Prefetches what leads to the hashes and the users of an entity.
  void Prefetch(EntityId i) const {
    __builtin_prefetch(&labels_[i]);
    __builtin_prefetch(&user_begin_[static_cast<size_t>(i.index)]);
  }
  /// Whether `user` reads `operand` at any slot. An output may read, and an input may be read by,
  /// half of a graph: looks at the shorter list.
  bool Reads(EntityId user, EntityId operand) const;

 private:
  template <class T>
  static std::span<const T> Row(const std::vector<uint32_t>& begin, const std::vector<T>& edges,
                                EntityId i) {
    const auto row = static_cast<size_t>(i.index);
    return {edges.data() + begin[row], begin[row + 1] - begin[row]};
  }
  void AddEdges(const Listing& listing);

  struct Attribute {
    EntityId constant;
    uint64_t target;
  };
  IdVector<EntityId, LabelId> labels_;
  IdVector<LabelId, FormId> forms_;
  std::vector<Attribute> attributes_;                 // ascending: few entities are constants
  std::vector<uint32_t> operand_begin_, user_begin_;  // by entity, and the end
  std::vector<EntityId> operands_;
  std::vector<Edge> users_;
};

/// Labels of both sides that can be compared: of types what both sides have, and symbols by the
/// names that they have before.
struct LabelledSides {
  SymbolNames symbols;
  Labels before, after;
};
LabelledSides LabelSides(const Listing& before, const Listing& after);

}  // namespace strata
