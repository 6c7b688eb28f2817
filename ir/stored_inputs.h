#pragma once
#include <map>
#include <string>

#include "ir/graph.h"

namespace strata {

/// By attribute of a graph: the placeholder of another that it holds.
using StoredInputs = std::map<std::string, NodeId>;

/// The inputs of `before` that `after` has as attributes.
///
/// A compiler that stores parameters with its program (AOTInductor) makes `arg0_1 = placeholder`
/// the attribute `0.weight`. Calls that read an attribute where they read an input of the same type
/// before state that the attribute holds this input. Calls are the same if they have one name and
/// operator. Attributes that two calls state otherwise, or that hold one input, are left out.
StoredInputs StoredInputsOf(const Graph& before, const Graph& after);

/// "the attribute 0.weight holds the input arg0_1". `input`: a placeholder of `before`.
std::string StoredInputText(const Graph& before, NodeId input, const std::string& attribute);

}  // namespace strata
