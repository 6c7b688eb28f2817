#pragma once
#include <cstdint>
#include <string>

#include "prove/values/call.h"

namespace strata::prove {

/// Whether a value is the expected one. None as an expectation is met by every value.
bool SameValue(const Value& expected, const Value& actual);

/// A hash of domain, sizes and elements: to look for equal tensors.
uint64_t ContentHash(const Tensor& tensor);

/// How a value differs from the expected one: "1/2 of the expected value", "other sizes: …", "13 of
/// 64 elements differ". REQUIRES: !SameValue.
std::string DescribeDifference(const Value& expected, const Value& actual);

/// n/d with small terms that `factor` is the image of; "": there is none.
std::string FractionText(Residue factor);

}  // namespace strata::prove
