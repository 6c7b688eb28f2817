#include "diff/match/labels.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "diff/graph/arguments.h"
#include "diff/graph/hash.h"
#include "diff/graph/large_arrays.h"
#include "diff/graph/parallel.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// Hashes of what a module interns, each computed once.
class ModuleHashes {
 public:
  ModuleHashes(const Module& module, const TypeFields& fields, const SymbolNames& symbols)
      : module_(module),
        fields_(fields),
        symbols_(symbols),
        strings_(module.strings().size(), 0),
        types_(module.types().size(), 0),
        dims_(module.dims().size(), 0) {}

  uint64_t OfString(StrId id) {
    if (!id.valid()) return 0;
    uint64_t& hash = strings_[static_cast<size_t>(id.index)];
    if (hash == 0) hash = HashText(module_.str(id)) | 1;
    return hash;
  }

  uint64_t OfDim(DimId id) {
    if (!id.valid()) return 0;
    uint64_t& hash = dims_[static_cast<size_t>(id.index)];
    if (hash == 0) hash = symbols_.Hash(module_.dims(), id) | 1;
    return hash;
  }

  uint64_t OfType(TypeId id) {
    if (!id.valid()) return 0;
    uint64_t& hash = types_[static_cast<size_t>(id.index)];
    if (hash == 0) hash = HashType(module_.types()[id]) | 1;
    return hash;
  }

 private:
  uint64_t HashType(const Type& type) {
    uint64_t hash = Mix(static_cast<uint64_t>(type.kind) + 1, OfString(type.text));
    if (type.kind != TypeKind::kTensor) return Mix(hash, OfDim(type.dim));
    if (fields_.dtype) hash = Mix(hash, static_cast<uint64_t>(type.dtype));
    if (fields_.shape) {
      for (DimId size : type.sizes)
        hash = Mix(hash, OfDim(size));
      hash = Mix(hash, type.sizes.size());
    }
    if (fields_.strides) {
      for (DimId stride : type.strides)
        hash = Mix(hash, OfDim(stride));
    }
    if (fields_.device) hash = Mix(hash, OfString(type.device));
    if (fields_.placement) {
      for (const Placement& placement : type.placements) {
        hash = Mix(hash, static_cast<uint64_t>(placement.kind));
        hash = Mix(hash, static_cast<uint64_t>(placement.dim) ^ OfString(placement.reduce));
        hash = Mix(hash, static_cast<uint64_t>(placement.split));
      }
    }
    return hash;
  }

  const Module& module_;
  const TypeFields fields_;
  const SymbolNames& symbols_;
  std::vector<uint64_t> strings_, types_, dims_;
};

/// A small table that finds most labels again. Where every entity has a label of its own, a table
/// of all would cost more than the labels.
template <class IdType>
class Recent {
 public:
  /// What was added for this key, or `add()`.
  template <class Add>
  IdType Find(uint64_t key, Add&& add) {
    Known& known = known_[key >> (64 - kBits)];
    if (known.key != key || !known.id.valid()) known = {key, add()};
    return known.id;
  }

 private:
  static constexpr int kBits = 12;
  struct Known {
    uint64_t key = 0;
    IdType id;
  };
  std::vector<Known> known_ = std::vector<Known>(size_t{1} << kBits);
};

/// Fills the label vectors of `labels`.
class Labeller {
 public:
  Labeller(const Listing& listing, const TypeFields& fields, const SymbolNames& symbols,
           Labels& labels)
      : listing_(listing),
        module_(listing.root().module()),
        labels_(labels),
        hashes_(module_, fields, symbols),
        bodies_(module_.num_graphs(), 0),
        op_traits_(module_.strings().size()) {}

  void Run() {
    for (EntityId id : listing_.ids())
      Label(id);
  }

 private:
  void Label(EntityId id) {
    const Entity& entity = listing_[id];
    const Graph& graph = listing_.graph(id);
    const Node& node = graph.node(entity.node);
    const bool is_element = entity.element.valid();
    const uint64_t kind = Spread(static_cast<uint64_t>(entity.kind) + 1);
    const uint64_t op = OpOf(graph, node, entity.node, is_element, kind);
    const ValueId value = listing_.value(id);
    const uint64_t type = value.valid() ? hashes_.OfType(graph.value(value).type) : 0;
    has_literals_ = false;
    labels_.kind[id] = entity.kind;
    const FormId form = FormOf(Mix(kind, type), LiteralsOf(graph, entity));
    labels_.SetLabel(id, LabelOf({op, form, is_element ? 0 : NameOf(graph, node)}));
    if (entity.kind == EntityKind::kConstant) {
      labels_.AddAttribute(id, HashText(module_.str(node.op)));
    }
    labels_.piece[id] = is_element || IsPiece(graph, node);
    labels_.pure[id] = is_element || IsPure(graph, node);
    labels_.mutates[id] = !is_element && Mutates(graph, node);
    labels_.telling[id] = has_literals_ && !is_element;
  }

