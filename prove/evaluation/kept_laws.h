#pragma once
#include "prove/ops/definitions.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Gives the results of a call that moves data the laws of its operands: for each kind of law that
/// all of its tensors have, the call on what they know is what its results know. `results` are
/// those of `definition` for `call`.
void KeepLaws(const OpDefinition& definition, Call& call, Values& results);

}  // namespace strata::prove
