#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::Describe;
using testing::DiffCase;

constexpr std::string_view kTwoInputs = R"(
  x = placeholder : f32[6, 8][8, 1]cpu
  y = placeholder : f32[6, 8][8, 1]cpu
)";

std::string DescribeBodies(std::string_view before, std::string_view after,
                           DiffOptions options = {}) {
  const DiffCase both(std::string(kTwoInputs) + std::string(before),
                      std::string(kTwoInputs) + std::string(after), options);
  return Describe(both.diff);
}

TEST_CASE("fields: a list keeps texts in order, an empty one is not a missing one") {
  FieldDiffs fields;
  CHECK(fields.empty());
  const std::string path = "args[0]";
  fields.Add({path, "1", std::nullopt});
  fields.Add({"target", "", std::string(300, 'b'), true});
  fields.Add({"alias", std::nullopt, "c"});
  const FieldDiffs copy = fields;
  fields = FieldDiffs();
  CHECK(fields.empty());
  std::string text;
  for (const FieldDiff& field : copy) {
    text += fmt::format("{}: {} -> {}{}\n", field.path, field.before.value_or("none"),
                        field.after.value_or("none"), field.derived ? " derived" : "");
  }
  CHECK_EQ(text, "args[0]: 1 -> none\ntarget:  -> " + std::string(300, 'b') +
                     " derived\nalias: none -> c\n");
  CHECK_EQ(copy.size(), 3);
}

TEST_CASE("fields: literals by path, a missing side is null") {
  CHECK_EQ(DescribeBodies(R"(
  v = aten.view.default(x, [48, 1], flag=True)
  output(v)
)",
                          R"(
  v = aten.view.default(x, [6, 8, 1], memory=raw('torch.strided'))
  output(v)
)"),
           R"(
v -> v: changed
  args[1][0]: 48 -> 6
  args[1][1]: 1 -> 8
  args[1][2]: null -> 1
  kwargs.flag: True -> null
  kwargs.memory: null -> torch.strided
)");
}

TEST_CASE("fields: literals read as FX prints them") {
  CHECK_EQ(DescribeBodies(R"(
  v = f(x, 1e-05, None, torch.float32, device('cpu'), 'a', call('slice', None, x, 2))
  output(v)
)",
                          R"(
  v = f(x, 0.001, 3, torch.bfloat16, device('cuda:0'), "b'", call('slice', None, x, 3))
  output(v)
)"),
           R"(
v -> v: changed
  args[1]: 1e-05 -> 0.001
  args[2]: None -> 3
  args[3]: torch.float32 -> torch.bfloat16
  args[4]: device(type='cpu') -> device(type='cuda', index=0)
  args[5]: 'a' -> "b'"
  args[6]: slice(None, x, 2) -> slice(None, x, 3)
)");
}

TEST_CASE("fields: operands compare by counterpart, so renamed operands are not a change") {
  CHECK_EQ(DescribeBodies(R"(
  a = aten.sin.default(x)
  b = aten.cos.default(a)
  c = aten.add.Tensor(a, b)
  output(c)
)",
                          R"(
  a_1 = aten.sin.default(x)
  b = aten.cos.default(a_1)
  c = aten.add.Tensor(b, a_1)
  output(c)
)"),
           R"(
a -> a_1: renamed
c -> c: changed
  operands[0]: a -> b
  operands[1]: b -> a_1
)");
}

TEST_CASE("fields: a list against a tuple, an operand by position against one by name") {
  CHECK_EQ(DescribeBodies("  v = f(x, [1, 2])\n  output(v)\n", "  v = f(x, (1, 2))\n  output(v)\n"),
           "\nv -> v: changed\n  args[1]: [1, 2] -> (1, 2)\n");
  CHECK_EQ(DescribeBodies("  v = f(x, y)\n  output(v)\n", "  v = f(x, other=y)\n  output(v)\n"),
           R"(
v -> v: changed
  args[1]: y -> null
  kwargs.other: null -> y
)");
}

