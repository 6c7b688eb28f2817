#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "ir/rewriter.h"
#include "passes/flex/flex_program.h"

namespace strata {

/// Writes calls of runtime/flex's operators, which take bodies as text, as PyTorch's higher-order
/// operators, which name bodies of the module (passes/flex/flex_node.h). Equal texts over equal
/// buffers are one body.
class FlexRecording {
 public:
  using TypeOf = std::function<TypeId(const at::Tensor&)>;
  using ToArg = std::function<Arg(const c10::IValue&)>;

  FlexRecording(Rewriter& rewriter, std::string_view device)
      : rewriter_(rewriter), device_(device) {}

  struct Call {
    std::string op;
    std::vector<Arg> args;
  };
  /// None: another operator. Adds bodies, and nodes that name them at the cursor. Throws TraceError
  /// for a body that has no program.
  std::optional<Call> Translate(std::string_view op, std::span<const c10::IValue> args,
                                const TypeOf& type_of, const ToArg& to_arg);

 private:
  Arg Body(const c10::IValue& text, FlexRole role, const c10::IValue& buffers,
           const TypeOf& type_of);
  Arg BlockMask(const c10::IValue& blocks, const c10::IValue& sizes, Arg mask_mod,
                const ToArg& to_arg);
  Arg Buffers(const c10::IValue& buffers, const ToArg& to_arg);

  Rewriter& rewriter_;
  std::string device_;
  std::map<std::string, ValueId> known_;  // by role, text and types of buffers
};

}  // namespace strata
