#pragma once
#include <cstdint>
#include <string>

#include "ir/module.h"
#include "prove/values/call.h"

namespace strata::prove {

/// A hash of all that a call reads beside its literals: tensors of its arguments, of keywords and
/// of lists, and bodies.
uint64_t HashOfOperands(const Module& module, uint64_t hash, Call& call);

bool ReadsTensors(Call& call);

/// Replaces the elements of the tensors that a call reads, as an operator may that writes to all of
/// them: numbers by functions of `hash`, integers by each other, so that they stay indices.
void OverwriteOperands(uint64_t hash, Call& call);

/// A random value as the operator of the call draws it: `rand` draws numbers from 0 to 1.
Value AsDrawnBy(const Call& call, Value value);

/// The operator of a call without a definition: "mylib.scale_.default", also of
/// `auto_functionalized_v2(torch.ops.mylib.scale_.default, …)`, its form that does not write.
std::string UnknownOpOf(Call& call);

}  // namespace strata::prove
