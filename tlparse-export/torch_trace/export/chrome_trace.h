#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata {

/// An interval of a trace of PyTorch's profiler (Chrome's JSON, as `export_chrome_trace` writes
/// it).
struct ChromeEvent {
  enum class Kind : uint8_t { kCpu, kKernel };
  Kind kind = Kind::kCpu;  ///< kKernel: on a device
  std::string name;
  double begin_us = 0, duration_us = 0;
  int64_t thread = 0;
  /// Joins a kernel with the operator of the CPU that launched it; -1: none.
  int64_t external = -1;
  double end_us() const { return begin_us + duration_us; }
};

/// The complete events of operators, kernels and annotations, in order of their begin. Errors: no
/// JSON of this form.
Result<std::vector<ChromeEvent>> ReadChromeTrace(std::string_view text, std::string_view path);

/// The calls of a compiled graph in a trace, and what ran in them.
struct CompiledCalls {
  std::string key;  ///< the graph's key in the compiler's cache; without a cache, what ran
  int64_t calls = 0;
  struct Item {
    std::string name;  ///< of a kernel that the compiler wrote, or of an operator, `aten::mm`
    double us = 0;     ///< of all calls together
    /// How often it ran in each call, if that is the same in all; else 0.
    int64_t per_call = 0;
    std::vector<double> us_of_place;  ///< by place in a call, if per_call > 0
  };
  std::vector<Item> items;  ///< by name
  double us = 0;            ///< all items
  /// On the CPU: of the calls, without what ran in them: kernels that the profiler did not see.
  double unseen_us = 0;
};

/// What ran in each compiled graph, in order of their first calls: kernels of a device where there
/// are some, else operators and kernels on the CPU, without those inside of others.
std::vector<CompiledCalls> FindCompiledCalls(const std::vector<ChromeEvent>& events);

}  // namespace strata
