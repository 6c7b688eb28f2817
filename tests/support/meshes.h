#pragma once
#include <string_view>

#include "passes/placement/mesh.h"
#include "tests/support/graphs.h"

namespace strata::testing {

inline Mesh MeshOf(std::string_view text) {
  return OrDie(Mesh::Parse(text));
}

}  // namespace strata::testing
