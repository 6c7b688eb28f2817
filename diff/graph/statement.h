#pragma once
#include <string>
#include <string_view>

#include "diff/graph/listing.h"

namespace strata {

/// A printed node as a person reads it, on one line: `mm_3 = aten.mm.default(x, w)`, `x (input)`,
/// `a = split[0]`. Characters that are not seen are written out.
std::string StatementText(const Listing& listing, EntityId id);

/// The type of its result, as an annotation spells it: `f32[4, 8]`; "" when it is not known.
std::string AnnotationText(const Listing& listing, EntityId id);

/// The path of its module: "layers.3.attention.wq"; "" when it is not known.
std::string ModuleText(const Listing& listing, EntityId id);

}  // namespace strata
