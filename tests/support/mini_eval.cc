#include "tests/support/mini_eval.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>

#include "ir/module.h"

namespace strata::testing {
namespace {

int64_t Product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> ContiguousStrides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

/// Storage positions of the elements in row-major order.
std::vector<size_t> Positions(const MiniTensor& t) {
  std::vector<size_t> positions;
  std::vector<int64_t> index(t.sizes.size(), 0);
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t at = t.offset;
    for (size_t d = 0; d < index.size(); ++d)
      at += index[d] * t.strides[d];
    positions.push_back(static_cast<size_t>(at));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.sizes[d]) break;
      index[d] = 0;
    }
  }
  return positions;
}

/// Strides that view `t` in another shape without a copy, if there are any. Source:
/// at::detail::computeStride.
std::optional<std::vector<int64_t>> ViewStrides(const MiniTensor& t,
                                                std::span<const int64_t> sizes) {
  if (t.numel() == 0) return ContiguousStrides(sizes);
  std::vector<int64_t> strides(sizes.size());
  auto view_dim = static_cast<int64_t>(sizes.size()) - 1;
  int64_t base_stride = t.strides.empty() ? 1 : t.strides.back();
  int64_t tensor_numel = 1, view_numel = 1;
  for (auto dim = static_cast<int64_t>(t.sizes.size()) - 1; dim >= 0; --dim) {
    const auto d = static_cast<size_t>(dim);
    tensor_numel *= t.sizes[d];
    if (dim != 0 && (t.sizes[d - 1] == 1 || t.strides[d - 1] == tensor_numel * base_stride)) {
      continue;
    }
    while (view_dim >= 0 &&
           (view_numel < tensor_numel || sizes[static_cast<size_t>(view_dim)] == 1)) {
      strides[static_cast<size_t>(view_dim)] = view_numel * base_stride;
      view_numel *= sizes[static_cast<size_t>(view_dim)];
      --view_dim;
    }
    if (view_numel != tensor_numel) return std::nullopt;
    if (dim > 0) {
      base_stride = t.strides[d - 1];
      tensor_numel = view_numel = 1;
    }
  }
  for (; view_dim >= 0; --view_dim)
    strides[static_cast<size_t>(view_dim)] = 1;
  return strides;
}

size_t Axis(const MiniTensor& t, int64_t dim) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(t.sizes.size()) : dim);
}

MiniTensor Transposed(MiniTensor t, size_t a, size_t b) {
  std::swap(t.sizes[a], t.sizes[b]);
  std::swap(t.strides[a], t.strides[b]);
  return t;
}

MiniTensor Transposed(const MiniTensor& t) {
  return t.sizes.size() < 2 ? t : Transposed(t, 0, 1);
}

MiniTensor Unsqueezed(MiniTensor t, int64_t dim) {
  const auto rank = static_cast<int64_t>(t.sizes.size());
  const int64_t at = dim < 0 ? dim + rank + 1 : dim;
  const int64_t stride =
      at < rank ? t.sizes[static_cast<size_t>(at)] * t.strides[static_cast<size_t>(at)] : 1;
  t.sizes.insert(t.sizes.begin() + at, 1);
  t.strides.insert(t.strides.begin() + at, stride);
  return t;
}

MiniTensor Sliced(MiniTensor t, size_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = t.sizes[axis];
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  t.offset += start * t.strides[axis];
  t.sizes[axis] = (end - start + step - 1) / step;
  t.strides[axis] *= step;
  return t;
}

MiniTensor Copy(const MiniTensor& t) {
  return MiniTensor::Make(t.sizes, t.Values());
}

template <class Fn>
MiniTensor Map(const MiniTensor& t, Fn fn) {
  std::vector<float> values = t.Values();
  std::ranges::transform(values, values.begin(), fn);
  return MiniTensor::Make(t.sizes, std::move(values));
}

Result<MiniTensor> MatMul(const MiniTensor& a, const MiniTensor& b) {
  if (a.sizes.size() != 2 || b.sizes.size() != 2 || a.sizes[1] != b.sizes[0]) {
    return Error("mm of shapes that do not fit");
  }
  const std::vector<float> x = a.Values(), y = b.Values();
  const auto m = static_cast<size_t>(a.sizes[0]), k = static_cast<size_t>(a.sizes[1]),
             n = static_cast<size_t>(b.sizes[1]);
  std::vector<float> values(m * n, 0.0f);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t p = 0; p < k; ++p)
        values[i * n + j] += x[i * k + p] * y[p * n + j];
    }
  }
  return MiniTensor::Make({a.sizes[0], b.sizes[1]}, std::move(values));
}

Outcome::Tensor Plain(const MiniTensor& t) {
  return {t.sizes, t.Values()};
}

}  // namespace

MiniTensor MiniTensor::Make(std::vector<int64_t> sizes, std::vector<float> values) {
  STRATA_CHECK(Product(sizes) == static_cast<int64_t>(values.size()));
  MiniTensor t;
  t.strides = ContiguousStrides(sizes);
  t.sizes = std::move(sizes);
  t.storage = std::make_shared<std::vector<float>>(std::move(values));
  return t;
}

