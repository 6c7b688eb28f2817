#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ir/graph.h"
#include "runtime/plan/device/device.h"

namespace strata {

/// A size that a program is about to read from data: number `index` of `count`, which add up to
/// `total`.
struct SizeRequest {
  int64_t index = 0, count = 0, total = 0;
};

/// Attributes of nodes, by name.
using Attributes = std::vector<std::pair<std::string_view, std::string>>;

/// Where the program that runs on this thread is: read by the tracer, which writes it on every node
/// that it records. Costs next to nothing without a tracer.
struct Scope {
  std::string module;  ///< path of the innermost module, "layers.3.attention.wq"
  Phase phase = Phase::kForward;
  std::source_location location;
  std::optional<SizeRequest> size_request;  ///< while `ReadSizes` reads
  Attributes attributes;                    ///< of the innermost AttributeScope
};

/// The current thread's scope.
const Scope& CurrentScope();

/// Enters a module for the lifetime of this object:
///
///     ModuleScope scope("attention");   // layers.3.attention
///
/// Nodes recorded meanwhile have that path and the source location of this line.
class [[nodiscard]] ModuleScope {
 public:
  explicit ModuleScope(std::string_view name,
                       std::source_location location = std::source_location::current());
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  size_t outer_length_;
  std::source_location outer_location_;
};

/// The path of a module that is called `name` where the program is.
std::string PathInside(std::string_view name);

/// Gives nodes attributes for the lifetime of this object, in place of those of the scope outside.
/// The nodes that compute their gradients have the same.
class [[nodiscard]] AttributeScope {
 public:
  /// REQUIRES: the names outlive the trace.
  explicit AttributeScope(Attributes attributes);
  ~AttributeScope();
  AttributeScope(const AttributeScope&) = delete;
  AttributeScope& operator=(const AttributeScope&) = delete;

 private:
  Attributes outer_;
};

/// The numbers in `counts` (int64 `[n]`), which add up to `total`: sizes that depend on data, like
/// the rows of each expert. The only values that a traced program may read: in its graph they are
/// symbols u0, u1, ….
std::vector<int64_t> ReadSizes(const at::Tensor& counts, int64_t total);

/// Enters a phase for the lifetime of this object.
class [[nodiscard]] PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase outer_;
};

/// The device that the programs of this thread are made for: which operators they call depends on
/// it. The CPU outside of every scope.
const DeviceTraits& CurrentTarget();

/// Makes a device the target for the lifetime of this object.
class [[nodiscard]] TargetScope {
 public:
  explicit TargetScope(DeviceTraits target);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;

 private:
  DeviceTraits outer_;
};

}  // namespace strata
