#include "runtime/trace/tracer.h"

#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "runtime/trace/scope.h"
#include "runtime/trace/source_text.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Inputs = std::span<const Tensor>;
using Tensors = std::vector<Tensor>;
using Program = std::function<Tensors(Inputs)>;
using testing::MessageOf;
using testing::NodeNamed;

Tensor Meta(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::empty(sizes, at::TensorOptions().device(at::kMeta).dtype(dtype));
}

/// A module with the graph "g" of a program over inputs x, y, ….
struct Traced {
  Module module;
  Constants constants;
  Status status;

  Traced(const Tensors& examples, Program program) {
    TraceRequest request{.graph = "g", .inputs = {}, .program = std::move(program)};
    for (const Tensor& example : examples) {
      const auto letter = static_cast<char>('x' + request.inputs.size());
      request.inputs.push_back({.name = std::string(1, letter), .module = {}, .example = example});
    }
    status = Trace(module, request, constants);
  }

  const Graph& graph() const { return *module.FindGraph("g"); }
  const Node& node(std::string_view name) const { return graph().node(NodeNamed(graph(), name)); }
  const Value& value(std::string_view name) const { return graph().value(node(name).first_result); }

  /// What follows the inputs, without types and metadata, after a line break.
  std::string Text() const {
    REQUIRE_OK(status);
    REQUIRE_OK(Verify(module));
    const std::string all = PrintText(graph(), {.types = false, .metadata = false});
    return all.substr(all.find('\n', all.rfind(" = placeholder")));
  }
  std::string Type(std::string_view name) const {
    return module.types().ToString(value(name).type);
  }
  std::string_view Alias(std::string_view name) const {
    const ValueId source = value(name).alias_of;
    return source.valid() ? graph().value_name(source) : "";
  }
  std::string_view ModulePath(std::string_view name) const { return module.str(node(name).module); }
};

std::string Refusal(Program program) {
  return MessageOf(Traced({Meta({3})}, std::move(program)).status);
}