TEST_CASE("fields: types are compared if both sides have them") {
  CHECK_EQ(DescribeBodies("  v = f(x) : f32[6, 8][8, 1]cpu\n  output(v)\n",
                          "  v = f(x) : bf16[8, 6][6, 1]cuda:0\n  output(v)\n"),
           R"(
v -> v: changed
  dtype: f32 -> bf16
  shape: [6, 8] -> [8, 6]
  strides: [8, 1] -> [6, 1]
  device: cpu -> cuda:0
)");
  CHECK_EQ(DescribeBodies("  v = f(x) : f32[6, 8][8, 1]cpu\n  output(v)\n",
                          "  v = f(x) : f32[6, 8]\n  output(v)\n"),
           "\n");
  CHECK_EQ(
      DescribeBodies("  v = f(x) : f32[6, 8][8, 1]cpu\n  output(v)\n", "  v = f(x)\n  output(v)\n"),
      "\n");
}

TEST_CASE("fields: a type that follows from an operand's type is derived") {
  CHECK_EQ(DescribeBodies(R"(
  a = aten._to_copy.default(x, dtype=torch.float32) : f32[6, 8][8, 1]cpu
  b = aten.sin.default(a) : f32[6, 8][8, 1]cpu
  output(b)
)",
                          R"(
  a = aten._to_copy.default(x, dtype=torch.bfloat16) : bf16[6, 8][8, 1]cpu
  b = aten.sin.default(a) : bf16[6, 8][8, 1]cpu
  output(b)
)"),
           R"(
a -> a: changed
  kwargs.dtype: torch.float32 -> torch.bfloat16
  dtype: f32 -> bf16
b -> b: derived
  dtype: f32 -> bf16 (derived)
)");
}

TEST_CASE("fields: elements of a tuple follow from the tuple") {
  CHECK_EQ(DescribeBodies(R"(
  (a, b) = aten.split.Tensor(x, 3) as split : (f32[3, 8], f32[3, 8])
  c = aten.add.Tensor(a, b)
  output(c)
)",
                          R"(
  (a, b) = aten.split.Tensor(x, 4) as split : (f32[4, 8], f32[2, 8])
  c = aten.add.Tensor(a, b)
  output(c)
)"),
           R"(
split -> split: changed
  args[1]: 3 -> 4
a -> a: derived
  shape: [3, 8] -> [4, 8] (derived)
b -> b: derived
  shape: [3, 8] -> [2, 8] (derived)
)");
}

TEST_CASE("fields: module and phase count in own graphs, the rest of the metadata on request") {
  constexpr std::string_view kBefore =
      "  v = f(x) {forward module=layers.0 seq=3 +tag='a'}\n  output(v)\n";
  constexpr std::string_view kAfter =
      "  w = f(x) {backward module=layers.1 seq=4 +tag='b'}\n  output(w)\n";
  CHECK_EQ(DescribeBodies(kBefore, kAfter), R"(
v -> w: renamed+changed
  module: layers.0 -> layers.1
  phase: forward -> backward
)");
  CHECK_EQ(DescribeBodies(kBefore, kAfter, {.meta = true}), R"(
v -> w: renamed+changed
  module: layers.0 -> layers.1
  phase: forward -> backward
  meta.name: v -> w
  meta.seq_nr: 3 -> 4
  meta.tag: a -> b
)");
}

TEST_CASE("fields: module and phase of a foreign graph are metadata") {
  DiffCase both("  v = f() {forward module=layers.0}\n  output(v)\n",
                "  v = f() {backward module=layers.1}\n  output(v)\n");
  both.after->MarkForeign({0});
  const auto diff = testing::OrDie(Diff(both.before->graph({0}), both.after->graph({0})));
  CHECK(diff.Equal());
  const auto with_meta =
      testing::OrDie(Diff(both.before->graph({0}), both.after->graph({0}), {.meta = true}));
  CHECK(with_meta.Equal());
  CHECK_EQ(with_meta.summary.same, 2);
  CHECK_EQ(Describe(with_meta), R"(
v -> v: same
  meta.module: layers.0 -> layers.1
  meta.phase: forward -> backward
)");
}

TEST_CASE("fields: the number of a lifted constant is a name, the path of a parameter is not") {
  CHECK_EQ(DescribeBodies(R"(
  _tensor_constant0 = attr _tensor_constant0 : f32[2]
  v = f(x, _tensor_constant0)
  output(v)
)",
                          R"(
  _tensor_constant3 = attr _tensor_constant3 : f32[2]
  v = f(x, _tensor_constant3)
  output(v)
)"),
           "\n_tensor_constant0 -> _tensor_constant3: renamed\n");
  CHECK_EQ(DescribeBodies(R"(
  w = attr layers.0.weight : f32[2]
  v = f(x, w)
  output(v)
)",
                          R"(
  w = attr layers.1.weight : f32[2]
  v = f(x, w)
  output(v)
)"),
           "\nw -> w: changed\n  target: layers.0.weight -> layers.1.weight\n");
}

