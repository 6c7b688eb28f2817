#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "ir/rewriter.h"
#include "runtime/trace/flex_recording.h"
#include "runtime/trace/scope.h"
#include "runtime/trace/tracer.h"

namespace strata {

/// Where the program stands when an operator is called.
struct CallSite {
  Phase phase = Phase::kForward;
  std::string module;
  LocId loc;
  Attributes attributes;  ///< of forward and loss
  /// Backward: of the function that runs, or for the engine's own operations of the one before.
  int32_t seq_nr = -1;
  bool by_engine = false;  ///< backward, but in no function: the engine fits or sums gradients
};

/// What cannot be traced, thrown through ATen and autograd to `Trace`.
class TraceError final : public std::exception {
 public:
  explicit TraceError(Error error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message().c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// Attributes of a node that reads a data-dependent size: its value while tracing, and its index
/// among the sizes that are read together. Only TraceSampled sees them.
inline constexpr std::string_view kSampledSize = "sampled_size", kSizeIndex = "size_index";

/// Turns the calls of one program into nodes. Keeps every tensor it has seen alive, so that the
/// address of a tensor or storage means one tensor for the lifetime of the recorder.
class Recorder {
 public:
  Recorder(Graph& graph, std::string_view device, Constants& constants);

  void AddInput(const TraceInput& input);
  /// The call's arguments, before it runs. Returns the node.
  NodeId Begin(const c10::OperatorHandle& op, std::span<const c10::IValue> args,
               const CallSite& site);
  /// Its results, after.
  void End(NodeId node, std::span<const c10::IValue> results);
  /// Its result, a data-dependent size: a symbol in the graph, `sampled` while tracing.
  void EndSize(NodeId node, std::string_view symbol, int64_t index, int64_t sampled);
  /// A backward function of that number reads `gradient`.
  void ReadByBackward(const at::Tensor& gradient, int32_t seq_nr);
  void AddOutputs(std::span<const at::Tensor> outputs);
  /// What is known only when all nodes are there: names of elements, origins of backward nodes.
  void Finish();

 private:
  /// What makes two tensors the same view of the same memory.
  using ViewKey =
      std::tuple<const void*, std::vector<int64_t>, std::vector<int64_t>, int64_t, c10::ScalarType>;
  struct View {
    ValueId value;
    std::vector<const c10::TensorImpl*> tensors;
  };

  static ViewKey KeyOf(const at::Tensor& tensor);
  /// The value that `tensor` holds now; a new constant if no node made it.
  ValueId ValueOf(const at::Tensor& tensor);
  void Define(const at::Tensor& tensor, ValueId value);
  /// `tensor`, known before, holds `value` from here on.
  void Redefine(const at::Tensor& tensor, ValueId value);
  /// `tensor` becomes another view: writes to those that stay do not redefine it.
  void LeaveView(const at::Tensor& tensor);
  ValueId AddConstant(const at::Tensor& tensor);

  Arg ToArg(const c10::IValue& value, const c10::Type& type);
  Arg TensorArg(const at::Tensor& tensor);
  Arg ComplexArg(c10::complex<double> number);
  void Place(NodeId node, const CallSite& site);
  /// The node of flex attention's operators; none: of another one.
  std::optional<NodeId> CreateFlexNode(const c10::OperatorHandle& op, std::string_view name,
                                       std::span<const c10::IValue> args);
  Arg DeviceArg(c10::Device device);
  TypeId TypeOf(const at::Tensor& tensor);
  bool IsTaken(std::string_view name) const;
  /// Of a tensor of no value, distinct from the names of inputs.
  std::string ConstantPath() const;
  std::string PlaceholderName(std::string_view name);

  void NameElements();
  void PlaceByReader();
  void CopyForwardOrigins();
  void CopyScopedAttributes(NodeId forward, NodeId backward);

  Graph& graph_;
  Module& module_;
  Rewriter rewriter_;
  std::string device_;
  Constants& constants_;
  FlexRecording flex_;
  std::vector<at::Tensor> alive_;
  std::unordered_map<const c10::TensorImpl*, ValueId> by_tensor_;
  std::map<ViewKey, View> by_view_;
  // Of the call between Begin and End.
  std::vector<at::Tensor> operands_;
  std::set<StrId> scoped_;  // names of attributes that scopes gave
  // Of the engine, and not yet known to belong to a function.
  std::vector<NodeId> unplaced_;
};

}  // namespace strata