bool Contains(std::string_view text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("sources have their paths in the checkout, whatever folder the compiler ran in") {
  const std::string here = __FILE__, name = "tests/unit/runtime/tracer_test.cc";
  CHECK_EQ(PathInCheckout(here), name);
  const std::string model = here.substr(0, here.size() - name.size()) + "runtime/models/llama3.cc";
  CHECK_EQ(PathInCheckout(model), "runtime/models/llama3.cc");
  CHECK_EQ(PathInCheckout("/elsewhere/runtime/models/llama3.cc"), "runtime/models/llama3.cc");
  CHECK_EQ(PathInCheckout("../../runtime/models/llama3.cc"), "runtime/models/llama3.cc");
  CHECK_EQ(PathInCheckout("../../tests/unit/runtime/tracer_test.cc"), name);
  CHECK_EQ(PathInCheckout("/usr/include/vector"), "/usr/include/vector");
  CHECK_FALSE(SourceLine(PathInCheckout(model), 1).empty());
}

TEST_CASE("arguments are FX's: defaults left out, keyword-only ones by name") {
  const Traced traced({Meta({2, 3}), Meta({2, 3})}, [](Inputs in) -> Tensors {
    const Tensor sum = at::add(at::add(in[0], in[1]), in[1], 2);
    const Tensor total = sum.sum(at::IntArrayRef{0, 1}, true, at::kDouble);
    const Tensor ones =
        at::ones_like(at::clamp(total, std::nullopt, 1.0), {}, at::MemoryFormat::Contiguous);
    return {ones, at::zeros({2}, in[0].options().dtype(at::kLong))};
  });
  CHECK_EQ(traced.Text(), R"(
  add = aten.add.Tensor(x, y)
  add_1 = aten.add.Tensor(add, y, alpha=2)
  sum_1 = aten.sum.dim_IntList(add_1, [0, 1], True, dtype=torch.float64)
  clamp = aten.clamp.default(sum_1, None, 1.0)
  ones_like = aten.ones_like.default(clamp, memory_format=raw('torch.contiguous_format'))
  zeros = aten.zeros.default([2], dtype=torch.int64, layout=raw('torch.strided'), device=device('cpu'))
  output([ones_like, zeros])
)");
}

TEST_CASE("types are those of the run: sizes, strides, offset; Meta is written as its device") {
  const Traced traced({Meta({4, 6})}, [](Inputs in) -> Tensors {
    return {in[0].t().slice(1, 2, 4), in[0].to(at::kBFloat16)};
  });
  REQUIRE_OK(traced.status);
  CHECK_EQ(traced.Type("t"), "f32[6, 4][1, 6]cpu");
  CHECK_EQ(traced.Type("_to_copy"), "bf16[4, 6][6, 1]cpu");
  const DimId offset = traced.module.types()[traced.value("slice_1").type].dim;
  CHECK_EQ(traced.module.dims().AsConst(offset), 12);
}

TEST_CASE("views and in-place results say whose memory they share; later reads are of the result") {
  const Traced traced({Meta({4})}, [](Inputs in) -> Tensors {
    const Tensor a = in[0].neg();
    const Tensor view = a.view({2, 2});
    a.exp_();
    return {a.sin(), view.sin()};
  });
  CHECK_EQ(traced.Text(), R"(
  neg = aten.neg.default(x)
  view = aten.view.default(neg, [2, 2])
  exp_ = aten.exp_.default(neg)
  sin = aten.sin.default(exp_)
  sin_1 = aten.sin.default(view)
  output([sin, sin_1])
)");
  CHECK_EQ(traced.Alias("neg"), "");
  CHECK_EQ(traced.Alias("view"), "neg");
  CHECK_EQ(traced.Alias("exp_"), "neg");
  CHECK_EQ(traced.Alias("sin"), "");
}

TEST_CASE("two tensors of one view are one value, also after a write in place") {
  const Traced traced({Meta({4})}, [](Inputs in) -> Tensors {
    const Tensor same = in[0].detach();
    same.exp_();
    return {in[0].neg()};
  });
  CHECK(Contains(traced.Text(), "neg = aten.neg.default(exp_)"));
}

TEST_CASE("a change of strides in place is a view; reads of the other tensor stay") {
  const Traced traced({Meta({2, 3})}, [](Inputs in) {
    Tensor turned = in[0].detach();
    const Tensor same = in[0].detach();
    turned.transpose_(0, 1).unsqueeze_(0);
    return Tensors{at::neg(turned), at::exp(same), at::sigmoid(turned.squeeze_(0))};
  });
  CHECK_EQ(traced.Text(), R"(
  detach = aten.detach.default(x)
  detach_1 = aten.detach.default(x)
  transpose = aten.transpose.int(detach, 0, 1)
  unsqueeze = aten.unsqueeze.default(transpose, 0)
  neg = aten.neg.default(unsqueeze)
  exp = aten.exp.default(detach_1)
  squeeze = aten.squeeze.dim(unsqueeze, 0)
  sigmoid = aten.sigmoid.default(squeeze)
  output([neg, exp, sigmoid])
)");
  CHECK_EQ(traced.Type("unsqueeze"), "f32[1, 3, 2][3, 1, 3]cpu");
}

TEST_CASE("operators on lists are recorded for each tensor") {
  const Traced traced({Meta({2}), Meta({3})}, [](Inputs in) {
    const Tensors tensors = {in[0].detach(), in[1].detach()};
    at::_foreach_mul_(tensors, 0.5);
    return at::_foreach_add(tensors, tensors, 2);
  });
  CHECK_EQ(traced.Text(), R"(
  detach = aten.detach.default(x)
  detach_1 = aten.detach.default(y)
  mul_ = aten.mul_.Scalar(detach, 0.5)
  mul__1 = aten.mul_.Scalar(detach_1, 0.5)
  add = aten.add.Tensor(mul_, mul_, alpha=2)
  add_1 = aten.add.Tensor(mul__1, mul__1, alpha=2)
  output([add, add_1])
)");
}

TEST_CASE("elements that are read are getitem, getitem_1, …; others have no name") {
  const Traced traced({Meta({6, 2})}, [](Inputs in) -> Tensors {
    const Tensors parts = in[0].split(2);
    const auto [values, indices] = at::max(in[0], 1);
    return {parts[0] + parts[2], indices};
  });
  CHECK_EQ(traced.Text(), R"(
  (getitem, _, getitem_1) = aten.split.Tensor(x, 2) as split
  (_, getitem_2) = aten.max.dim(x, 1) as max_1
  add = aten.add.Tensor(getitem, getitem_1)
  output([add, getitem_2])
)");
}

TEST_CASE("lists of tensors and of optional tensors") {
  const Traced traced({Meta({3, 4}), Meta({2}, at::kLong)}, [](Inputs in) -> Tensors {
    const Tensor both = at::cat({in[0], in[0]}, 1);
    return {at::index(both, {std::nullopt, in[1]})};
  });
  CHECK_EQ(traced.Text(), R"(
  cat = aten.cat.default([x, x], 1)
  index = aten.index.Tensor(cat, [None, y])
  output([index])
)");
}

TEST_CASE("tensors from outside are constants, one per tensor") {
  const Tensor table = at::scalar_tensor(3.0);
  const Traced traced({Meta({4})}, [&](Inputs in) -> Tensors { return {in[0] * table + table}; });
  CHECK_EQ(traced.Text(), R"(
  _tensor_constant0 = attr _tensor_constant0
  mul = aten.mul.Tensor(x, _tensor_constant0)
  add = aten.add.Tensor(mul, _tensor_constant0)
  output([add])
)");
  REQUIRE_EQ(traced.constants.size(), 1);
  CHECK(traced.constants[0].second.is_same(table));
}

TEST_CASE("numbers in the place of tensors are literals, with the type promotion of numbers") {
  const Traced traced({Meta({3}), Meta({3}, at::kLong)}, [](std::span<const Tensor> inputs) {
    const auto number = [](const at::Scalar& value) {
      Tensor wrapped = at::scalar_to_tensor(value);
      wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
      return wrapped;
    };
    return Tensors{at::mul(inputs[0], number(0.5)),
                   at::mul(inputs[1], number(0.5)),
                   at::add(inputs[1], number(2)),
                   at::logical_and(inputs[1], number(true)),
                   at::mul(inputs[0], number(c10::complex<double>(1, -2))),
                   at::full({2}, c10::complex<double>(0, 2))};
  });
  CHECK_EQ(traced.Text(), R"(
  mul = aten.mul.Tensor(x, 0.5)
  mul_1 = aten.mul.Tensor(y, 0.5)
  add = aten.add.Tensor(y, 2)
  logical_and = aten.logical_and.default(y, True)
  mul_2 = aten.mul.Tensor(x, raw('(1-2j)'))
  full = aten.full.default([2], raw('2j'))
  output([mul, mul_1, add, logical_and, mul_2, full])
)");
  CHECK_EQ(traced.Type("mul_1"), "f32[3][1]cpu");
  CHECK_EQ(traced.Type("add"), "i64[3][1]cpu");
  CHECK_EQ(traced.Type("mul_2"), "c64[3][1]cpu");
  CHECK(traced.constants.empty());
}

TEST_CASE("backward nodes have the place of the forward node that they differentiate") {
  const Traced traced({Meta({3, 4}).requires_grad_(true)}, [](Inputs in) -> Tensors {
    Tensor loss;
    {
      const ModuleScope block("block");
      Tensor hidden;
      {
        const ModuleScope inner("gate");
        hidden = in[0].sigmoid();
      }
      const ModuleScope sum("sum");
      loss = (hidden * in[0]).sum();
    }
    const PhaseScope backward(Phase::kBackward);
    return {loss, torch::autograd::grad({loss}, {in[0]})[0]};
  });
  CHECK_EQ(traced.Text(), R"(
  sigmoid = aten.sigmoid.default(x)
  mul = aten.mul.Tensor(sigmoid, x)
  sum_1 = aten.sum.default(mul)
  ones_like = aten.ones_like.default(sum_1, memory_format=raw('torch.contiguous_format'))
  expand = aten.expand.default(ones_like, [3, 4])
  mul_1 = aten.mul.Tensor(expand, sigmoid)
  mul_2 = aten.mul.Tensor(expand, x)
  sigmoid_backward = aten.sigmoid_backward.default(mul_2, sigmoid)
  add = aten.add.Tensor(mul_1, sigmoid_backward)
  output([sum_1, add])
)");
  CHECK_EQ(traced.ModulePath("sigmoid"), "block.gate");
  CHECK_EQ(traced.ModulePath("sigmoid_backward"), "block.gate");
  CHECK_EQ(traced.ModulePath("mul_1"), "block.sum");
  CHECK_EQ(traced.ModulePath("ones_like"), "block.sum");
  CHECK_EQ(traced.node("sigmoid").phase, Phase::kForward);
  CHECK_EQ(traced.node("sigmoid_backward").phase, Phase::kBackward);
  CHECK_EQ(traced.node("sigmoid_backward").seq_nr, traced.node("sigmoid").seq_nr);
  CHECK_EQ(traced.node("sigmoid_backward").loc, traced.node("sigmoid").loc);
  // x is used twice; its gradient is the sum of two.
  CHECK_EQ(traced.node("add").phase, Phase::kBackward);
  CHECK_EQ(traced.graph().attribute(NodeNamed(traced.graph(), "add"), "is_gradient_acc"), "True");
  CHECK_EQ(traced.graph().attribute(NodeNamed(traced.graph(), "mul_1"), "is_gradient_acc"), "");
  const SourceLoc& loc = traced.module.loc(traced.node("sigmoid").loc);
  CHECK_EQ(traced.module.str(loc.file), "tests/unit/runtime/tracer_test.cc");
}

TEST_CASE("undefined outputs are None") {
  const Traced traced({Meta({3})}, [](Inputs in) -> Tensors { return {in[0], Tensor()}; });
  CHECK_EQ(traced.Text(), "\n  output([x, None])\n");
}

TEST_CASE("names of inputs become names of Python, distinct from each other and from nodes") {
  Module module;
  Constants constants;
  TraceRequest request{.graph = "g", .inputs = {}, .program = [](Inputs in) -> Tensors {
                         return {in[0] + in[1], in[2] + in[3]};
                       }};
  for (const char* name : {"a.b", "a_b", "0", "add"}) {
    request.inputs.push_back(
        {.name = name, .kind = InputKind::kParameter, .module = "m", .example = Meta({2})});
  }
  REQUIRE_OK(Trace(module, request, constants));
  REQUIRE_OK(Verify(module));
  const Graph& graph = *module.FindGraph("g");
  std::vector<std::string> names;
  for (const NodeId node : graph.placeholders())
    names.emplace_back(graph.name(node));
  CHECK_EQ(names, std::vector<std::string>{"a_b", "a_b_1", "_0", "add"});
  CHECK_EQ(graph.attribute(graph.first(), "fqn"), "a.b");
  CHECK_EQ(graph.attribute(graph.first(), "input"), "parameter");
  CHECK_EQ(module.str(graph.node(graph.first()).module), "m");
}

TEST_CASE("reading a value is refused with operator, module path and line") {
  const std::string message = Refusal([](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {in[0] * in[0].sum().item<double>()};
  });
  CHECK_EQ(message.substr(0, message.rfind(':', message.find("cc:") + 2)),
           "cannot trace aten._local_scalar_dense.default: layers.0 "
           "(tests/unit/runtime/tracer_test.cc");
  CHECK(Contains(message, "): reads a tensor's value, which does not exist while tracing"));
}

TEST_CASE("an operator without a kernel for Meta tensors gives what the CPU's gives") {
  const Traced traced({Meta({2, 3, 8}), Meta({4, 3, 3}), Meta({4})}, [](Inputs in) -> Tensors {
    const Tensor rows = at::convolution(in[0], in[1], in[2], {1}, {0}, {1}, false, {0}, 1);
    const auto [norm, mean, rstd] = at::native_layer_norm(rows, {6}, {}, {}, 1e-5);
    return {norm, std::get<1>(at::median(in[0].transpose(0, 2), 1))};
  });
  REQUIRE_OK(traced.status);
  CHECK_EQ(traced.Type("convolution"), "f32[2, 4, 6][24, 6, 1]cpu");
  CHECK(Contains(traced.Text(), "(getitem, _, _) = aten.native_layer_norm.default(convolution"));
  CHECK(Contains(traced.Text(), "(_, getitem_1) = aten.median.dim(transpose, 1)"));
  const Graph& graph = *traced.module.FindGraph("g");
  const auto outputs = graph.operands(graph.output());
  REQUIRE_EQ(outputs.size(), 2);
  const auto type = [&](ValueId value) {
    return traced.module.types().ToString(graph.value(value).type);
  };
  CHECK_EQ(type(outputs[0]), "f32[2, 4, 6][24, 6, 1]cpu");
  CHECK_EQ(type(outputs[1]), "i64[8, 2][2, 1]cpu");
}

TEST_CASE(
    "an operator without a kernel for Meta tensors is refused where the CPU's cannot be asked") {
  const Tensor large = Meta({int64_t{1} << 33});
  const Traced traced({large}, [](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {std::get<0>(at::median(in[0], 0))};
  });
  const std::string message = MessageOf(traced.status);
  CHECK(Contains(message, "cannot trace aten.median.dim: layers.0 (tests/unit/"));
  CHECK(Contains(message,
                 "): it has no kernel for Meta tensors: add one to "
                 "runtime/trace/meta_kernels.cc"));
}

TEST_CASE("operators that read data are refused with what to do instead") {
  const std::string branch = Refusal([](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {at::equal(in[0], in[0].neg()) ? in[0].sin() : in[0].cos()};
  });
  CHECK(Contains(branch, "cannot trace aten.equal.default: layers.0 (tests/unit/"));
  CHECK(
      branch.ends_with("): reads a tensor's value, which does not exist while tracing: compute "
                       "with operators, at::where instead of a branch"));

  const auto check = [](std::string_view op, Program program) {
    const std::string message = Refusal(std::move(program));
    CHECK(Contains(message, fmt::format("cannot trace {}: layers.0 (tests/unit/", op)));
    CHECK(
        message.ends_with("): how large its result is depends on data, which does not exist while "
                          "tracing: take operators of fixed sizes, or read sizes with ReadSizes"));
  };
  check("aten.nonzero.default", [](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {at::nonzero(in[0])};
  });
  check("aten.masked_select.default", [](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {in[0].masked_select(in[0] > 0)};
  });
  check("aten._unique2.default", [](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {std::get<0>(at::_unique2(in[0]))};
  });
}

TEST_CASE("what cannot be traced of a gradient is told with the place of its forward") {
  const Tensor large = Meta({int64_t{1} << 33}).requires_grad_(true);
  const Traced traced({large}, [](Inputs in) -> Tensors {
    Tensor windows;
    {
      const ModuleScope scope("layers.0");
      windows = in[0].sin().unfold(0, 2, 1);
    }
    const PhaseScope backward(Phase::kBackward);
    return {torch::autograd::grad({windows.sum()}, {in[0]})[0]};
  });
  const std::string message = MessageOf(traced.status);
  CHECK(Contains(message,
                 "cannot trace aten.unfold_backward.default: gradient of layers.0 (tests/unit/"));
  CHECK(Contains(message, "): it has no kernel for Meta tensors: add one"));
}

TEST_CASE("a Meta tensor of unknown origin is refused") {
  const Tensor made_before = Meta({3});
  const std::string message = Refusal([&](Inputs in) -> Tensors { return {in[0] + made_before}; });
  CHECK_EQ(message,
           "cannot trace aten.add.Tensor: forward: reads a Meta tensor f32 [3] that is neither "
           "an input nor made by the program");
}

TEST_CASE("what an operator itself refuses is told with its place") {
  const std::string message = Refusal([](Inputs in) -> Tensors {
    const ModuleScope scope("layers.0");
    return {at::mm(in[0].view({1, 3}), in[0].view({1, 3}))};
  });
  CHECK(Contains(message, "cannot trace aten.mm.default: layers.0 (tests/unit/"));
  CHECK(Contains(message, "mat1 and mat2 shapes cannot be multiplied (1x3 and 1x3)"));
}

TEST_CASE("after a refusal the thread traces again") {
  CHECK_FALSE(Refusal([](Inputs in) -> Tensors { return {at::nonzero(in[0])}; }).empty());
  const Traced traced({Meta({3})}, [](Inputs in) -> Tensors { return {in[0].neg()}; });
  CHECK_EQ(traced.Text(), "\n  neg = aten.neg.default(x)\n  output([neg])\n");
}

}  // namespace
}  // namespace strata
