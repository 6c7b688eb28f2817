#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "prove/foreign/program.h"
#include "prove/foreign/relation.h"
#include "prove/proof.h"

namespace strata::prove {

struct ForeignOptions {
  uint64_t seed = 1;
  size_t max_findings = 20;
  /// Axes over which code outside of the graphs reduces what they leave partial, and whether it
  /// takes means, as FSDP2 and DDP do, or sums.
  std::map<std::string, Term::Kind, std::less<>> reduced_outside = {};
};

/// Proves that ranks together compute what one device does, from the graphs that torch.compile
/// logged for both. `ranks`: of each rank, the same nodes but for literals.
///
/// The graphs of one device are evaluated once. Each rank is evaluated with its part of the same
/// inputs; outputs and gradients are compared by what DTensor says of them, or else as the inputs
/// are held and as their sizes show. Where a log leaves a choice, the choice under which all values
/// are equal is taken, and is one of `Proof::assumptions`.
///
/// Verdict as for Prove. A proof is of the mesh and sizes of the logs.
Proof ProveForeign(const CompiledProgram& single, std::span<const CompiledProgram> ranks,
                   const ForeignOptions& options);

}  // namespace strata::prove