TEST_CASE("fields: a literal that became an operand is one field and shifts no other operand") {
  constexpr std::string_view kBefore = R"(
  w = placeholder : f32[4]
  v = aten.view.default(x, [24, 12], w)
  output(v)
)";
  constexpr std::string_view kAfter = R"(
  w = placeholder : f32[4]
  n = aten.sym_size.int(x, 0)
  v = aten.view.default(x, [n, 12], w)
  output(v)
)";
  CHECK_EQ(DescribeBodies(kBefore, kAfter), R"(
v -> v: changed
  args[1][0]: 24 -> n
+ n
)");
  CHECK_EQ(DescribeBodies(kAfter, kBefore), R"(
v -> v: changed
  args[1][0]: n -> 24
- n
)");
}

TEST_CASE("fields: operands behind a new literal of a list were shifted, and became no literal") {
  CHECK_EQ(DescribeBodies(R"(
  a = f(x)
  b = g(y)
  output([a, b])
)",
                          R"(
  a = f(x)
  b = g(y)
  output([None, None, a, b])
)"),
           R"(
output -> output: changed
  args[0][0]: null -> None
  args[0][1]: null -> None
)");
}

TEST_CASE("fields: an operand in a call that had none is told by the call's text") {
  CHECK_EQ(DescribeBodies(R"(
  v = _operator.getitem(x, call('slice', None, 24, None))
  output(v)
)",
                          R"(
  n = aten.sym_size.int(x, 0)
  v = _operator.getitem(x, call('slice', None, n, None))
  output(v)
)"),
           R"(
v -> v: changed
  args[1]: slice(None, 24, None) -> slice(None, n, None)
+ n
)");
}

TEST_CASE("fields: the output is a node with operands") {
  CHECK_EQ(DescribeBodies(R"(
  a = f(x)
  b = g(y)
  output([a, b])
)",
                          R"(
  a = f(x)
  b = g(y)
  output([b])
)"),
           R"(
output -> output: changed
  operands[0]: a -> b
  operands[1]: b -> null
)");
}

TEST_CASE("fields: what an operator writes, in own graphs") {
  constexpr std::string_view kBefore = "  v = aten.add.Tensor(x, 1)\n  output(v)\n";
  constexpr std::string_view kAfter = "  v = aten.add_.Tensor(x, 1)\n  output(v)\n";
  CHECK_EQ(DescribeBodies(kBefore, kAfter), R"(
v -> v: changed
  target: aten.add.Tensor -> aten.add_.Tensor
  mutates: null -> x
)");
  CHECK_EQ(DescribeBodies("  v = aten.add_.Tensor(x, 1)\n  output(v)\n",
                          "  v = aten.add_.Tensor(y, 1)\n  output(v)\n"),
           R"(
v -> v: changed
  operands[0]: x -> y
  mutates: x -> y
)");
  DiffCase foreign(std::string(kTwoInputs) + std::string(kBefore),
                   std::string(kTwoInputs) + std::string(kAfter));
  foreign.after->MarkForeign({0});
  CHECK_EQ(Describe(testing::OrDie(Diff(foreign.before->graph({0}), foreign.after->graph({0})))),
           "\nv -> v: changed\n  target: aten.add.Tensor -> aten.add_.Tensor\n");
}

TEST_CASE("fields: an attribute that holds another one of the bodies") {
  const auto module = [](std::string_view first, std::string_view second) {
    return testing::ParseOrDie(fmt::format(R"(graph g
  x = placeholder
  a = attr {}
  b = attr {}
  cond = higher_order.cond(x, a, b, [x])
  output(cond)
graph one body
  y = placeholder
  f = aten.sin.default(y)
  output(f)
graph two body
  y = placeholder
  f = aten.cos.default(y)
  output(f)
)",
                                           first, second));
  };
  const auto before = module("one(graph(1))", "two(graph(2))");
  const auto both_two = module("two(graph(2))", "two(graph(2))");
  CHECK_EQ(Describe(testing::OrDie(Diff(before->graph({0}), both_two->graph({0})))), R"(
a -> a: changed
  target: one -> two
- one/y
- one/f
- one/output
)");
}

}  // namespace
}  // namespace strata
