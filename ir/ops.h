#pragma once
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// What the system knows of an operator. Operators it does not know are legal and have no traits,
/// but names that follow ATen's rules imply some: `add_` and `.out` overloads mutate.
struct OpTraits {
  bool known = false;
  bool view = false;        ///< the result aliases the first operand
  bool mutates = false;     ///< writes to an operand (in-place, out=)
  bool effectful = false;   ///< must run even when its results are unused
  bool random = false;      ///< depends on the generator's state
  bool collective = false;  ///< all ranks of a group take part
};

/// Traits of `op` ("aten.view.default", "_c10d_functional.all_reduce.default").
OpTraits TraitsOf(std::string_view op);

/// Traits of the operator that a node calls; without a call, none. An operator that is not known,
/// and whose results have no type and no reader, is there for what it writes: to any operand.
OpTraits TraitsOf(const Graph& graph, NodeId node);

/// The operator without overload and namespace: "mm" of "aten.mm.default".
std::string_view BaseName(std::string_view op);
/// True when `op` is `base` in any overload: HasBase("aten.add.Tensor", "aten.add").
bool IsOverloadOf(std::string_view op, std::string_view base);

/// True when a node must stay though nothing uses its results: placeholders, outputs, and calls
/// that mutate, have effects, draw random numbers, or run code that is not known: methods,
/// submodules, functions of Python that are not operators, bodies that hold such a node.
/// Operators that are not known are trusted if they return something: PyTorch has them declare what
/// they write and do.
/// Source: torch.fx Node.is_impure, but for methods and functions of Python.
bool IsImpure(const Graph& graph, NodeId node);

}  // namespace strata
