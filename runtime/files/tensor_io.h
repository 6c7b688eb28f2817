#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/stated_constants.h"
#include "runtime/files/safetensors.h"

namespace strata {

using NamedTensors = std::map<std::string, at::Tensor>;

/// Every tensor of a safetensors file, copied. A tensor named `x#complex` is the complex tensor `x`
/// whose last size holds real and imaginary parts: the format has none.
Result<NamedTensors> LoadTensors(const std::string& path);
/// Writes aside and renames. Tensors that are undefined are left out.
Status SaveTensors(const std::string& path,
                   std::span<const std::pair<std::string, at::Tensor>> tensors);

/// How files call a type; none: they have no name for it.
std::optional<TensorDtype> StoredType(at::ScalarType type);

/// In memory of its own.
at::Tensor CopyOf(const TensorView& view);

/// `layers.0.attention.wo.weight`, or the name of the node if the placeholder has no `fqn`.
std::string InputName(const Graph& graph, NodeId placeholder);

/// What `graph` takes, in order and of the sizes and strides that it says: copies of those in
/// `given`, found by InputName or by the name of the node. Dynamic sizes are those of
/// `given`.
/// Errors: an input that is not there, or has another size or type.
Result<std::vector<at::Tensor>> TakeInputs(const Graph& graph, const NamedTensors& given);

/// Makes up what `graph` takes, as a function of name, type and `seed` alone: numbers in [0.25, 1),
/// small enough that sums over them stay finite and large enough to divide by, and integers 0 and
/// 1, which are indices of anything that has two rows. Dynamic sizes take their hints. Numbers of
/// both signs have the same magnitudes; they make gradients that do not cancel out, and no square
/// roots.
enum class Signs : uint8_t { kPositive, kBoth };
Result<NamedTensors> DrawInputs(const Graph& graph, uint64_t seed, Signs signs = Signs::kPositive);

/// Makes the constants among `inputs` the numbers that another graph states.
void SetStatedConstants(const StatedConstants& constants, NamedTensors& inputs);

}  // namespace strata
