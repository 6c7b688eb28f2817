#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/fx/fx.h"

namespace strata {

/// A program that PyTorch writes to run a graph again: Inductor's `fx_graph_runnable`, and the
/// dumps of AutoParallel's overlap simulator.
///
///     class Repro(torch.nn.Module):
///         def __init__(self) -> None: …
///         def forward(self, primals_1, primals_2):
///             mm = torch.ops.aten.mm.default(primals_1, primals_2);  primals_1 = primals_2 = None
///             return (mm,)
///     def load_args(reader):
///         buf0 = reader.storage(None, 192, device=device(type='cuda', index=0))
///         reader.tensor(buf0, (6, 8), is_leaf=True)  # primals_1
///         …
///
/// `load_args` gives the types of the inputs; all others are inferred (ir/infer/infer_types.h).
struct FxProgram {
  FxDocument document;
  std::vector<NodeId> unknown;  ///< calls whose results have no type
};

bool LooksLikeFxProgram(std::string_view text);

/// Nothing of the program runs, and nothing but the class and `load_args` is read. Errors, with
/// `file:line:column`: those of ParseFx; an input that cannot be read; not as many as `forward`
/// takes.
Result<FxProgram> ParseFxProgram(std::string_view text, const FxOptions& options);

}  // namespace strata
