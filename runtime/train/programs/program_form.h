#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/config/config.h"
#include "runtime/config/parameters.h"

namespace strata {

/// Ends the name of a complex constant in files: its last size holds real and imaginary parts.
inline constexpr std::string_view kComplexEnd = "#complex";

/// What the inputs and outputs of a joint graph of forward and backward are in a training.
///
///   inputs   parameters, constants; of int64 `[batch, seq]` tokens, labels and, where there is a
///            third, positions; `tangents_1`, the gradient of the loss
///   outputs  new values of constants, in the order of these; a scalar, the loss; gradients of
///            parameters, None for inputs without one
///
/// Outputs from the loss on that are as many as inputs and one (AOTAutograd's) belong to these one
/// by one. Others are gradients in the order of the parameters: an input whose sizes the next
/// gradient has is one. Which constant a new value is of, its descriptor says
/// (`InputMutationAOTOutput`); without descriptors it is the next one of its type.
struct ProgramForm {
  enum class Role : uint8_t { kParameter, kConstant, kBatch, kTangent };
  struct Input {
    Role role = Role::kParameter;
    size_t index = 0;  ///< among those of its role
    DType dtype = DType::kUnknown;
    std::vector<int64_t> sizes = {};
  };
  std::vector<Input> inputs;      ///< in the order of the placeholders
  std::vector<Input> attributes;  ///< constants that are attributes, in the order of their nodes
  std::vector<ParameterSpec> parameters, constants;  ///< as files name them
  std::vector<size_t> gradients;                     ///< per parameter: the output
  size_t loss = 0;                                   ///< the output
  std::vector<size_t> updated;  ///< constants whose new values are the outputs before the loss
  bool has_positions = false;
  std::vector<std::string> warnings;
};

/// Errors: another form of graph, sizes that are not constant or not those of `config`.
Result<ProgramForm> FormOf(const Graph& graph, const TrainConfig& config);

}  // namespace strata
