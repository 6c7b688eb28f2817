#pragma once
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/ids.h"

namespace strata {

/// The attribute of an input that holds the path of its parameter.
inline constexpr std::string_view kPathKey = "fqn";

/// The path of the parameter or buffer that an input or a constant states: `layers.0.wq.weight`.
///
///  - the attribute `fqn`;
///  - the name of an input of Dynamo:
///  `L_self_modules_layers_modules_0_modules_wq_parameters_weight_`;
///  - the descriptor of an input of AOTAutograd: `ParamAOTInput(target='layers.0.wq.weight')`;
///  - the name of an input of torch.export, `p_layers_0_wq_weight`, in which only the dots around
///    numbers can be distinguished from underscores: `layers.0.wq_weight`;
///  - the target of an attribute of the module: `self.layers.0.wq.weight`.
///
/// "": it states none.
std::string StatedPath(const Graph& graph, NodeId node);

/// The module that holds what is at a path: `layers.0.wq` of `layers.0.wq.weight`.
std::string_view ModuleOfPath(std::string_view path);

}  // namespace strata
