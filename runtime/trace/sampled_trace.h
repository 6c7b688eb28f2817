#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// A size of a program that takes other values while tracing than it has.
struct TracedSize {
  std::string name;    ///< for messages: "batch"
  std::string symbol;  ///< "s0"; empty: in the graph the size is `value`
  int64_t value = 0;   ///< what the size is now: hint of the symbol
  int64_t min = 1, max = INT64_MAX;
  /// What it is in each trace. All sizes have as many. Choose numbers that no other size has, far
  /// from 0 and 1, and for several sizes numbers that are not multiples of each other.
  std::vector<int64_t> samples;
};

/// Traces one program at several sample points, and adds one graph in which every number is the
/// expression of the sizes that it was at all of them (runtime/plan/size_fit.h): integers among
/// arguments, sizes, strides and offsets. Sizes that the program reads from data (`ReadSizes`) are
/// symbols u0, u1, …; arguments refer to the nodes that read them.
///
/// `request(sizes)` describes the program at these sizes. Sizes 0 and 1 can make operators take
/// other ways; those of the samples are right for them, too.
///
/// Errors (kUnsupported), with operator, module path and source line: what `Trace` refuses; a
/// program that does something else at other sizes; a number without such an expression.
Status TraceSampled(Module& module, std::span<const TracedSize> sizes,
                    const std::function<TraceRequest(std::span<const int64_t> sizes)>& request,
                    Constants& constants);

}  // namespace strata
