#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/module.h"

namespace strata {

/// What an input of a traced program is to the program; attribute `input` of its placeholder.
enum class InputKind : uint8_t {
  kParameter,  ///< trained
  kBuffer,     ///< belongs to the model, is not trained
  kState,      ///< of the optimizer
  kGradient,
  kBatch,  ///< new in every step
};
std::string_view ToString(InputKind kind);  ///< "parameter", …

struct TraceInput {
  /// `layers.0.attention.wo.weight`: attribute `fqn` of the placeholder, whose node name has `_`
  /// for whatever a Python name may not hold.
  std::string name;
  InputKind kind = InputKind::kBatch;
  std::string module;  ///< path of the module that it belongs to
  at::Tensor example;  ///< a Meta tensor; requires_grad as the program needs it
};

/// What a program that is a list of calls throws around the exception of one
/// (std::throw_with_nested): which of them it was, as its author knows it.
class CallError : public std::exception {
 public:
  CallError(std::string op, std::string where) : op_(std::move(op)), where_(std::move(where)) {}
  const char* what() const noexcept override { return where_.c_str(); }
  const std::string& op() const { return op_; }
  const std::string& where() const { return where_; }

 private:
  std::string op_, where_;
};

/// Tensors that a program reads without having made them or got them as inputs, by the attribute
/// path of their kGetAttr nodes (`_tensor_constant0`, …). Shared by the graphs of one module.
using Constants = std::vector<std::pair<std::string, at::Tensor>>;

struct TraceRequest {
  std::string graph;  ///< name of the graph to add
  std::vector<TraceInput> inputs;
  /// Called once, with the examples. Calls ATen and autograd freely; returns the graph's outputs,
  /// undefined tensors included.
  std::function<std::vector<at::Tensor>(std::span<const at::Tensor> inputs)> program;
  std::string device = "cpu";  ///< where the graph will run: Meta devices are written as this one
  /// Data-dependent sizes (`ReadSizes`) do not exist while tracing; they are a function of this
  /// seed and their index. None: reading them is an error.
  std::optional<uint64_t> size_seed = std::nullopt;
};

/// Runs a program on Meta tensors and adds what it computes to `module`, op by op below autograd:
/// placeholders in the order of the inputs, calls in the order of execution, one list of outputs.
///
/// Arguments follow FX: positional ones up to the last that is not the default, keyword-only ones
/// that are not the default. Each node has the types of its results (sizes, strides, dtype, device,
/// offset), `alias_of` where a result shares an operand's storage, phase, module path and location
/// of the innermost scope (models/scope.h), and the autograd sequence number where a gradient can
/// flow. Uses of a tensor after an in-place operation are uses of that operation's result.
///
/// Backward nodes have phase kBackward and, as in torchtitan's graph_trainer, the module path and
/// location of the first forward node of their sequence number. A sum of gradients of a tensor that
/// is used several times has the attribute `is_gradient_acc` and the number of the function that
/// reads the sum.
///
/// Errors: kUnsupported for what has no graph (reading a value, an operator without Meta kernel, a
/// random generator), with operator, module path and source line. The module is then of no use.
/// Not reentrant within a thread.
Status Trace(Module& module, const TraceRequest& request, Constants& constants);

}  // namespace strata