int64_t MiniTensor::numel() const {
  return Product(sizes);
}

std::vector<float> MiniTensor::Values() const {
  std::vector<float> values;
  for (size_t at : Positions(*this))
    values.push_back((*storage)[at]);
  return values;
}

void MiniInterpreter::Bind(NodeId placeholder, MiniTensor tensor) {
  const auto index = static_cast<size_t>(graph_.result(placeholder).index);
  if (tensors_.size() <= index) tensors_.resize(index + 1);
  tensors_[index] = std::make_shared<MiniTensor>(std::move(tensor));
}

const MiniTensor& MiniInterpreter::tensor(ValueId value) const {
  return *tensors_[static_cast<size_t>(value.index)];
}

Status MiniInterpreter::Step(NodeId node) {
  if (graph_.node(node).kind != NodeKind::kCall) return Ok();
  STRATA_TRY(const std::vector<TensorPtr> results, Call(node));
  if (results.size() != graph_.node(node).num_results) {
    return Error("'{}' has {} results", graph_.name(node), results.size());
  }
  if (results.empty()) return Ok();
  const auto first = static_cast<size_t>(graph_.result(node).index);
  if (tensors_.size() < first + results.size()) tensors_.resize(first + results.size());
  std::ranges::copy(results, tensors_.begin() + static_cast<std::ptrdiff_t>(first));
  return Ok();
}

Result<MiniInterpreter::TensorPtr> MiniInterpreter::TensorArg(NodeId node, size_t index) const {
  const auto args = graph_.args(node);
  if (index >= args.size() || !args[index].is_value()) {
    return Error("'{}' has no tensor as argument {}", graph_.name(node), index);
  }
  const auto value = static_cast<size_t>(args[index].value().index);
  if (value >= tensors_.size() || !tensors_[value]) {
    return Error("'{}' reads a value that was not computed", graph_.name(node));
  }
  return tensors_[value];
}

int64_t MiniInterpreter::IntArg(NodeId node, size_t index, int64_t default_value) const {
  const auto args = graph_.args(node);
  if (index >= args.size() || args[index].kind() != ArgKind::kInt) return default_value;
  return args[index].as_int();
}

std::vector<int64_t> MiniInterpreter::IntsArg(NodeId node, size_t index) const {
  std::vector<int64_t> ints;
  for (const Arg& element : graph_.elements(graph_.args(node)[index]))
    ints.push_back(element.as_int());
  return ints;
}

Result<std::vector<MiniInterpreter::TensorPtr>> MiniInterpreter::Call(NodeId node) {
  const std::string_view op = graph_.op(node);
  STRATA_TRY(const TensorPtr self, TensorArg(node, 0));
  const auto one = [](MiniTensor t) {
    return std::vector{std::make_shared<MiniTensor>(std::move(t))};
  };
  // The second operand in the shape of `self`: a tensor of that shape or a number.
  const auto other = [&]() -> Result<std::vector<float>> {
    const auto count = static_cast<size_t>(self->numel());
    const auto args = graph_.args(node);
    if (args.size() > 1 && args[1].kind() == ArgKind::kInt) {
      return std::vector<float>(count, static_cast<float>(args[1].as_int()));
    }
    if (args.size() > 1 && args[1].kind() == ArgKind::kFloat) {
      return std::vector<float>(count, static_cast<float>(args[1].as_float()));
    }
    STRATA_TRY(const TensorPtr tensor, TensorArg(node, 1));
    if (tensor->sizes != self->sizes) return Error("'{}': shapes differ", graph_.name(node));
    return tensor->Values();
  };
  const auto binary = [&](auto fn) -> Result<std::vector<float>> {
    STRATA_TRY(std::vector<float> right, other());
    const std::vector<float> left = self->Values();
    for (size_t i = 0; i < left.size(); ++i)
      right[i] = fn(left[i], right[i]);
    return right;
  };
  const auto pure = [&](auto fn) -> Result<std::vector<TensorPtr>> {
    STRATA_TRY(std::vector<float> values, binary(fn));
    return one(MiniTensor::Make(self->sizes, std::move(values)));
  };
  const auto in_place = [&](auto fn) -> Result<std::vector<TensorPtr>> {
    STRATA_TRY(const std::vector<float> values, binary(fn));
    const std::vector<size_t> positions = Positions(*self);
    for (size_t i = 0; i < values.size(); ++i)
      (*self->storage)[positions[i]] = values[i];
    return std::vector{self};
  };
  const auto take_right = [](float, float right) { return right; };

  if (op == "aten.relu.default") return one(Map(*self, [](float x) { return x > 0 ? x : 0.0f; }));
  if (op == "aten.neg.default") return one(Map(*self, std::negate<>()));
  if (op.starts_with("aten.add.")) return pure(std::plus<>());
  if (op.starts_with("aten.sub.")) return pure(std::minus<>());
  if (op.starts_with("aten.mul.")) return pure(std::multiplies<>());
  if (op.starts_with("aten.le.")) return pure(std::less_equal<>());
  if (op.starts_with("aten.add_.")) return in_place(std::plus<>());
  if (op.starts_with("aten.mul_.")) return in_place(std::multiplies<>());
  if (op == "aten.copy_.default") return in_place(take_right);
  if (op == "aten.all.default") {
    const std::vector<float> values = self->Values();
    const bool all = std::ranges::all_of(values, [](float x) { return x != 0; });
    return one(MiniTensor::Make({}, {all ? 1.0f : 0.0f}));
  }
  if (op.starts_with("aten._assert_async.")) return std::vector<TensorPtr>{nullptr};
  if (op == "aten.mm.default") {
    STRATA_TRY(const TensorPtr right, TensorArg(node, 1));
    STRATA_TRY(MiniTensor product, MatMul(*self, *right));
    return one(std::move(product));
  }
  return CallView(node, self);
}

