#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tlparse-export/torch_trace/read/byte_source.h"

namespace strata {

/// The runs of a folder that PyTorch wrote with TORCH_COMPILE_DEBUG=1: of `torch_compile_debug`, of
/// the folder around it, of a `run_*` inside, or of the folder of one graph. A run is a process.
/// None: the folder is something else.
std::vector<std::string> DebugRunsOf(const std::string& folder);

/// A run as a log: for each graph that Inductor compiled a record with the folder's name
/// (`model__0_forward_1`), the pass `post_grad_graph` from `fx_graph_readable.py` to
/// `fx_graph_transformed.py`, `output_code.py` as `inductor_output_code`, and the other files as
/// artifacts. Errors: a file that cannot be read.
std::unique_ptr<ByteSource> OpenDebugRun(const std::string& run);

}  // namespace strata