  FormId FormOf(uint64_t value, uint64_t arguments) {
    return known_forms_.Find(Mix(value, arguments),
                             [&] { return labels_.AddForm(value, arguments); });
  }

  LabelId LabelOf(const Labels::Hashes& hashes) {
    const auto form = static_cast<uint64_t>(hashes.form.index);
    return known_labels_.Find(Mix(Mix(hashes.op, form), hashes.name),
                              [&] { return labels_.AddLabel(hashes); });
  }

  uint64_t OpOf(const Graph& graph, const Node& node, NodeId id, bool is_element, uint64_t kind) {
    if (is_element) return Mix(kind, HashText("_operator.getitem") | 1);
    if (node.kind == NodeKind::kGetAttr) {
      // The attribute that holds a body is named by a counter; the body itself identifies it
      // better.
      const std::span<const Arg> args = graph.args(id);
      const bool is_body = !args.empty() && args[0].kind() == ArgKind::kGraph;
      return is_body ? Mix(kind, 1) : kind;
    }
    const uint64_t how = node.kind == NodeKind::kCallMethod   ? 1
                         : node.kind == NodeKind::kCallModule ? 2
                                                              : 0;
    return Mix(kind + how, hashes_.OfString(node.op));
  }

  /// The traits in an operator's name.
  struct OpTraits {
    bool piece = false, pure = true, mutates = false;
    uint64_t name = 0;  ///< Labels::name; 0: not known yet
  };

  const OpTraits& TraitsOf(const Graph& graph, StrId op) {
    OpTraits& known = op_traits_[static_cast<size_t>(op.index)];
    if (known.name == 0) {
      static constexpr std::string_view kPieces[] = {"getitem", "slice", "select", "narrow"};
      static constexpr std::string_view kImpure[] = {"rand",    "bernoulli",   "dropout", "normal",
                                                     "uniform", "multinomial", "empty",   "seed"};
      const std::string_view base = BaseName(graph.module().str(op));
      known.piece = std::ranges::find(kPieces, base) != std::end(kPieces);
      known.pure = std::ranges::none_of(kImpure, [&](std::string_view word) {
        return base.find(word) != std::string_view::npos;
      });
      known.mutates = strata::TraitsOf(graph.module().str(op)).mutates;
      known.name = HashText(base.ends_with('_') ? base.substr(0, base.size() - 1) : base) | 1;
    }
    return known;
  }

  uint64_t NameOf(const Graph& graph, const Node& node) {
    const bool calls = node.kind == NodeKind::kCall || node.kind == NodeKind::kCallMethod;
    return calls ? TraitsOf(graph, node.op).name : 0;
  }

  bool IsPiece(const Graph& graph, const Node& node) {
    return node.kind == NodeKind::kCall && TraitsOf(graph, node.op).piece;
  }

  bool IsPure(const Graph& graph, const Node& node) {
    return node.kind == NodeKind::kCall && TraitsOf(graph, node.op).pure;
  }

  bool Mutates(const Graph& graph, const Node& node) {
    return node.kind == NodeKind::kCall && TraitsOf(graph, node.op).mutates;
  }

  uint64_t LiteralsOf(const Graph& graph, const Entity& entity) {
    uint64_t hash = 0;
    if (entity.element.valid()) {
      // As a call `_operator.getitem(node, index)`, which other texts may have instead.
      hash = Mix(hash, OfArg(graph, Arg(entity.element)));
      hash = Mix(hash, OfArg(graph, Arg::Int(graph.result_index(entity.element))));
      return Mix(hash, 0);
    }
    const Node& node = graph.node(entity.node);
    if (node.kind == NodeKind::kGetAttr && node.num_args == 0) {
      hash = HashText(AttributeStem(module_.str(node.op)));
    }
    for (const Arg& arg : graph.args(entity.node))
      hash = Mix(hash, OfArg(graph, arg));
    // Keyword arguments have no order.
    uint64_t keywords = 0;
    for (size_t i = 0; i < node.num_kwargs; ++i) {
      const NamedArg kwarg = graph.kwarg(entity.node, i);
      keywords += Mix(hashes_.OfString(kwarg.name), OfArg(graph, kwarg.value));
    }
    return Mix(hash, keywords);
  }