Result<std::vector<MiniInterpreter::TensorPtr>> MiniInterpreter::CallView(NodeId node,
                                                                          const TensorPtr& self) {
  const std::string_view op = graph_.op(node);
  const auto one = [](MiniTensor t) {
    return std::vector{std::make_shared<MiniTensor>(std::move(t))};
  };
  if (op == "aten.clone.default") return one(Copy(*self));
  if (op == "aten.detach.default" || op == "aten.alias.default") return one(*self);
  if (op == "aten.t.default") return one(Transposed(*self));
  if (op == "aten.t_.default") {
    *self = Transposed(*self);
    return std::vector{self};
  }
  if (op == "aten.transpose.int") {
    return one(Transposed(*self, Axis(*self, IntArg(node, 1, 0)), Axis(*self, IntArg(node, 2, 0))));
  }
  if (op == "aten.unsqueeze.default") return one(Unsqueezed(*self, IntArg(node, 1, 0)));
  if (op == "aten.unsqueeze_.default") {
    *self = Unsqueezed(*self, IntArg(node, 1, 0));
    return std::vector{self};
  }
  if (op == "aten.view.default" || op == "aten.reshape.default" ||
      op == "aten._unsafe_view.default") {
    const std::vector<int64_t> sizes = IntsArg(node, 1);
    if (Product(sizes) != self->numel()) return Error("'{}': sizes do not fit", graph_.name(node));
    if (const auto strides = ViewStrides(*self, sizes)) {
      return one({self->storage, self->offset, sizes, *strides});
    }
    if (op != "aten.reshape.default") return Error("'{}' needs a copy", graph_.name(node));
    return one(MiniTensor::Make(sizes, self->Values()));
  }
  if (op == "aten.slice.Tensor") {
    return one(Sliced(*self, Axis(*self, IntArg(node, 1, 0)), IntArg(node, 2, 0),
                      IntArg(node, 3, INT64_MAX), IntArg(node, 4, 1)));
  }
  if (op == "aten.split.Tensor") {
    const int64_t length = IntArg(node, 1, 1);
    const size_t axis = Axis(*self, IntArg(node, 2, 0));
    std::vector<TensorPtr> parts;
    for (int64_t at = 0; at < self->sizes[axis]; at += length) {
      parts.push_back(std::make_shared<MiniTensor>(Sliced(*self, axis, at, at + length, 1)));
    }
    return parts;
  }
  return Error("the interpreter does not know '{}'", op);
}

Result<Outcome> Evaluate(const Graph& graph, std::span<const MiniTensor> inputs) {
  MiniInterpreter interpreter(graph);
  const std::vector<NodeId> placeholders = graph.placeholders();
  STRATA_CHECK(placeholders.size() == inputs.size());
  std::vector<MiniTensor> own;
  for (size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(Copy(inputs[i]));
    interpreter.Bind(placeholders[i], own.back());
  }
  Outcome outcome;
  for (NodeId node : graph.nodes()) {
    STRATA_RETURN_IF_ERROR(interpreter.Step(node));
    if (graph.node(node).kind != NodeKind::kOutput) continue;
    graph.ForEachOperand(
        node, [&](ValueId value) { outcome.outputs.push_back(Plain(interpreter.tensor(value))); });
  }
  for (const MiniTensor& input : own)
    outcome.inputs.push_back(Plain(input));
  return outcome;
}

Result<Outcome> Evaluate(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<MiniTensor> inputs;
  for (NodeId node : graph.placeholders()) {
    const Type& type = graph.module().types()[graph.value(graph.result(node)).type];
    std::vector<int64_t> sizes;
    for (DimId dim : type.sizes)
      sizes.push_back(*graph.module().dims().AsConst(dim));
    std::vector<float> values;
    for (int64_t i = 0; i < Product(sizes); ++i)
      values.push_back(static_cast<float>(random() % 9) - 4.0f);
    inputs.push_back(MiniTensor::Make(std::move(sizes), std::move(values)));
  }
  return Evaluate(graph, inputs);
}

}  // namespace strata::testing
