#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "passes/placement/mesh.h"
#include "prove/foreign/relation.h"

namespace strata::prove {

/// What AOTAutograd's log says of a DTensor.
struct DTensorSpec {
  std::vector<MeshAxis> axes;      ///< of its mesh; names may be ""
  std::vector<std::string> texts;  ///< a placement for each axis, as printed: "Shard(dim=0)"
  std::vector<Term> terms;         ///< the same; empty if one of them is not known
};

/// Of a list of tensors, those that are DTensors, by position.
using DTensorSpecs = std::map<size_t, DTensorSpec>;

/// The list of this name in the text of a ViewAndMutationMeta or SubclassMeta of PyTorch 2.11:
///
///     subclass_inp_meta=[PlainTensorMeta(…), SubclassCreationMeta(… DTensorSpec(
///         mesh=DeviceMesh((tp=2), 'cpu', stride=(1,)), placements=(Shard(dim=0),), …) …)]
DTensorSpecs ReadDTensorSpecs(std::string_view text, std::string_view list);

}  // namespace strata::prove
