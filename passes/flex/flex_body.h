#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/flex/flex_program.h"

namespace strata {

// Bodies of flex attention travel as FX text: a class with a `forward`. That is what a user writes,
// what the operators of runtime/flex take as an argument, and what a graph prints.

/// The score_mod that returns the score as it is.
extern const std::string_view kIdentityScoreMod;

/// The names of the buffers that a body reads: its inputs after the scalars. Errors: no graph in
/// the text, too few inputs; with `file`.
Result<std::vector<std::string>> FlexBufferNames(std::string_view text, FlexRole role,
                                                 std::string_view file);

/// Adds the body that `text` describes to `module`, as a graph named `name`. Its scalars get types
/// on `device`, its buffers the given ones, in order. Errors: as MakeFlexProgram; no graph in the
/// text, another number of buffers.
Result<GraphId> AddFlexBody(Module& module, std::string_view text, FlexRole role,
                            std::string_view name, std::span<const TypeId> buffers,
                            std::string_view device);

/// The text of a body, from which AddFlexBody makes an equal one.
std::string FlexBodyText(const Graph& body);

/// The derivative of a score_mod, as a body with role kJoint: it returns the gradient of the score,
/// and None for other inputs. Gradients at ties of maximum and minimum are ATen's.
/// Errors: as MakeFlexProgram.
Result<std::string> JointText(std::string_view score_mod);

}  // namespace strata
