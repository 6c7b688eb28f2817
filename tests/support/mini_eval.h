#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata::testing {

/// A float tensor like ATen's: sizes and strides over a storage that other tensors may share.
/// Copies share the storage.
struct MiniTensor {
  std::shared_ptr<std::vector<float>> storage;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;

  /// A contiguous tensor. REQUIRES: the number of values fits the sizes.
  static MiniTensor Make(std::vector<int64_t> sizes, std::vector<float> values);
  /// The elements in row-major order.
  std::vector<float> Values() const;
  int64_t numel() const;
};

/// Runs nodes on float tensors, one at a time. An oracle for passes: slow, obvious, and exact in
/// aliasing and in-place writes, so that "same values" can be tested without LibTorch.
///
/// Knows relu neg add mul sub mm le all clone detach alias t transpose view reshape _unsafe_view
/// slice split unsqueeze _assert_async, in place add_ mul_ copy_ t_ unsqueeze_.
class MiniInterpreter {
 public:
  explicit MiniInterpreter(const Graph& graph) : graph_(graph) {}

  /// Binds the result of a placeholder; only nodes run by this object may write to its storage.
  void Bind(NodeId placeholder, MiniTensor tensor);
  /// Runs one node. Errors: an unknown operator or argument, shapes that do not fit.
  Status Step(NodeId node);
  /// REQUIRES: the value was computed.
  const MiniTensor& tensor(ValueId value) const;

 private:
  using TensorPtr = std::shared_ptr<MiniTensor>;

  Result<std::vector<TensorPtr>> Call(NodeId node);
  /// The operators that only arrange the elements of their first operand, or copy them.
  Result<std::vector<TensorPtr>> CallView(NodeId node, const TensorPtr& self);
  Result<TensorPtr> TensorArg(NodeId node, size_t index) const;
  std::vector<int64_t> IntsArg(NodeId node, size_t index) const;
  int64_t IntArg(NodeId node, size_t index, int64_t default_value) const;

  const Graph& graph_;
  std::vector<TensorPtr> tensors_;  // by value; in-place operators return the tensor they change
};

/// The results of a graph: its outputs, then its inputs after the run, each with sizes and
/// elements.
struct Outcome {
  struct Tensor {
    std::vector<int64_t> sizes;
    std::vector<float> values;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  std::vector<Tensor> outputs, inputs;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Runs a whole graph on copies of `inputs`, one per placeholder.
Result<Outcome> Evaluate(const Graph& graph, std::span<const MiniTensor> inputs);

/// Runs a whole graph on small integers generated from `seed`, in the shapes of the placeholders'
/// types. REQUIRES: these types are known and constant.
Result<Outcome> Evaluate(const Graph& graph, uint32_t seed = 1);

}  // namespace strata::testing
