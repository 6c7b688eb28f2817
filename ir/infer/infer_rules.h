#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// What a rule reads of a call, as its operator's schema names it, and the types that it makes.
class InferredCall {
 public:
  InferredCall(Graph& graph, NodeId node) : graph_(graph), module_(graph.module()), node_(node) {}

  size_t num_results() const { return graph_.node(node_).num_results; }
  /// Null: absent.
  const Arg* FindArg(size_t position, std::string_view name) const;
  /// Null: not a tensor, or of unknown type.
  const Type* Tensor(size_t position) const;
  /// Of the tensors in a list.
  std::vector<const Type*> Tensors(size_t position) const;
  std::optional<int64_t> Int(size_t position, std::string_view name) const;
  bool Flag(size_t position, std::string_view name) const;
  /// A dimension of a tensor of `rank` dimensions, made positive.
  std::optional<size_t> DimOf(size_t position, std::string_view name, size_t rank) const;
  std::vector<size_t> DimsOf(size_t position, std::string_view name, size_t rank) const;
  /// A list of sizes; none: one of them is not known.
  std::optional<std::vector<DimId>> Sizes(size_t position, std::string_view name) const;
  /// The number of a literal or of a symbolic integer.
  std::optional<DimId> Size(const Arg& arg) const;
  std::optional<DType> Element(size_t position, std::string_view name) const;

  DimTable& dims() const { return module_.dims(); }
  DimId Product(const std::vector<DimId>& sizes) const;
  Type Like(const Type& like, std::vector<DimId> sizes) const;
  Type Like(const Type& like, std::vector<DimId> sizes, DType dtype) const;
  Type SymInt(DimId dim) const;

  Graph& graph() const { return graph_; }
  NodeId node() const { return node_; }

 private:
  const Type* TypeOf(const Arg& arg) const;

  Graph& graph_;
  Module& module_;
  const NodeId node_;
};

/// The types of the results of a call; empty: not known. Of more results than a node has, only
/// some are read.
using InferRule = std::vector<Type> (*)(const InferredCall& call);
/// Null: none.
InferRule InferRuleOf(std::string_view op);
/// Of what computes sizes: "_operator.add", "aten.sym_size.int".
InferRule NumberRuleOf(std::string_view op);
/// Of operators that take a tensor apart, join tensors or name elements otherwise: "permute".
InferRule ViewRuleOf(std::string_view base);

}  // namespace strata
