#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "diff/code/code_diff.h"

namespace strata {

/// Whether a record of a log with this name holds generated code: `inductor_output_code`,
/// `inductor_aot_wrapper_code`, `inductor_aot_kernel_code`.
bool IsGeneratedCode(std::string_view record);

/// What such a record with this text is named: two of a compilation, one of them for the backward
/// graph, have one name in a log.
std::string NameOfCode(std::string_view record, std::string_view text);

/// The id of the graph that it was generated from: `0_forward` of `# AOT ID: ['0_forward']`, with
/// which Inductor begins Python. "": the text does not say.
std::string AotIdOfCode(std::string_view text);

/// Whether a record with this name maps kernels to nodes of the post-grad graph. Inductor logs it
/// behind the code.
bool MapsKernels(std::string_view record);

/// What such a record says, in order of the code; nothing where it cannot be read.
std::vector<KernelCall> ReadKernelCalls(std::string_view json);

}  // namespace strata
