#include "tests/unit/prove/against_torch.h"

#include <cstdint>
#include <variant>
#include <vector>

#include <ATen/ATen.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random.h"
#include "prove/evaluation/evaluator.h"
#include "runtime/exec/executor.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// The input with elements -4 to 4, or 0 to 2 if they are integers.
at::Tensor RandomInput(const Tensor& like, uint64_t key) {
  const auto count = static_cast<size_t>(like.numel() * like.words_per_element());
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<int64_t>(RandomBits(key, i) % 9);
    numbers.push_back(like.domain() == Domain::kInteger ? bits % 3 : bits - 4);
  }
  at::Tensor flat = at::tensor(numbers, at::kLong);
  if (like.domain() == Domain::kInteger) return flat.view(like.sizes());
  flat = flat.to(at::kDouble);
  if (like.domain() == Domain::kFloat) return flat.view(like.sizes());
  Sizes pairs = like.sizes();
  pairs.push_back(2);
  return at::view_as_complex(flat.view(pairs));
}

Tensor FromTorch(const at::Tensor& tensor) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  const at::Tensor flat = real.contiguous().flatten();
  const Domain domain = tensor.is_complex()          ? Domain::kComplex
                        : tensor.is_floating_point() ? Domain::kFloat
                                                     : Domain::kInteger;
  Tensor result(domain, tensor.sizes().vec());
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double number = flat[i].to(at::kDouble).item<double>();
    result.storage()->words[static_cast<size_t>(i)] =
        domain == Domain::kInteger ? static_cast<uint64_t>(flat[i].item<int64_t>())
                                   : FromLiteral(number);
  }
  return result;
}

}  // namespace

void CheckAgainstTorch(std::string_view body) {
  INFO(body);
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  std::vector<Value> inputs = OrDie(MakeInputs(graph, 1));
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(RandomInput(std::get<Tensor>(inputs[i]), i));
    inputs[i] = FromTorch(tensors.back());
  }
  const std::vector<Value> exact = OrDie(Evaluator(graph, 1).Run(inputs));
  const std::vector<at::Tensor> expected =
      OrDie(OrDie(Executor::Bind(OrDie(Lower(graph)), {})).Run(tensors));
  REQUIRE_EQ(exact.size(), expected.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    REQUIRE(std::holds_alternative<Tensor>(exact[i]));
    CHECK(SameElements(FromTorch(expected[i]), std::get<Tensor>(exact[i])));
  }
}

void CheckCall(std::string_view call, std::string_view x, std::string_view y, std::string_view z) {
  CheckAgainstTorch(
      fmt::format("\n  x = placeholder : {}\n  y = placeholder : {}\n  r = {} : {}\n  output(r)\n",
                  x, y, call, z));
}

}  // namespace strata::prove
