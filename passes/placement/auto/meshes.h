#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strata {

/// The meshes of `ranks` ranks that have some of `axes` (fsdp, cp, tp, dp_replicate, ep), as
/// `Mesh::Parse` reads them, outermost axis first: all products of sizes, the inner axes ascending.
/// `ep`, which borrows ranks, has each size that divides them. Not all of them are possible for a
/// model.
std::vector<std::string> MeshesOf(int64_t ranks, std::span<const std::string> axes);

}  // namespace strata
