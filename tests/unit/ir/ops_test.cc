#include "ir/ops.h"

#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "ir/text/native_text.h"

namespace strata {
namespace {

// A subset of "view mutates effectful random collective".
std::string Words(std::string_view op) {
  const OpTraits traits = TraitsOf(op);
  std::string words;
  for (const auto& [holds, word] : {std::pair{traits.view, " view"},
                                    {traits.mutates, " mutates"},
                                    {traits.effectful, " effectful"},
                                    {traits.random, " random"},
                                    {traits.collective, " collective"}}) {
    if (holds) words += word;
  }
  return words.empty() ? words : words.substr(1);
}

TEST_CASE("traits agree with PyTorch's schemas and tags for every ATen operator") {
  const auto text = ReadFile("tests/data/aten_ops.txt");
  REQUIRE(text);
  std::istringstream lines(*text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t space = line.find(' ');
    const std::string op = line.substr(0, space);
    std::string words = Words(op);
    // Schemas do not state effects; torch/fx/node.py does, see the next test.
    if (words == "effectful") words.clear();
    CHECK_MESSAGE(words == (space == std::string::npos ? "" : line.substr(space + 1)), op);
    CHECK_MESSAGE(TraitsOf(op).known, op);
    ++count;
  }
  CHECK(count > 2600);
}

TEST_CASE("asserts, prints and profiler marks have effects") {
  for (const char* op :
       {"aten._assert_async.default", "aten._assert_async.msg", "aten._assert_scalar.default",
        "aten._assert_tensor_metadata.default", "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default", "aten._print.default",
        "profiler._record_function_enter_new.default",
        "profiler._record_function_exit._RecordFunction", "torch._C._set_grad_enabled"}) {
    CHECK_MESSAGE(Words(op) == "effectful", op);
  }
}

TEST_CASE("collectives are effectful, and waiting for one is not a collective") {
  for (const char* op :
       {"_c10d_functional.all_gather_into_tensor.default", "_c10d_functional.all_reduce.default",
        "_c10d_functional.reduce_scatter_tensor.default",
        "_c10d_functional.all_to_all_single.default", "_c10d_functional.broadcast.default",
        "_c10d_functional.all_reduce_coalesced.default",
        "_c10d_functional_autograd.all_to_all_single.default"}) {
    CHECK_MESSAGE(Words(op) == "effectful collective", op);
  }
  CHECK_EQ(Words("_c10d_functional.wait_tensor.default"), "effectful");
  CHECK_EQ(Words("_c10d_functional.all_reduce_.default"), "mutates effectful collective");
  CHECK_EQ(Words("_c10d_functional.all_gather_into_tensor_out.default"),
           "mutates effectful collective");
}

TEST_CASE("mutation of unknown operators follows from ATen's naming rules") {
  CHECK_EQ(Words("mylib.accumulate_.default"), "mutates");
  CHECK_EQ(Words("mylib.fused.out"), "mutates");
  CHECK_EQ(Words("mylib.fused.default"), "");
  CHECK_EQ(Words("_operator.iadd"), "mutates");
  CHECK_EQ(Words("_operator.add"), "");
  CHECK_FALSE(TraitsOf("mylib.fused.default").known);
  CHECK_FALSE(TraitsOf("").known);
}

TEST_CASE("Python functions have the traits of the operator that they call") {
  CHECK_EQ(Words("torch.nn.functional.silu"), "");
  CHECK(TraitsOf("torch.nn.functional.silu").known);
  CHECK_EQ(Words("torch.transpose"), "view");
  CHECK_EQ(Words("torch.dropout"), "random");
  CHECK_EQ(Words("torch.relu_"), "mutates");
  CHECK_EQ(Words("torch.manual_seed"), "effectful");
  CHECK_FALSE(TraitsOf("torch.nn.attention._sdpa_kernel").known);
}

TEST_CASE("names split into library, base and overload") {
  CHECK_EQ(BaseName("aten.mm.default"), "mm");
  CHECK_EQ(BaseName("aten.mm"), "mm");
  CHECK_EQ(BaseName("mm"), "mm");
  CHECK_EQ(BaseName("torch._C._nn.linear"), "linear");
  CHECK_EQ(BaseName(""), "");
  CHECK(IsOverloadOf("aten.add.Tensor", "aten.add"));
  CHECK(IsOverloadOf("aten.add", "aten.add"));
  CHECK_FALSE(IsOverloadOf("aten.add_.Tensor", "aten.add"));
  CHECK_FALSE(IsOverloadOf("aten.addmm.default", "aten.add"));
}

TEST_CASE("a node is impure if it writes, has an effect, is random, or runs unknown code") {
  auto module = ParseText(R"(graph g
  x = placeholder
  add = aten.add.Tensor(x, x)
  add_ = aten.add_.Tensor(x, x)
  rand = aten.rand_like.default(x)
  wait = _c10d_functional.wait_tensor.default(x)
  operator = mylib.fused.default(x) : f32[2]
  nothing = mylib.write.default(x)
  python = torch.nn.attention._sdpa_kernel([x])
  relu = torch.relu(x)
  ge = _operator.ge(x, 0)
  output(add)
)");
  REQUIRE(module);
  const Graph& graph = *(*module)->FindGraph("g");
  std::string impure;
  for (NodeId id : graph.nodes()) {
    if (IsImpure(graph, id)) impure += fmt::format("{} ", graph.name(id));
  }
  CHECK_EQ(impure, "x add_ rand wait nothing python output ");
}

TEST_CASE("an unknown operator that returns nothing writes to an operand") {
  auto module = ParseText(R"(graph g
  x = placeholder : f32[2]
  nothing = mylib.write.default(x)
  typed = mylib.write.default(x) : f32[2]
  read = mylib.write.default(x)
  known = aten.neg.default(x)
  y = aten.add.Tensor(read, x) : f32[2]
  output(y)
)");
  REQUIRE(module);
  const Graph& graph = *(*module)->FindGraph("g");
  std::string writers;
  for (NodeId id : graph.nodes()) {
    if (TraitsOf(graph, id).mutates) writers += fmt::format("{} ", graph.name(id));
  }
  CHECK_EQ(writers, "nothing ");
}

}  // namespace
}  // namespace strata
