#pragma once
#include <span>
#include <string_view>

#include "base/result.h"
#include "prove/values/call.h"

namespace strata::prove {

/// What an operator means.
struct OpDefinition {
  std::string_view name;  ///< without overload: "aten.add"
  Result<Values> (*evaluate)(Call& call);
  /// Moves elements and computes nothing: what is known of a tensor holds for what it becomes.
  bool moves_data = false;
  /// Computes with complex numbers, too, as what moves elements does. Others know only real ones.
  bool takes_complex = moves_data;
};

/// The definition of "aten.add.Tensor"; null: there is none. An operator that writes in place
/// ("aten.add_.Tensor") has that of the one that does not.
const OpDefinition* FindDefinition(std::string_view op);
/// All definitions, in order of names.
std::span<const OpDefinition> Definitions();

}  // namespace strata::prove
