#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

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

  /// indices − the index of the first element that the rank has of dimension `dim`, of `whole`
  /// elements, which `placements` cut.
  ValueId Shifted(ValueId indices, int64_t whole, const Placements& placements, int32_t dim,
                  const Mesh& mesh);
  /// Where parts end: from the rank's first element to the end of the part that the ranks of an
  /// axis share, for each axis that does not divide the part evenly. What a rank has at or beyond
  /// such a number is not an element of the part, but may be one of the next. Not of the outermost
  /// axis, whose ranks share the whole. `like`: on its device.
  std::vector<ValueId> Ends(const Type& like, int64_t whole, const Placements& placements,
                            int32_t dim, const Mesh& mesh);
  /// `value` reduced by "sum" or "max" over the ranks among which `placements` cut `dim`.
  ValueId Reduced(ValueId value, std::string_view reduce, const Placements& placements, int32_t dim,
                  const Mesh& mesh);

  Rewriter& rewriter() { return rewriter_; }
  Module& module() const { return graph_.module(); }
  Graph& graph() const { return graph_; }
  NodeId node() const { return node_; }

 private:
  /// An axis that cuts a dimension.
  struct Cut {
    size_t axis;
    int64_t shared;  ///< elements that its ranks share
    int64_t part;    ///< elements of a rank, or of what its ranks of inner axes share
  };
  static std::vector<Cut> CutsOf(int64_t whole, const Placements& placements, int32_t dim,
                                 const Mesh& mesh);
  /// indices − the first element of the rank in what the first of `cuts` shares.
  ValueId ShiftedBy(ValueId indices, std::span<const Cut> cuts, const Mesh& mesh);

  Rewriter& rewriter_;
  Graph& graph_;
  NodeId node_;
};

}  // namespace strata