  uint64_t OfArg(const Graph& graph, const Arg& arg) {
    has_literals_ |= arg.kind() != ArgKind::kValue;
    const uint64_t kind = Spread(static_cast<uint64_t>(arg.kind()) + 0x100);
    switch (arg.kind()) {
      case ArgKind::kNone:
      case ArgKind::kValue:
        return kind;
      case ArgKind::kInt:
        return Mix(kind, static_cast<uint64_t>(arg.as_int()));
      case ArgKind::kFloat:
        return Mix(kind, std::bit_cast<uint64_t>(arg.as_float()));
      case ArgKind::kBool:
        return Mix(kind, arg.as_bool() ? 1 : 0);
      case ArgKind::kDim:
        return Mix(kind, hashes_.OfDim(arg.dim()));
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kRaw:
        return Mix(kind, hashes_.OfString(arg.str()));
      case ArgKind::kDType:
        return Mix(kind, static_cast<uint64_t>(arg.dtype()));
      case ArgKind::kGraph:
        return Mix(kind, OfBody(arg.graph()));
      case ArgKind::kList:
      case ArgKind::kTuple:
      case ArgKind::kDict:
      case ArgKind::kCall: {
        uint64_t hash = kind;
        for (const Arg& element : graph.elements(arg))
          hash = Mix(hash, OfArg(graph, element));
        return Mix(hash, arg.span_size());
      }
    }
    return kind;
  }

  /// A body by what it computes: its nodes in order with their edges.
  uint64_t OfBody(GraphId id) {
    uint64_t& known = bodies_[static_cast<size_t>(id.index)];
    if (known != 0) return known;
    const Graph& body = module_.graph(id);
    std::vector<uint64_t> of_value(static_cast<size_t>(body.value_bound()), 0);
    uint64_t hash = 1;
    for (NodeId node_id : body.nodes()) {
      const Node& node = body.node(node_id);
      uint64_t of_node = OpOf(body, node, node_id, false, static_cast<uint64_t>(node.kind) + 1);
      of_node = Mix(of_node, LiteralsOf(body, {id, node_id, {}, EntityKind::kCompute}));
      body.ForEachOperand(node_id, [&](ValueId operand) {
        of_node = Mix(of_node, of_value[static_cast<size_t>(operand.index)]);
      });
      for (size_t i = 0; i < node.num_results; ++i) {
        const ValueId value = body.result(node_id, i);
        of_value[static_cast<size_t>(value.index)] =
            Mix(of_node + i, hashes_.OfType(body.value(value).type));
      }
      hash = Mix(hash, of_node);
    }
    // The recursion above may not move `bodies_`, but it may have written to it.
    return bodies_[static_cast<size_t>(id.index)] = hash | 1;
  }

  const Listing& listing_;
  const Module& module_;
  Labels& labels_;
  ModuleHashes hashes_;
  std::vector<uint64_t> bodies_;
  std::vector<OpTraits> op_traits_;  // by string
  Recent<FormId> known_forms_;
  Recent<LabelId> known_labels_;
  bool has_literals_ = false;  // of the entity at hand
};

/// Of all entities: nodes, and elements, which each read their node.
size_t NumOperands(const Listing& listing) {
  auto count = static_cast<size_t>(listing.size());
  for (const Listing::Scope& scope : listing.scopes()) {
    count -= static_cast<size_t>(scope.graph->num_nodes());
    for (const ValueId value : Ids<ValueId>(static_cast<size_t>(scope.graph->value_bound())))
      count += scope.graph->value(value).num_uses;
  }
  return count;
}

}  // namespace

std::string_view AttributeStem(std::string_view target) {
  if (target.find('.') != std::string_view::npos) return target;
  const size_t last = target.find_last_not_of("0123456789");
  return last == std::string_view::npos ? target : target.substr(0, last + 1);
}

TypeFields KnownTypeFields(const Listing& listing) {
  const Module& module = listing.root().module();
  std::vector<bool> seen(module.types().size(), false);
  TypeFields fields;
  for (EntityId id : listing.ids()) {
    const ValueId value = listing.value(id);
    if (!value.valid()) continue;
    const TypeId type_id = listing.graph(id).value(value).type;
    if (!type_id.valid() || seen[static_cast<size_t>(type_id.index)]) continue;
    seen[static_cast<size_t>(type_id.index)] = true;
    const Type& type = module.types()[type_id];
    if (type.kind != TypeKind::kTensor) continue;
    fields.shape = true;
    fields.dtype |= type.dtype != DType::kUnknown;
    fields.strides |= type.has_strides;
    fields.device |= type.device.valid();
    fields.placement |= !type.placements.empty();
  }
  return fields;
}

