#include "runtime/trace/meta_kernels.h"

#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// A Meta tensor of the same sizes, strides and dtype.
Tensor OnMeta(const Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

std::string Shape(const Tensor& tensor) {
  return tensor.defined() ? c10::str(tensor.scalar_type(), tensor.sizes(), tensor.strides()) : "-";
}

/// Calls `fn` on tensors of the CPU and on Meta copies of them; results must agree in dtype, sizes
/// and strides: the CPU kernel is the oracle.
void CheckShapes(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& fn) {
  RegisterMetaKernels();
  Tensors meta_inputs;
  for (const Tensor& input : inputs)
    meta_inputs.push_back(OnMeta(input));
  const Tensors expected = fn(inputs);
  const Tensors predicted = fn(meta_inputs);
  REQUIRE_EQ(predicted.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK_EQ(Shape(predicted[i]), Shape(expected[i]));
    CHECK(predicted[i].is_meta());
  }
}

TEST_CASE("shapes: index_select and embedding") {
  const Tensor index = at::tensor({2, 0, 1}, at::kLong);
  const Tensor self = at::rand({3, 4, 5});
  for (const int64_t dim : {0, 1, -1}) {
    CheckShapes({self, index},
                [&](const Tensors& t) -> Tensors { return {at::index_select(t[0], dim, t[1])}; });
  }
  CheckShapes({self.transpose(0, 2), index},
              [](const Tensors& t) -> Tensors { return {at::index_select(t[0], 1, t[1])}; });
  CheckShapes({at::rand({7, 6}), at::zeros({2, 3}, at::kLong)},
              [](const Tensors& t) -> Tensors { return {at::embedding(t[0], t[1])}; });
  CheckShapes({at::rand({2, 3, 6}), at::zeros({2, 3}, at::kLong)}, [](const Tensors& t) -> Tensors {
    return {at::embedding_dense_backward(t[0], t[1], 7, -1, false)};
  });
}

TEST_CASE("shapes: a number is one row to index_select") {
  CheckShapes({at::rand({}), at::zeros({1}, at::kLong)},
              [](const Tensors& t) -> Tensors { return {at::index_select(t[0], 0, t[1])}; });
}

TEST_CASE("shapes: where broadcasts and promotes") {
  const Tensor condition = at::ones({4, 1}, at::kBool);
  CheckShapes({condition, at::rand({3}), at::rand({2, 4, 3}, at::kDouble)},
              [](const Tensors& t) -> Tensors { return {at::where(t[0], t[1], t[2])}; });
  CheckShapes({condition, at::rand({4, 3}), at::rand({4, 3})}, [](const Tensors& t) -> Tensors {
    Tensor out = at::empty({0}, t[1].options());
    return {at::where_out(out, t[0], t[1], t[2])};
  });
}

TEST_CASE("shapes: elementwise results lie as their operands do") {
  const Tensor x = at::rand({3, 2}).t(), gaps = at::rand({2, 6}).slice(1, 0, 6, 2);
  CheckShapes({x, gaps, at::rand({2, 3, 4}).permute({2, 0, 1})}, [](const Tensors& t) -> Tensors {
    return {at::where(t[0] > 0, t[0], t[0]), at::where(t[0] > 0, t[0], t[1]),
            at::where(t[1] > 0, t[1], t[1]), at::where(t[2] > 0, t[0], t[2]),
            at::floor_divide(t[0], t[0]),    at::floor_divide(t[0], 2)};
  });
}

TEST_CASE("shapes: floor_divide") {
  CheckShapes({at::ones({4, 1}, at::kLong), at::ones({3}, at::kLong)},
              [](const Tensors& t) -> Tensors { return {at::floor_divide(t[0], t[1])}; });
  CheckShapes({at::ones({4}, at::kLong), at::ones({4}, at::kFloat)},
              [](const Tensors& t) -> Tensors { return {at::floor_divide(t[0], t[1])}; });
  CheckShapes({at::ones({4}, at::kLong)},
              [](const Tensors& t) -> Tensors { return {at::floor_divide(t[0], 2)}; });
}

TEST_CASE("shapes: histc and bincount") {
  CheckShapes({at::rand({9})},
              [](const Tensors& t) -> Tensors { return {at::histc(t[0], 8, 0, 8)}; });
  CheckShapes({at::zeros({9}, at::kLong), at::rand({9}, at::kDouble)},
              [](const Tensors& t) -> Tensors {
                return {at::bincount(t[0], {}, 8), at::bincount(t[0], t[1], 8)};
              });
}

TEST_CASE("shapes: polar") {
  CheckShapes({at::rand({3, 4}), at::rand({3, 4})},
              [](const Tensors& t) -> Tensors { return {at::polar(t[0], t[1])}; });
}

TEST_CASE("shapes: flash attention, forward and backward") {
  struct Case {
    int64_t batch, heads, kv_heads, seq, head_dim;
    at::ScalarType dtype;
  };
  for (const Case& c : {Case{2, 4, 2, 5, 8, at::kFloat}, Case{1, 3, 1, 7, 16, at::kFloat},
                        Case{3, 2, 2, 4, 8, at::kDouble}, Case{2, 4, 2, 6, 8, at::kBFloat16}}) {
    for (const bool is_transposed : {false, true}) {
      const auto make = [&](int64_t heads) {
        return is_transposed
                   ? at::rand({c.batch, c.seq, heads, c.head_dim}, c.dtype).transpose(1, 2)
                   : at::rand({c.batch, heads, c.seq, c.head_dim}, c.dtype);
      };
      CheckShapes(
          {make(c.heads), make(c.kv_heads), make(c.kv_heads)}, [](const Tensors& t) -> Tensors {
            const auto [out, logsumexp] =
                at::_scaled_dot_product_flash_attention_for_cpu(t[0], t[1], t[2], 0.0, true);
            const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
                at::ones_like(out), t[0], t[1], t[2], out, logsumexp, 0.0, true);
            return {out, logsumexp, dq, dk, dv};
          });
    }
  }
}

TEST_CASE("shapes: grouped matrix products") {
  const Tensor offs = at::tensor({3, 8}, at::kInt);
  const auto grouped = [](const Tensors& t) -> Tensors {
    return {t.size() == 3 ? at::_grouped_mm(t[0], t[1], t[2]) : at::_grouped_mm(t[0], t[1])};
  };
  CheckShapes({at::rand({8, 4}), at::rand({2, 4, 8}), offs}, grouped);
  CheckShapes({at::rand({8, 4}), at::rand({2, 8, 4}).transpose(1, 2), offs}, grouped);
  CheckShapes({at::rand({4, 8}), at::rand({8, 4}), offs}, grouped);
  CheckShapes({at::rand({2, 4, 8}), at::rand({2, 8, 4})}, grouped);
}

}  // namespace
}  // namespace strata
