#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "passes/compile/kernel.h"
#include "runtime/codegen/schedule.h"

namespace strata {

/// Writes the function of a kernel, in the order of its schedule. The languages differ in how they
/// walk the elements; an op is a constant `v<index>` in each of them.
class Emitter {
 public:
  /// REQUIRES: `kernel` and `name` outlive this.
  Emitter(const Kernel& kernel, std::string_view name)
      : kernel_(kernel), schedule_(MakeSchedule(kernel)), name_(name) {}
  virtual ~Emitter() = default;
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  /// The text of the function. REQUIRES: called once.
  std::string Run();

 protected:
  /// Writes the line that begins the function, up to and with its `{`.
  virtual void EmitHead() = 0;
  virtual void EmitBody() = 0;
  /// The expression of the value that an op with code "load" reads.
  virtual std::string LoadText(const Kernel::Op& op) const = 0;
  /// The address of the element that a store writes.
  virtual std::string StoreAddress(const Kernel::Store& store) const = 0;

  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  /// A line that ends in `{`; the lines up to `End` are indented.
  template <class... Args>
  void Begin(fmt::format_string<Args...> format, Args&&... args) {
    Line(format, std::forward<Args>(args)...);
    ++depth_;
  }
  void End();

  /// Declares the constants of ops, in order.
  void EmitOps(std::span<const int32_t> ops);
  void EmitOp(int32_t index);
  void EmitStores(std::span<const int32_t> stores);

  const Kernel& kernel() const { return kernel_; }
  const Schedule& schedule() const { return schedule_; }
  std::string_view name() const { return name_; }
  const Kernel::Op& Op(int32_t index) const { return kernel_.ops[static_cast<size_t>(index)]; }
  const Kernel::Access& AccessOf(const Kernel::Op& op) const {
    return kernel_.accesses[static_cast<size_t>(op.access)];
  }

 private:
  const Kernel& kernel_;
  const Schedule schedule_;
  const std::string_view name_;
  std::string text_;
  size_t depth_ = 0;
};

/// `preamble`, then a function `strata_kernel_<i>` for each kernel, as `function` writes it.
std::string SourceOf(std::string_view preamble, std::span<const Kernel> kernels,
                     std::string (*function)(const Kernel& kernel, std::string_view name));

}  // namespace strata
