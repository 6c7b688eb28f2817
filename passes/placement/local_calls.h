#pragma once
#include <initializer_list>
#include <string_view>

#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// Makes the nodes that replace one of a lowered graph, at the cursor. Types are local.
class LocalCalls {
 public:
  LocalCalls(Rewriter& rewriter, NodeId node)
      : rewriter_(rewriter), graph_(rewriter.graph()), node_(node) {}

  ValueId Call(std::string_view op, std::initializer_list<Arg> args, const Type& type,
               std::initializer_list<NamedArg> kwargs = {});
  Type TypeOf(ValueId value) const { return module().types()[graph_.value(value).type]; }
  static Type Of(Type type, DType dtype) {
    type.dtype = dtype;
    return type;
  }
  /// A contiguous tensor like `like`, of other sizes.
  Type Contiguous(Type like, std::vector<DimId> sizes);

  /// indices − the index of the first element that the rank has of dimension `dim`, which
  /// `placements` cut into parts of `size` elements.
  ValueId Shifted(ValueId indices, int64_t size, const Placements& placements, int32_t dim,
                  const Mesh& mesh);
  /// `value` reduced by "sum" or "max" over the ranks among which `placements` cut `dim`.
  ValueId Reduced(ValueId value, std::string_view reduce, const Placements& placements, int32_t dim,
                  const Mesh& mesh);

  Rewriter& rewriter() { return rewriter_; }
  Module& module() const { return graph_.module(); }
  Graph& graph() const { return graph_; }
  NodeId node() const { return node_; }

 private:
  Rewriter& rewriter_;
  Graph& graph_;
  NodeId node_;
};

}  // namespace strata