Labels::Labels(const Listing& listing, const TypeFields& fields, const SymbolNames& symbols) {
  const auto n = static_cast<size_t>(listing.size());
  AssignLarge(labels_, n, LabelId{});
  forms_.reserve(n);
  for (Column* column : {&op, &type, &name}) {
    column->labels_ = labels_.values().data();
    column->of_label_.reserve(n);  // what is not used takes no pages
  }
  for (FormColumn* column : {&value, &arguments}) {
    column->labels_ = labels_.values().data();
    column->forms_ = forms_.values().data();
  }
  for (auto* column : {&piece, &pure, &mutates, &telling})
    column->resize(n);
  AssignLarge(kind, n, EntityKind::kCompute);
  Labeller(listing, fields, symbols, *this).Run();
  AddEdges(listing);
}

FormId Labels::AddForm(uint64_t new_value, uint64_t new_arguments) {
  value.of_form_.Add(new_value);
  return arguments.of_form_.Add(new_arguments);
}

LabelId Labels::AddLabel(const Hashes& hashes) {
  forms_.Add(hashes.form);
  name.of_label_.Add(hashes.name);
  type.of_label_.Add(0);
  const LabelId label = op.of_label_.Add(0);
  SetOp(label, hashes.op);
  return label;
}

void Labels::SetOp(LabelId label, uint64_t new_op) {
  op.of_label_[label] = new_op;
  const FormId form = forms_[label];
  type.of_label_[label] = Mix(Mix(new_op, arguments.of_form_[form]), value.of_form_[form]);
}

uint64_t Labels::attribute(EntityId i) const {
  const auto found = std::ranges::lower_bound(attributes_, i, {}, &Attribute::constant);
  return found != attributes_.end() && found->constant == i ? found->target : 0;
}

void Labels::ForgetDetails() {
  value = {};
  arguments = {};
  name = {};
  forms_ = {};
  pure = telling = {};
  attributes_ = std::vector<Attribute>();  // `{}` would keep the memory
}

void Labels::ForgetHashes() {
  ForgetDetails();
  op = {};
  type = {};
  labels_ = {};
}

LabelledSides LabelSides(const Listing& before, const Listing& after) {
  const TypeFields fields = KnownTypeFields(before).And(KnownTypeFields(after));
  SymbolNames symbols(before, after);
  std::optional<Labels> of_before, of_after;
  AtOnce(
      static_cast<size_t>(before.size()), [&] { of_before.emplace(before, fields); },
      [&] { of_after.emplace(after, fields, symbols); });
  return {std::move(symbols), std::move(*of_before), std::move(*of_after)};
}

bool Labels::Reads(EntityId user, EntityId operand) const {
  const auto read = operands(user);
  const auto readers = users(operand);
  return read.size() <= readers.size()
             ? std::ranges::find(read, operand, &Edge::entity) != read.end()
             : std::ranges::find(readers, user, &Edge::entity) != readers.end();
}

void Labels::AddEdges(const Listing& listing) {
  const auto n = static_cast<size_t>(listing.size());
  AssignLarge(operand_begin_, n + 1, 0u);
  AssignLarge(user_begin_, n + 1, 0u);
  ReserveLarge(operands_, NumOperands(listing));
  for (EntityId id : listing.ids()) {
    const Entity& entity = listing[id];
    const auto add = [&](EntityId operand) { operands_.push_back(operand); };
    if (entity.element.valid()) {
      add(listing.Find(entity.graph, entity.node));
    } else {
      listing.graph(id).ForEachOperand(
          entity.node, [&](ValueId value) { add(listing.FindValue(entity.graph, value)); });
    }
    operand_begin_[static_cast<size_t>(id.index) + 1] = static_cast<uint32_t>(operands_.size());
  }
  // Operands are in any part of memory: prefetch those of later edges.
  constexpr size_t kNear = 12, kFar = 2 * kNear;
  const size_t num_edges = operands_.size();
  const auto row_of = [&](size_t edge) { return static_cast<size_t>(operands_[edge].index); };
  for (size_t edge = 0; edge < num_edges; ++edge) {
    if (edge + kNear < num_edges) __builtin_prefetch(&user_begin_[row_of(edge + kNear) + 1], 1);
    ++user_begin_[row_of(edge) + 1];
  }
  for (size_t i = 0; i < n; ++i)
    user_begin_[i + 1] += user_begin_[i];
  AssignLarge(users_, operands_.size(), Edge{});
  std::vector<uint32_t> next;
  ReserveLarge(next, n);
  next.assign(user_begin_.begin(), user_begin_.end() - 1);
  size_t edge = 0;
  for (EntityId i : ids()) {
    for (const auto& [operand, slot] : operands(i)) {
      if (edge + kFar < num_edges) __builtin_prefetch(&next[row_of(edge + kFar)], 1);
      if (edge + kNear < num_edges) __builtin_prefetch(&users_[next[row_of(edge + kNear)]], 1);
      users_[next[static_cast<size_t>(operand.index)]++] = {i, slot};
      ++edge;
    }
  }
}

}  // namespace strata
